//! The admission of requests on one machine: without tokens, only for its own host, and changes only from its own site.
//!
//! A browser adds the right of its user to whatever a page sends. Without tokens everybody has that right, so a page of any site could act on
//! the bank, or read it under a name of its own that leads to this machine.

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderName, Method, StatusCode, Version};

/// The header in which a browser names the origin of a request.
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of this machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Returns the answer to a request that is not admitted. `is_open` is whether requests need no token.
pub(crate) fn refusal(request: &Parts, is_open: bool) -> Option<(StatusCode, &'static str)> {
    let hosts: Vec<_> = request.headers.get_all(HOST).iter().collect();
    let host = match hosts[..] {
        // The first version of HTTP has no such header.
        [] if request.version < Version::HTTP_11 => None,
        [host] => match host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) {
            Some(host) if is_name_and_port(&host) => Some(host),
            _ => {
                return Some((
                    StatusCode::BAD_REQUEST,
                    "The Host header is malformed; send the name and port of this API",
                ));
            }
        },
        _ => return Some((StatusCode::BAD_REQUEST, "Send one Host header, with the name and port of this API")),
    };
    if !is_open {
        return None;
    }
    let is_foreign = |name: &str| !LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name));
    let named = host.iter().map(Authority::host).chain(request.uri.host());
    if named.into_iter().any(is_foreign) {
        let why = "Without --require-tokens this API is for this machine alone; call it as 127.0.0.1 or localhost";
        return Some((StatusCode::MISDIRECTED_REQUEST, why));
    }
    let site = request.headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes());
    let other_site = site.is_some_and(|site| !["same-origin", "none"].map(str::as_bytes).contains(&site));
    // Older browsers say only this.
    let origin = request.headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default().strip_prefix("http://"));
    let other_origin = origin.is_some_and(|origin| origin != host.as_ref().map(Authority::as_str));
    if request.method != Method::GET && (other_site || other_origin) {
        return Some((StatusCode::FORBIDDEN, "This comes from another site, which may change nothing here"));
    }
    None
}

/// Whether a host is a name, with a port or without one, and nothing else.
fn is_name_and_port(host: &Authority) -> bool {
    !host.as_str().contains('@') && (host.port_u16().is_some() || host.as_str() == host.host())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn refused(method: &str, target: &str, headers: &[(&str, &str)], is_open: bool) -> Option<u16> {
        let version = if headers.is_empty() && method == "HEAD" { Version::HTTP_10 } else { Version::HTTP_11 };
        let request = Request::builder().method(method).uri(target).version(version);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        refusal(&parts, is_open).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn a_request_has_one_host_and_without_tokens_that_is_this_machine() {
        for (target, hosts, with_tokens, without) in [
            ("/counts", vec!["127.0.0.1:8080"], None, None),
            ("/counts", vec!["LocalHost"], None, None),
            ("/counts", vec!["[::1]:8080"], None, None),
            ("http://127.0.0.1:8080/counts", vec!["127.0.0.1:8080"], None, None),
            ("/counts", vec!["evil.example"], None, Some(421)),
            ("/counts", vec!["127.0.0.1.evil.example:8080"], None, Some(421)),
            ("/counts", vec!["0.0.0.0:8080"], None, Some(421)),
            ("http://evil.example/counts", vec!["127.0.0.1:8080"], None, Some(421)),
            ("/counts", vec![], Some(400), Some(400)),
            ("/counts", vec!["127.0.0.1:8080", "127.0.0.1:8080"], Some(400), Some(400)),
            ("/counts", vec![""], Some(400), Some(400)),
            ("/counts", vec!["a b"], Some(400), Some(400)),
            ("/counts", vec!["evil@localhost"], Some(400), Some(400)),
            ("/counts", vec!["evil@127.0.0.1:8080"], Some(400), Some(400)),
            ("/counts", vec!["127.0.0.1:abc"], Some(400), Some(400)),
            ("/counts", vec!["127.0.0.1:99999"], Some(400), Some(400)),
        ] {
            let hosts: Vec<(&str, &str)> = hosts.iter().map(|host| ("host", *host)).collect();
            let found = [false, true].map(|is_open| refused("GET", target, &hosts, is_open));
            assert_eq!(found, [with_tokens, without], "{target} {hosts:?}");
        }
        assert_eq!(refused("HEAD", "/counts", &[], true), None, "HTTP/1.0");
    }

    #[test]
    fn without_tokens_no_other_site_changes_anything() {
        for (method, site, want) in [
            ("POST", Some("cross-site"), Some(403)),
            ("POST", Some("same-site"), Some(403)),
            ("POST", Some("something-new"), Some(403)),
            ("PUT", Some("cross-site"), Some(403)),
            ("DELETE", Some("cross-site"), Some(403)),
            ("POST", Some("same-origin"), None),
            ("POST", Some("none"), None),
            ("POST", None, None),
            ("GET", Some("cross-site"), None),
        ] {
            let headers: Vec<_> =
                [("host", "localhost:8080")].into_iter().chain(site.map(|site| ("sec-fetch-site", site))).collect();
            assert_eq!(refused(method, "/counts", &headers, true), want, "{method} {site:?}");
            assert_eq!(refused(method, "/counts", &headers, false), None, "a token decides");
        }
        for (method, origin, want) in [
            ("POST", "http://evil.example", Some(403)),
            ("POST", "http://localhost:3000", Some(403)),
            ("POST", "null", Some(403)),
            ("POST", "http://localhost:8080", None),
            ("GET", "http://evil.example", None),
        ] {
            let headers = [("host", "localhost:8080"), ("origin", origin)];
            assert_eq!(refused(method, "/counts", &headers, true), want, "{method} {origin}");
        }
    }
}
