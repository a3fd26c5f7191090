//! URLs of webhook endpoints: names of public hosts, and nothing that leads elsewhere.

use std::str::FromStr;

/// The longest URL of an endpoint, in characters. Servers commonly reject longer ones.
pub const MAX_URL_CHARS: usize = 2_048;

/// The ends of names that no public host has: special-use names of IANA's registry, and names that
/// networks commonly use internally.
const PRIVATE_ENDS: [&str; 17] = [
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "mail",
    "onion",
    "private",
    "svc",
    "test",
];

/// The URL of a webhook endpoint: `https`, the name of a public host, and port 443.
///
/// The name cannot be an IP address in any notation. The addresses of the name are checked at each connection.
///
/// ```
/// # use payments_model::webhook::EndpointUrl;
/// assert!("https://hooks.bank-client.com/payments".parse::<EndpointUrl>().is_ok());
///
/// // Plain HTTP is rejected, and so is an address in any notation: this one is 127.0.0.1.
/// assert!("http://hooks.bank-client.com/".parse::<EndpointUrl>().is_err());
/// assert!("https://0x7f.1/".parse::<EndpointUrl>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointUrl {
    text: String,
    host: String,
    loopback_port: Option<u16>,
}

/// Why a text is not the URL of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointUrlError {
    /// Longer than [`MAX_URL_CHARS`].
    #[error("the URL can have at most {MAX_URL_CHARS} characters, but this one has {0}; use a shorter path or query")]
    TooLong(usize),
    /// Another scheme, or none.
    #[error("the URL must begin with https://; only encrypted connections are made")]
    Scheme,
    /// A host that is not ASCII.
    #[error("the host has letters other than ASCII; write its name in punycode, such as xn--bcher-kva.example.com")]
    NotPunycode,
    /// A character that a URL cannot have, outside of the host.
    #[error("the URL has the character {0:?}; percent-encode it")]
    Character(char),
    /// A percent sign without two hexadecimal digits.
    #[error("the URL has a % that two hexadecimal digits do not follow; write the sign itself as %25")]
    Percent,
    /// A fragment.
    #[error("the URL has a fragment, which is never sent; leave out # and what follows")]
    Fragment,
    /// A user name or password.
    #[error(
        "the URL has a user name or password before the host; leave out what is before @, messages are signed instead"
    )]
    Userinfo,
    /// Another port than 443.
    #[error("the URL has the port {0:?}; only port 443 is permitted, so leave the port out")]
    Port(String),
    /// An IP address, in any notation.
    #[error("the host {0:?} is an IP address; use a DNS name")]
    IpAddress(String),
    /// A name that is only known within a network.
    #[error("the host {0:?} is not a public name; use a DNS name that resolves on the internet")]
    Private(String),
    /// The host is not a valid DNS name.
    #[error(
        "the host {0:?} is not a DNS name; use labels of letters, digits and hyphens, separated by dots, such as hooks.example.com"
    )]
    Host(String),
    /// Not a loopback URL, where only these are permitted.
    #[error("the URL does not begin with http://127.0.0.1:<port>/; cargo local sends webhooks to this machine alone")]
    NotLoopback,
}

impl FromStr for EndpointUrl {
    type Err = EndpointUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        not_too_long(text)?;
        let (authority, rest) = split(text, "https://").ok_or(EndpointUrlError::Scheme)??;
        if authority.contains('@') {
            return Err(EndpointUrlError::Userinfo);
        }
        let host = match authority.rsplit_once(':') {
            // In brackets, colons belong to the address.
            _ if authority.starts_with('[') => return Err(EndpointUrlError::IpAddress(authority.to_owned())),
            Some((host, "443")) => host,
            Some((_, port)) => return Err(EndpointUrlError::Port(port.to_owned())),
            None => authority,
        };
        let host = public_name(host)?;
        let text = format!("https://{host}{rest}");
        not_too_long(&text)?;
        Ok(Self { text, host, loopback_port: None })
    }
}

impl EndpointUrl {
    /// Parses the URL of an endpoint on this machine, `http://127.0.0.1:<port>/…`. Only `cargo local` and tests may call this.
    ///
    /// # Errors
    /// [`EndpointUrlError`] for any other URL.
    pub fn loopback(text: &str) -> Result<Self, EndpointUrlError> {
        not_too_long(text)?;
        let url = Self::any_loopback(text)?;
        not_too_long(&url.text)?;
        Ok(url)
    }

    /// Parses the URL of an endpoint on this machine, of any length.
    fn any_loopback(text: &str) -> Result<Self, EndpointUrlError> {
        const NOT: EndpointUrlError = EndpointUrlError::NotLoopback;
        let (authority, rest) = split(text, "http://").ok_or(NOT)??;
        let port = authority.strip_prefix("127.0.0.1:").ok_or(NOT)?;
        let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
        let port: u16 = port.parse().ok().filter(|_| is_plain).ok_or(NOT)?;
        let host = "127.0.0.1".to_owned();
        Ok(Self { text: format!("http://{host}:{port}{rest}"), host, loopback_port: Some(port) })
    }

    /// Reads a stored URL, which is of either kind. Its length and its host are not checked again: they were permitted
    /// when it was stored, and the sender checks the addresses that it connects to.
    ///
    /// # Errors
    /// [`EndpointUrlError`] for a text that has another scheme, or no host.
    pub fn from_stored(text: &str) -> Result<Self, EndpointUrlError> {
        if let Ok(url) = Self::any_loopback(text) {
            return Ok(url);
        }
        let rest = text.strip_prefix("https://").ok_or(EndpointUrlError::Scheme)?;
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        if host.is_empty() {
            return Err(EndpointUrlError::Host(String::new()));
        }
        Ok(Self { text: text.to_owned(), host: host.to_owned(), loopback_port: None })
    }

    /// The URL, its host in lower case and without a port if that is 443.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host: a DNS name, or `127.0.0.1` for a loopback URL.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of a loopback URL; `None` for a public one.
    #[must_use]
    pub const fn loopback_port(&self) -> Option<u16> {
        self.loopback_port
    }
}

impl std::fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks the length of a URL: as it was given, and in its stored form, which can have a `/` more.
fn not_too_long(text: &str) -> Result<(), EndpointUrlError> {
    match text.chars().count() {
        count if count > MAX_URL_CHARS => Err(EndpointUrlError::TooLong(count)),
        _ => Ok(()),
    }
}

/// Splits a URL into its authority and the rest, which begins with `/`. `None` if it has another scheme.
fn split<'t>(text: &'t str, scheme: &str) -> Option<Result<(&'t str, String), EndpointUrlError>> {
    let start = text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
    let text = &text[start.len()..];
    let (authority, rest) = text.split_at(text.find(['/', '?', '#', '\\']).unwrap_or(text.len()));
    Some(path_and_query(rest).map(|rest| (authority, rest)))
}

/// Checks path and query by RFC 3986, and adds the `/` that a request begins with.
fn path_and_query(rest: &str) -> Result<String, EndpointUrlError> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?%".contains(c);
    if rest.contains('#') {
        return Err(EndpointUrlError::Fragment);
    }
    if let Some(other) = rest.chars().find(|&c| !is_known(c)) {
        return Err(EndpointUrlError::Character(other));
    }
    let is_encoded = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !rest.split('%').skip(1).all(is_encoded) {
        return Err(EndpointUrlError::Percent);
    }
    Ok(if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") })
}

/// Returns a public host's name in lower case.
///
/// The last label consists of letters, or begins with `xn--`, as all top-level domains do (RFC 3696, 2). So no notation
/// of an IPv4 address is a name: their last part is a number, decimal, octal or hexadecimal.
fn public_name(host: &str) -> Result<String, EndpointUrlError> {
    if !host.is_ascii() {
        return Err(EndpointUrlError::NotPunycode);
    }
    let name = host.to_ascii_lowercase();
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    if is_number(last) {
        return Err(EndpointUrlError::IpAddress(host.to_owned()));
    }
    if PRIVATE_ENDS.contains(&last) {
        return Err(EndpointUrlError::Private(host.to_owned()));
    }
    let is_top = last.starts_with("xn--") || last.bytes().all(|byte| byte.is_ascii_lowercase());
    if name.len() > 253 || !name.contains('.') || !is_top || !name.split('.').all(is_label) {
        return Err(EndpointUrlError::Host(host.to_owned()));
    }
    Ok(name)
}

/// Whether the last part of a host makes it an IPv4 address, as browsers and C libraries read it.
fn is_number(part: &str) -> bool {
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        || part.strip_prefix("0x").is_some_and(is_hexadecimal)
}

/// Whether a part of a name has 1 to 63 letters, digits and hyphens, without a hyphen at an end
/// (RFC 1035, 2.3.1 and 2.3.4).
fn is_label(label: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&label.len()) && label.bytes().all(is_known) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests;
