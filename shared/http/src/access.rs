//! Authorization: decides from a token's claims, before any handler sees the request.
//!
//! API Gateway's authorizer has already checked the token's signature, issuer, audience and times. The claims
//! decide the rest:
//!
//! | the token's account claim | allows |
//! |---|---|
//! | absent, and its client is a machine | every route whose scope it has, for every account |
//! | absent otherwise | the calendars |
//! | present | routes of one account whose scope it has, for its own accounts; other accounts do
//! not exist for it. And the calendars |
//!
//! The console's page, its scripts and styles are public: they show nothing of the bank. No scope
//! implies another. A claim that cannot be parsed, or is empty, allows nothing, no matter which
//! client has it. The same holds for a token that names two clients.

use std::collections::HashMap;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use payments_model::AccountId;

use crate::client::client;
use crate::problem::{Problem, ProblemKind};
use crate::routes::RouteSpec;
use crate::scope::Scope;

/// The access rules of a function of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The claim that names a token's accounts.
    pub account_claim: String,
    /// The clients whose tokens pass without that claim: machines, and those of the console's operators.
    pub machine_clients: Vec<String>,
    /// Whether a request without an authorizer is allowed everything: on one machine only.
    pub is_open: bool,
}

impl Access {
    /// Checks that the request's token allows this route.
    ///
    /// # Errors
    /// [`ProblemKind::TokenRequired`] without a token. [`ProblemKind::Forbidden`] if the token
    /// names two clients, lacks the route's scope, has an account claim on a route that is not of
    /// one account, or has no account claim and its client is not a machine.
    /// [`Problem::no_such_payment`] if the token is for other accounts, whatever else the request
    /// holds.
    pub(crate) fn check(&self, event: &ApiGatewayV2httpRequest, spec: &RouteSpec) -> Result<(), Problem> {
        let Some(scope) = spec.scope else { return Ok(()) };
        let Some(claims) = claims(event) else {
            if self.is_open && event.request_context.authorizer.is_none() {
                return Ok(());
            }
            let detail = "The request has no access token; send one as Authorization: Bearer <token>.";
            return Err(Problem::new(ProblemKind::TokenRequired, detail));
        };
        let client = client(claims)?;
        if !has_scope(claims, scope) {
            let detail = format!("The token lacks the scope {}; get a token with this scope.", scope.as_str());
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
        if spec.is_of_no_account() {
            return Ok(());
        }
        let Some(own) = claims.get(&self.account_claim) else { return self.require_machine(client) };
        if !spec.is_of_one_account() {
            let detail = "The token is for single accounts, but this route covers all accounts; use a machine's token.";
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
        let asked = event.path_parameters.get(RouteSpec::ACCOUNT).and_then(|account| account.parse().ok());
        if asked.is_some_and(|asked: AccountId| accounts(own).contains(&asked)) {
            return Ok(());
        }
        Err(Problem::no_such_payment())
    }
}

impl Access {
    /// Rejects a token without the account claim, unless its client is a machine. An issuer that
    /// forgets a customer's accounts would otherwise give the customer access to all accounts.
    fn require_machine(&self, client: Option<&str>) -> Result<(), Problem> {
        if client.is_some_and(|client| self.machine_clients.iter().any(|machine| machine == client)) {
            return Ok(());
        }
        let claim = &self.account_claim;
        let detail = format!(
            "The token lacks the claim {claim}, and is not a machine's; get a token that lists accounts in it."
        );
        Err(Problem::new(ProblemKind::Forbidden, detail))
    }
}

/// The claims of the token, which API Gateway checked.
pub(crate) fn claims(event: &ApiGatewayV2httpRequest) -> Option<&HashMap<String, String>> {
    let authorizer = event.request_context.authorizer.as_ref()?;
    authorizer.jwt.as_ref().map(|jwt| &jwt.claims)
}

/// Whether the token's claims have a scope.
pub(crate) fn has_scope(claims: &HashMap<String, String>, scope: Scope) -> bool {
    scopes(claims).any(|known| known == scope.as_str())
}

/// The scopes in the token's claims: `scope` is OAuth 2.0's claim (RFC 8693), `scp` that of some
/// providers. The event's own list of scopes is ignored: API Gateway fills it with the scopes that
/// a route requires, and only for routes that require scopes.
fn scopes(claims: &HashMap<String, String>) -> impl Iterator<Item = &str> {
    ["scope", "scp"].into_iter().filter_map(|name| claims.get(name)).flat_map(|claim| words(claim))
}

/// The accounts that a claim names; empty if any of them is not an account id.
fn accounts(claim: &str) -> Vec<AccountId> {
    let parsed: Result<Vec<AccountId>, _> = match serde_json::from_str::<Vec<String>>(claim) {
        Ok(texts) => texts.iter().map(|text| text.parse()).collect(),
        Err(_) => words(claim).map(str::parse).collect(),
    };
    parsed.unwrap_or_default()
}

/// The words of a claim. API Gateway passes each claim as text: a string as it is, an array as its elements
/// in brackets, separated by spaces. Within a string, providers use spaces (RFC 8693) or commas.
fn words(claim: &str) -> impl Iterator<Item = &str> {
    let inner = claim.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(claim).split([' ', ',']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_account_claim_names_no_account() {
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
