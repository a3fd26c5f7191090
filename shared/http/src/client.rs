//! The client of a token, in any of the claims in which providers name it.

use std::collections::HashMap;

use crate::problem::{Problem, ProblemKind};

/// The claims that name a client: of OAuth 2.0's access tokens (RFC 9068), of OpenID Connect, and of Okta.
const CLAIMS: [&str; 3] = ["client_id", "azp", "cid"];

/// The client that a token was given to; `None` if no claim names one.
///
/// # Errors
/// [`ProblemKind::Forbidden`] if two claims name different clients: it is unknown whose rights the
/// token has.
pub(crate) fn client(claims: &HashMap<String, String>) -> Result<Option<&str>, Problem> {
    let mut named = CLAIMS.into_iter().filter_map(|claim| Some((claim, claims.get(claim)?.as_str())));
    let Some((claim, client)) = named.next() else { return Ok(None) };
    match named.find(|(_, other)| *other != client) {
        Some((other, _)) => {
            let detail =
                format!("The token names one client in {claim} and another in {other}; get a token that names one.");
            Err(Problem::new(ProblemKind::Forbidden, detail))
        }
        None => Ok(Some(client).filter(|client| !client.is_empty())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_name() {
        for (claims, want) in [
            (vec![], Ok(None)),
            (vec![("sub", "feed"), ("appid", "feed")], Ok(None)),
            (vec![("client_id", "feed")], Ok(Some("feed"))),
            (vec![("azp", "feed"), ("sub", "eve")], Ok(Some("feed"))),
            (vec![("cid", "feed")], Ok(Some("feed"))),
            (vec![("client_id", "feed"), ("azp", "feed"), ("cid", "feed")], Ok(Some("feed"))),
            (vec![("client_id", "")], Ok(None)),
            (vec![("client_id", "feed"), ("azp", "Feed")], Err("client_id and another in azp")),
            (vec![("client_id", "feed"), ("cid", "")], Err("client_id and another in cid")),
            (vec![("azp", "feed"), ("cid", "erp")], Err("azp and another in cid")),
            (vec![("client_id", "feed"), ("azp", "feed"), ("cid", "erp")], Err("client_id and another in cid")),
        ] {
            let map = claims.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            match (client(&map), want) {
                (Ok(found), Ok(want)) => assert_eq!(found, want, "{claims:?}"),
                (Err(problem), Err(want)) => {
                    assert!(problem.detail().contains(want), "{claims:?}: {}", problem.detail())
                }
                (found, _) => panic!("{claims:?}: {:?}", found.is_ok()),
            }
        }
    }
}
