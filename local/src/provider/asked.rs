//! A request for a code, parsed.

use payments_http::{Scope, bounded};
use payments_machine::environment::CONSOLE_CLIENT;

use super::form::Form;

/// The longest text of a request that the page of a refusal shows, in bytes.
const SHOWN: usize = 200;

/// The longest `state`, in bytes. It comes back in an address, and the console's has 43.
const MAX_STATE: usize = 1_024;

/// The length of a challenge: 32 bytes in base64.
const CHALLENGE: usize = 43;

/// The request of a client.
#[derive(Debug)]
pub(super) struct Asked<'f> {
    pub(super) redirect: &'f str,
    pub(super) scopes: Vec<Scope>,
    pub(super) state: Option<&'f str>,
    pub(super) challenge: &'f str,
}

/// An error of a request for a code, with its addressee (RFC 6749, section 4.1.2.1).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong<'f> {
    /// The person: nothing says that the client is the one that it claims to be.
    Shown(String),
    /// The client, at its own address.
    Sent { to: &'f str, state: Option<&'f str>, error: &'static str },
}

impl<'f> Asked<'f> {
    /// Reads a request, whose redirect has to be one of these.
    pub(super) fn parse(form: &'f Form, redirects: &[String]) -> Result<Self, Wrong<'f>> {
        let shown = |why: String| Wrong::Shown(why);
        let client = form.one("client_id").ok().flatten().unwrap_or_default();
        if client != CONSOLE_CLIENT {
            let client = bounded(client, SHOWN);
            return Err(shown(format!("There is no client {client:?}; the console is {CONSOLE_CLIENT:?}.")));
        }
        let redirect = form.one("redirect_uri").ok().flatten().unwrap_or_default();
        if !redirects.iter().any(|own| own == redirect) {
            let redirect = bounded(redirect, SHOWN);
            return Err(shown(format!("The console is not at {redirect:?}; it is at {}.", redirects.join(" and "))));
        }
        let state = form.one("state").map_err(|_| shown("The state is there twice.".to_owned()))?;
        if state.is_some_and(|state| state.len() > MAX_STATE) {
            return Err(shown(format!("The state has more than {MAX_STATE} bytes.")));
        }
        let sent = |error| Wrong::Sent { to: redirect, state, error };
        let one = |name| form.one(name).map_err(|_| sent("invalid_request"));
        match one("response_type")? {
            Some("code") => {}
            None => return Err(sent("invalid_request")),
            Some(_) => return Err(sent("unsupported_response_type")),
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let challenge = one("code_challenge")?
            .filter(|challenge| challenge.len() == CHALLENGE && challenge.bytes().all(is_plain))
            .ok_or(sent("invalid_request"))?;
        // Without a method it would be `plain`, which protects nothing (RFC 7636, section 4.3).
        if one("code_challenge_method")? != Some("S256") {
            return Err(sent("invalid_request"));
        }
        let named: Vec<&str> = one("scope")?.unwrap_or_default().split(' ').collect();
        let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| named.contains(&scope.as_str())).collect();
        if !scopes.iter().any(|scope| matches!(scope, Scope::Inspect | Scope::Operate | Scope::Approve)) {
            return Err(sent("invalid_scope"));
        }
        Ok(Self { redirect, scopes, state, challenge })
    }
}
