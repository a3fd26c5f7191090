//! The OpenID provider of `cargo local --require-tokens`: authorization codes with PKCE, for the console.
//!
//! Sources: RFC 6749, sections 3, 4.1 and 5, and RFC 7636. The console is a public client, so it has no secret: a code is worth
//! something only to whoever knows the verifier of its challenge. The method `plain` is not accepted. Nobody has a password here:
//! a person chooses a role.

mod asked;
mod code;
mod form;
mod page;
mod role;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use form_urlencoded::Serializer;
use payments_machine::codes::Codes;
use payments_machine::environment::CONSOLE_CLIENT;
use serde_json::json;

use crate::admission::SEC_FETCH_SITE;
use crate::token::Issuer;
use asked::{Asked, Wrong};
use code::Code;
use form::Form;
use role::Role;

/// The provider of one gateway.
pub(crate) struct Provider {
    issuer: Arc<Issuer>,
    /// The addresses to which a code may be sent: the console's page, by each name of this machine.
    redirects: [String; 2],
    codes: Codes<Code>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider({:?})", self.redirects)
    }
}

impl Provider {
    /// Creates the provider of the gateway on this port.
    pub(crate) fn new(issuer: Arc<Issuer>, port: u16) -> Self {
        let redirects = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}/console"));
        Self { issuer, redirects, codes: Codes::default() }
    }

    /// The issuer of the tokens.
    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Answers a request to the authorization endpoint. `GET` shows the roles. `POST`, with the same parameters and a role, sends
    /// the browser back with a code.
    pub(crate) fn authorize(&self, parts: &Parts, body: &[u8], now: DateTime<Utc>) -> Response {
        let form = match parts.method {
            Method::GET => Form::parse(parts.uri.query().unwrap_or_default().as_bytes()),
            Method::POST if is_own_page(parts) => Form::parse(body),
            Method::POST => return page::refusal("The form was sent by another site."),
            _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
        let asked = match Asked::parse(&form, &self.redirects) {
            Ok(asked) => asked,
            Err(Wrong::Shown(why)) => return page::refusal(&why),
            Err(Wrong::Sent { to, state, error }) => return redirect(to, &[("error", error)], state),
        };
        if parts.method == Method::GET {
            return page::roles(&asked);
        }
        let chosen = form.one("role").ok().flatten();
        let mut roles = Role::ALL.into_iter().filter(|role| role.is_asked_for(&asked.scopes));
        let Some(role) = roles.find(|role| chosen == Some(role.as_str())) else {
            return page::refusal("The form has no role of this page.");
        };
        let grant = role.grant(&asked.scopes);
        let code = Code { grant, redirect: asked.redirect.to_owned(), challenge: asked.challenge.to_owned() };
        match self.codes.open(code, now) {
            Ok(code) => redirect(asked.redirect, &[("code", &code)], asked.state),
            Err(_) => redirect(asked.redirect, &[("error", "server_error")], asked.state),
        }
    }

    /// Answers a request to the token endpoint, if it wants to change a code for a token.
    pub(crate) fn change(&self, body: &[u8], now: DateTime<Utc>) -> Option<Response> {
        let form = Form::parse(body);
        if form.one("grant_type") != Ok(Some("authorization_code")) {
            return None;
        }
        Some(match self.token(&form, now) {
            Ok(token) => json_answer(StatusCode::OK, token),
            Err(error) => json_answer(StatusCode::BAD_REQUEST, json!({ "error": error }).to_string()),
        })
    }

    /// Changes a code for a token, or says which error of RFC 6749, section 5.2 it is.
    fn token(&self, form: &Form, now: DateTime<Utc>) -> Result<String, &'static str> {
        let field = |name| form.one(name).ok().flatten().ok_or("invalid_request");
        let code = field("code")?;
        let client = field("client_id")?;
        let redirect = field("redirect_uri")?;
        let verifier = field("code_verifier")?;
        // The code is gone from here on, so nobody can try a second verifier.
        let code = self.codes.take(code, now).ok_or("invalid_grant");
        if client != CONSOLE_CLIENT {
            return Err("invalid_client");
        }
        let code = code?;
        if code.redirect != redirect || !code.is_proven_by(verifier) {
            return Err("invalid_grant");
        }
        self.issuer.answer_with(&code.grant, now).map_err(|_| "invalid_request")
    }
}

/// Whether a form comes from the provider's own page, or from no browser.
fn is_own_page(parts: &Parts) -> bool {
    parts.headers.get(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin")
}

/// Sends a browser back to the client.
fn redirect(to: &str, parameters: &[(&str, &str)], state: Option<&str>) -> Response {
    let state = state.map(|state| ("state", state));
    let query = Serializer::new(String::new()).extend_pairs(parameters.iter().copied().chain(state)).finish();
    let mut response = (StatusCode::SEE_OTHER, [(CACHE_CONTROL, "no-store")]).into_response();
    // Encoded text has only characters of a header.
    let location = HeaderValue::from_str(&format!("{to}?{query}")).ok();
    response.headers_mut().extend(location.map(|location| (LOCATION, location)));
    response
}

fn json_answer(status: StatusCode, json: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], json).into_response()
}
