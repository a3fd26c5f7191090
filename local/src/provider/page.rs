//! The pages of the provider, for people: the choice of a role, and why there is none.

use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use payments_machine::environment::{AUTHORIZE_PATH, CONSOLE_CLIENT};
use sha2::{Digest as _, Sha256};

use super::asked::Asked;
use super::role::Role;

/// The style of both pages. The content security policy names its hash.
const STYLE: &str = "
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 28rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; }
button { display: block; width: 100%; margin: 0.75rem 0; padding: 0.75rem 1rem; font: inherit; text-align: left; }
small { display: block; }
";

/// The choice of a role.
pub(super) fn roles(asked: &Asked<'_>) -> Response {
    let offered = Role::ALL.into_iter().filter(|role| role.is_asked_for(&asked.scopes));
    let scope = asked.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
    let fields = [
        ("response_type", "code"),
        ("client_id", CONSOLE_CLIENT),
        ("redirect_uri", asked.redirect),
        ("scope", &scope),
        ("state", asked.state.unwrap_or_default()),
        ("code_challenge", asked.challenge),
        ("code_challenge_method", "S256"),
    ];
    let origin = asked.redirect.trim_end_matches("/console");
    let body = html! {
        h1 { "Sign in to the console" }
        p { "This provider is part of " code { "cargo local" } ". It asks for no password: choose who you are." }
        form method="post" action=(AUTHORIZE_PATH) {
            @for (name, value) in fields {
                input type="hidden" name=(name) value=(value);
            }
            @for role in offered {
                button name="role" value=(role.as_str()) {
                    (title(role))
                    small { (role.grant(&asked.scopes).scopes) }
                }
            }
        }
    };
    // A browser applies `form-action` also to where the form's answer sends it.
    page(StatusCode::OK, &format!("form-action 'self' {origin}"), &body)
}

/// The page of a request that leads nowhere.
pub(super) fn refusal(why: &str) -> Response {
    page(StatusCode::BAD_REQUEST, "form-action 'none'", &html! { h1 { "Nobody can sign in like this" } p { (why) } })
}

fn title(role: Role) -> &'static str {
    match role {
        Role::Look => "Sign in to look",
        Role::Act => "Ana: sign in to act",
        Role::Approve => "Ben: sign in to approve what Ana asks for",
        Role::Customer => "A customer of acc-1, who is refused",
    }
}

fn page(status: StatusCode, forms: &str, body: &Markup) -> Response {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{style}'; {forms}; base-uri 'none'; frame-ancestors 'none'");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sign in" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy.as_str()),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    (status, headers, page.into_string()).into_response()
}
