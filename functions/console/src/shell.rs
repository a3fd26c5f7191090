//! The console's page without a view, its headers, and its script and style.

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};
use maud::{DOCTYPE, Markup, html};
use payments_http::Answer;

use crate::config::SignIn;
use crate::views::{Kind, VIEWS};

/// The script library, as it was published: `htmx.org` 4.0.1 on npm, 0BSD, whose text is beside it.
const HTMX: &str = include_str!("assets/htmx-4.0.1.min.js");
/// The console's own script.
const SCRIPT: &str = include_str!("assets/console.js");
/// The console's style.
const STYLE: &str = include_str!("assets/console.css");

/// An asset: its name, the text after which it is named, and its type.
struct Asset {
    stem: &'static str,
    suffix: &'static str,
    text: &'static str,
    content_type: &'static str,
}

const ASSETS: [Asset; 3] = [
    Asset { stem: "htmx", suffix: "js", text: HTMX, content_type: "text/javascript; charset=utf-8" },
    Asset { stem: "console", suffix: "js", text: SCRIPT, content_type: "text/javascript; charset=utf-8" },
    Asset { stem: "console", suffix: "css", text: STYLE, content_type: "text/css; charset=utf-8" },
];

impl Asset {
    /// Its name, which changes with its text: browsers keep it for a year.
    fn name(&self) -> String {
        format!("{}-{:08x}.{}", self.stem, fingerprint(self.text), self.suffix)
    }
}

/// A hash that another text has only by chance (FNV-1a). It protects against nobody: the text is part of this program.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The asset with this name.
pub(crate) fn asset(name: &str) -> Option<Answer> {
    let asset = ASSETS.iter().find(|asset| asset.name() == name)?;
    Some(Answer::asset(asset.content_type, asset.text))
}

/// The headers of all answers of the console.
///
/// Scripts, styles and requests are the console's own, and the token comes from the provider. No frame shows the page, no form is
/// sent, and nothing inline runs.
pub(crate) fn headers(sign_in: Option<&SignIn>) -> HeaderMap {
    let provider = sign_in.map(|sign_in| sign_in.token_url.origin()).filter(|origin| !origin.is_empty());
    let provider = provider.map(|origin| format!(" {origin}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{provider}; \
         form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    let fixed = HeaderValue::from_static;
    let mut headers = HeaderMap::from_iter([
        (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (X_FRAME_OPTIONS, fixed("DENY")),
        (REFERRER_POLICY, fixed("no-referrer")),
        (HeaderName::from_static("permissions-policy"), fixed("camera=(), geolocation=(), microphone=(), payment=()")),
    ]);
    // A provider's address has only the characters of a plain URL, so this cannot fail.
    headers.extend(HeaderValue::from_str(&policy).ok().map(|policy| (CONTENT_SECURITY_POLICY, policy)));
    headers
}

/// The settings of the script library: no style of its own in the page, no scripts in attributes, and no copies of pages.
const HTMX_CONFIG: &str = r#"{"includeIndicatorCSS":false,"history":false,"defaultTimeout":20000}"#;

/// The page. Without a script it explains itself and its needs.
pub(crate) fn page(sign_in: Option<&SignIn>) -> Markup {
    let [htmx, script, style] = ASSETS.each_ref().map(|asset| format!("/console/assets/{}", asset.name()));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX_CONFIG);
                title { "Scheduled payments" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(style);
                script src=(htmx) defer {}
                script src=(script) defer {}
            }
            body
                data-client-id=[sign_in.map(|sign_in| &sign_in.client_id)]
                data-operate-client-id=[sign_in.and_then(|sign_in| sign_in.operate_client_id.as_ref())]
                data-authorize-url=[sign_in.map(|sign_in| sign_in.authorize_url.to_string())]
                data-token-url=[sign_in.map(|sign_in| sign_in.token_url.to_string())]
            {
                a class="skip" href="#main" { "Skip to the view" }
                header {
                    details class="menu small" {
                        summary class="button" { "Menu " span class="count" data-count-all hidden {} }
                        div { nav class="views" aria-label="Views, in a menu" { (links()) } }
                    }
                    p class="brand" { "Scheduled payments" }
                    nav class="views wide" aria-label="Views" { (links()) }
                    form id="find" class="find" role="search" autocomplete="off" {
                        input id="find-text" name="text" type="search" maxlength="400" required
                            aria-label="Find a payment or an account" placeholder="Find anything" title="Press / to come here";
                    }
                    details class="menu" {
                        summary class="button" { span id="person" { "More" } }
                        div {
                            p id="rights" class="quiet" hidden {}
                            nav class="views" aria-label="Guides" {
                                @for view in VIEWS.iter().filter(|view| view.kind == Kind::Guide) {
                                    a href={ "#" (view.name) } data-view=(view.name) { (view.title) }
                                }
                            }
                            button id="sign-out" type="button" hidden { "Sign out" }
                        }
                    }
                }
                div id="problem" class="notice now" role="alert" hidden {}
                section id="welcome" class="panel welcome" {
                    h1 { "Scheduled payments" }
                    p { "The console shows what the bank's payments are doing. It loads a view once you are signed in." }
                    p class="row" {
                        button id="sign-in" class="primary" type="button" hidden { "Sign in" }
                        button id="sign-in-to-act" type="button" hidden { "Sign in to act" }
                    }
                    noscript { p { "The console needs JavaScript, because it keeps your token in the page and nowhere else." } }
                }
                section id="attention" class="attn" aria-labelledby="attn" hidden {}
                main id="main" tabindex="-1" data-hx-sync="this:replace" {}
                p id="status" role="status" class="quiet" {}
                dialog id="dialog" aria-labelledby="dialog-title" {
                    div id="answer" {}
                    p id="dialog-problem" class="notice now" role="alert" hidden {}
                }
            }
        }
    }
}

/// Links to the views that have a name. A number beside each says how many troubles are mended there.
fn links() -> Markup {
    html! {
        @for view in VIEWS.iter().filter(|view| !view.title.is_empty() && view.kind != Kind::Guide) {
            a href={ "#" (view.name) } data-view=(view.name) { (view.title) span class="count" data-count=(view.name) hidden {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that the page and everything it loads may weigh, before compression. `.ci/console` holds what it weighs compressed.
    const MOST: usize = 80 * 1024;

    #[test]
    fn the_script_library_is_as_it_was_published() {
        assert_eq!((HTMX.len(), fingerprint(HTMX)), (37_448, 0x0a58_ac9a));
    }

    #[test]
    fn the_page_is_light() {
        let bytes = page(None).into_string().len() + ASSETS.iter().map(|asset| asset.text.len()).sum::<usize>();
        assert!(bytes <= MOST, "{bytes} bytes");
    }

    #[test]
    fn nothing_is_inline() {
        let page = page(None).into_string();
        for inline in [" style=", "<style", " onclick=", "javascript:"] {
            assert!(!page.contains(inline), "{inline}");
        }
        assert_eq!(page.matches("<script").count(), page.matches("<script src=").count());
    }
}
