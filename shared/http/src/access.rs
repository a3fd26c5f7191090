//! Who may do what: the one place that decides, before any handler sees the request.
//!
//! API Gateway's authorizer has checked the token's signature, issuer, audience and times. What is
//! left is what the token is for:
//!
//! | the token | reaches |
//! |---|---|
//! | has no claim of accounts: a machine | every route whose scope it has, and every account |
//! | has one | the routes of an account whose scope it has, of its own accounts; other accounts are not there |
//!
//! Scopes do not imply each other. Whatever cannot be read reaches nothing.

use std::collections::HashMap;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use payments_model::AccountId;

use crate::routes::RouteSpec;
use crate::{Kind, Problem};

/// What a token may do. The names are those of the template's resource server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// See payments of accounts.
    Read,
    /// Put payments into accounts, and take them back.
    Write,
    /// What concerns the bank as a whole: batches, dates, counts, transactions.
    Operate,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Operate];

    /// The scope as tokens name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "payments/read",
            Self::Write => "payments/write",
            Self::Operate => "payments/operate",
        }
    }
}

/// How a function of the HTTP API tells what a request may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The claim that names the accounts a token is for.
    pub account_claim: String,
    /// Whether a request that no authorizer saw may do everything: on one machine only.
    pub is_open: bool,
}

impl Access {
    /// Lets the request in, or says what is answered instead.
    ///
    /// # Errors
    /// [`Kind::TokenRequired`] without a token; [`Kind::Forbidden`] where the token lacks the route's
    /// scope, or is for accounts and the route is for none; [`Problem::no_such_payment`] where the
    /// route is for another account than the token, whatever else the request holds.
    pub fn check(&self, event: &ApiGatewayV2httpRequest, spec: &RouteSpec) -> Result<(), Problem> {
        let Some(claims) = claims(event) else {
            if self.is_open && event.request_context.authorizer.is_none() {
                return Ok(());
            }
            let detail = "Send an access token as Authorization: Bearer; see the API's description.";
            return Err(Problem::new(Kind::TokenRequired, detail));
        };
        if !scopes(claims).any(|scope| scope == spec.scope.as_str()) {
            let scope = spec.scope.as_str();
            return Err(Problem::new(Kind::Forbidden, format!("This token lacks the scope {scope}.")));
        }
        let Some(own) = claims.get(&self.account_claim) else { return Ok(()) };
        if !spec.is_of_one_account() {
            return Err(Problem::new(Kind::Forbidden, "This token is for single accounts, and this route is not."));
        }
        let asked = event.path_parameters.get(RouteSpec::ACCOUNT).and_then(|account| account.parse().ok());
        if asked.is_some_and(|asked: AccountId| accounts(own).contains(&asked)) {
            return Ok(());
        }
        Err(Problem::no_such_payment())
    }
}

/// The claims of the token that API Gateway checked.
pub(crate) fn claims(event: &ApiGatewayV2httpRequest) -> Option<&HashMap<String, String>> {
    let authorizer = event.request_context.authorizer.as_ref()?;
    authorizer.jwt.as_ref().map(|jwt| &jwt.claims)
}

/// The scopes that the token itself names: `scope` is OAuth 2.0's claim (RFC 8693), `scp` that of some
/// providers. The event's own list of scopes does not count: API Gateway fills it only for routes that
/// ask it to look at scopes, and what a route asks for is not what a token has.
fn scopes(claims: &HashMap<String, String>) -> impl Iterator<Item = &str> {
    ["scope", "scp"].into_iter().filter_map(|name| claims.get(name)).flat_map(|claim| words(claim))
}

/// The accounts that a claim names; none where any of them is not an account's id.
fn accounts(claim: &str) -> Vec<AccountId> {
    let parsed: Result<Vec<AccountId>, _> = match serde_json::from_str::<Vec<String>>(claim) {
        Ok(texts) => texts.iter().map(|text| text.parse()).collect(),
        Err(_) => words(claim).map(str::parse).collect(),
    };
    parsed.unwrap_or_default()
}

/// The words of a claim that names several things. API Gateway hands a claim on as text: a string as it
/// is, and an array as its elements between brackets, with a space between them. Inside a string,
/// providers separate by spaces (RFC 8693) or commas.
fn words(claim: &str) -> impl Iterator<Item = &str> {
    let inner = claim.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(claim).split([' ', ',']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_names_accounts_in_any_of_its_forms_or_none() {
        for (claim, want) in [
            ("acc-1", vec!["acc-1"]),
            ("acc-1,acc-2", vec!["acc-1", "acc-2"]),
            ("acc-1 acc-2", vec!["acc-1", "acc-2"]),
            ("acc-1, acc-2", vec!["acc-1", "acc-2"]),
            ("[acc-1]", vec!["acc-1"]),
            ("[acc-1 acc-2]", vec!["acc-1", "acc-2"]),
            (r#"["acc-1"]"#, vec!["acc-1"]),
            (r#"["acc-1", "acc-2"]"#, vec!["acc-1", "acc-2"]),
            ("", vec![]),
            (" ", vec![]),
            (",", vec![]),
            ("[]", vec![]),
            ("*", vec![]),
            ("acc-1,*", vec![]),
            ("acc#1", vec![]),
            ("acc-1 acc#2", vec![]),
            ("[acc-1", vec![]),
            ("acc-1]", vec![]),
            ("[[acc-1]]", vec![]),
            ("map[acc-1:acc-2]", vec![]),
            (r#"["acc-1",2]"#, vec![]),
            (r#"["acc-1 acc-2"]"#, vec![]),
            (r#"{"acc-1":"acc-2"}"#, vec![]),
            (r#""acc-1""#, vec![]),
        ] {
            let want: Vec<AccountId> = want.into_iter().map(|account| account.parse().unwrap()).collect();
            assert_eq!(accounts(claim), want, "{claim:?}");
        }
    }

    #[test]
    fn scopes_are_whole_words_of_either_claim() {
        for (name, claim, want) in [
            ("scope", "payments/read", true),
            ("scope", "openid payments/write payments/read", true),
            ("scp", "[openid payments/read]", true),
            ("scp", "payments/read", true),
            ("scope", "", false),
            ("scope", "payments/reader", false),
            ("scope", "payments", false),
            ("scope", "PAYMENTS/READ", false),
            ("scope", "payments/*", false),
            ("scopes", "payments/read", false),
        ] {
            let claims = HashMap::from([(name.to_owned(), claim.to_owned())]);
            assert_eq!(scopes(&claims).any(|scope| scope == Scope::Read.as_str()), want, "{name}: {claim:?}");
        }
    }
}
