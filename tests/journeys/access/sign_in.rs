//! Signing in to the console of `cargo local --require-tokens`: authorization codes with PKCE, and refusals.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use form_urlencoded::{Serializer, parse};
use payments_boot::Clock;
use payments_local::token::Issuer;
use payments_local::{Bank, Gateway};
use payments_machine::links::ReportLinks;

use crate::laptop::{Answer, get, get_with, post};

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// The scopes that the console asks for.
const SCOPES: &str = "openid payments/inspect payments/operate payments/approve";

/// A text that would be a script if it were not escaped.
const HOSTILE: &str = "\"><script>alert(1)</script>";

/// A change of a good request: a parameter, and its value instead.
type Change<'c> = (&'c str, Option<&'c str>);

struct Provider {
    /// Kept, because its end is that of its engine.
    _world: World,
    gateway: Gateway,
    api: String,
    console: String,
    seconds: Arc<AtomicI64>,
}

impl Provider {
    async fn start() -> Result<Self> {
        let world = World::open().await?;
        let seconds = Arc::new(AtomicI64::new(1_795_168_800));
        let shown = Arc::clone(&seconds);
        let now = move || DateTime::from_timestamp(shown.load(Ordering::SeqCst), 0).unwrap_or_default();
        let bank = Bank {
            functions: world.functions().clone(),
            clock: Clock::simulated(now, |_| {}),
            zone: "Europe/London".parse()?,
            reports: ReportLinks::over(Arc::clone(&world.outside.reports)),
        };
        let issuer = Arc::new(Issuer::new("custom:accounts")?);
        let gateway = Gateway::start(0, bank, Some(issuer), None).await?;
        let (api, console) = (gateway.url(), format!("{}/console", gateway.url()));
        Ok(Self { _world: world, gateway, api, console, seconds })
    }

    /// A request for a code, as the console makes it, with these changes.
    fn asked(&self, changes: &[Change<'_>]) -> String {
        let good = [
            ("response_type", "code"),
            ("client_id", "local-console"),
            ("redirect_uri", &self.console),
            ("scope", SCOPES),
            ("state", "a state"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        encoded(&good, changes)
    }

    /// The page on which a person chooses.
    async fn page(&self, changes: &[Change<'_>]) -> Result<Answer> {
        get(&self.api, &format!("/oauth2/authorize?{}", self.asked(changes))).await
    }

    /// The answer to a person who chose a role.
    async fn choose(&self, role: &str, headers: &str, changes: &[Change<'_>]) -> Result<Answer> {
        let form = format!("role={role}&{}", self.asked(changes));
        post(&self.api, "/oauth2/authorize", headers, &form).await
    }

    /// The status of a view that is asked for with a token.
    async fn view(&self, token: &str) -> Result<u16> {
        let header = format!("Authorization: Bearer {token}\n");
        Ok(get_with(&self.api, "/console/views/day", &header).await?.status)
    }

    /// The console's code for a person of this role.
    async fn code(&self, role: &str, changes: &[Change<'_>]) -> Result<String> {
        let reply = self.choose(role, "", changes).await?.with_status(303)?;
        let location = reply.header("location").context("a location")?;
        let query = location.strip_prefix(&format!("{}?", self.console)).context("the console")?;
        let answer: Vec<_> = parse(query.as_bytes()).into_owned().collect();
        assert_eq!(answer[1..], [("state".to_owned(), "a state".to_owned())], "{location}");
        assert_eq!(answer[0].0, "code", "{location}");
        Ok(answer[0].1.clone())
    }

    /// The answer of the token endpoint.
    async fn change(&self, code: &str, changes: &[Change<'_>]) -> Result<(bool, Value)> {
        let good = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", "local-console"),
            ("redirect_uri", &self.console),
            ("code_verifier", VERIFIER),
        ];
        let reply = post(&self.api, "/oauth2/token", "", &encoded(&good, changes)).await?;
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{reply}");
        assert!([200, 400].contains(&reply.status), "{reply}");
        Ok((reply.status == 200, reply.json()?))
    }

    fn wait(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_person_signs_in_to_the_console() -> Result<()> {
    let provider = Provider::start().await?;
    let page = provider.page(&[("state", Some(HOSTILE))]).await?.with_status(200)?.to_string();
    assert!(page.contains(&format!("; form-action 'self' {};", provider.api)), "{page}");
    assert!(page.contains("; frame-ancestors 'none'") && !page.contains("<script"), "{page}");
    for (role, scope, subject, status) in [
        ("look", "payments/inspect", "operator@example.com", 200),
        ("act", "payments/inspect payments/operate", "ana", 200),
        ("approve", "payments/inspect payments/approve", "ben", 200),
        ("customer", "payments/read", "customer@example.com", 403),
    ] {
        assert!(page.contains(&format!("value=\"{role}\"")), "{role}: {page}");
        let code = provider.code(role, &[]).await?;
        provider.wait(59);
        let (is_good, answer) = provider.change(&code, &[]).await?;
        assert!(is_good, "{role}: {answer}");
        assert_eq!((&answer["expires_in"], &answer["scope"]), (&json!(3_600), &json!(scope)));
        let token = answer["access_token"].as_str().context("a token")?;
        let claims = token.split('.').nth(1).context("claims")?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
        assert_eq!((&claims["client_id"], &claims["sub"]), (&json!("local-console"), &json!(subject)));
        assert_eq!(claims["custom:accounts"].is_null(), role != "customer");
        assert_eq!(provider.view(token).await?, status, "{role}");
        provider.wait(3_600);
        assert_eq!(provider.view(token).await?, 401, "{role}");
    }
    // The page offers only roles that the console asks for.
    let page = provider.page(&[("scope", Some("payments/inspect"))]).await?.body;
    assert!(page.contains("value=\"look\"") && !page.contains("value=\"act\""), "{page}");
    provider.gateway.stop().await
}

#[tokio::test]
async fn a_wrong_request_for_a_code_is_refused() -> Result<()> {
    let provider = Provider::start().await?;
    let (api, long) = (&provider.api, "x".repeat(2_000));
    let elsewhere = format!("{}@example.com/console", provider.api);
    let (below, asset) = (format!("{}/", provider.console), format!("{}?x=1", provider.console));
    // Shown to the person: nothing is sent to an address that is not the console's.
    for change in [
        ("client_id", Some("somebody")),
        ("client_id", Some(HOSTILE)),
        ("client_id", None),
        ("redirect_uri", Some("https://example.com/console")),
        ("redirect_uri", Some(HOSTILE)),
        ("redirect_uri", Some(&elsewhere)),
        ("redirect_uri", Some(&below)),
        ("redirect_uri", Some(&asset)),
        ("redirect_uri", Some("http://127.0.0.1/console")),
        ("redirect_uri", Some(api)),
        ("redirect_uri", Some(&long)),
        ("redirect_uri", None),
        ("state", Some(&long)),
    ] {
        for reply in [provider.page(&[change]).await?, provider.choose("act", "", &[change]).await?] {
            let seen = (reply.status, reply.header("location"), reply.body.contains("<script"));
            assert_eq!(seen, (400, None, false), "{change:?}: {reply}");
            assert!(reply.to_string().len() < 2_500, "{change:?}: it grows with the request: {reply}");
        }
    }
    // Sent to the console, which asked.
    let short = &CHALLENGE[1..];
    for (change, error) in [
        (("response_type", None), "invalid_request"),
        (("response_type", Some("token")), "unsupported_response_type"),
        (("code_challenge", None), "invalid_request"),
        (("code_challenge", Some(short)), "invalid_request"),
        (("code_challenge_method", None), "invalid_request"),
        (("code_challenge_method", Some("plain")), "invalid_request"),
        (("scope", None), "invalid_scope"),
        (("scope", Some("openid payments/read")), "invalid_scope"),
    ] {
        let want = format!("{}?error={error}&state=a+state", provider.console);
        for reply in [provider.page(&[change]).await?, provider.choose("act", "", &[change]).await?] {
            assert_eq!(reply.header("location"), Some(want.as_str()), "{change:?}: {reply}");
        }
    }
    let twice = format!("/oauth2/authorize?{}&code_challenge={CHALLENGE}", provider.asked(&[]));
    assert!(get(api, &twice).await?.header("location").is_some_and(|to| to.contains("error=invalid_request")));
    // A form of another site, of no role, and of one that was not offered.
    for (headers, role, changes) in [
        ("Sec-Fetch-Site: cross-site\n", "act", vec![]),
        ("Sec-Fetch-Site: same-site\n", "act", vec![]),
        ("", "", vec![]),
        ("", "root", vec![]),
        ("", "act", vec![("scope", Some("payments/inspect"))]),
    ] {
        let reply = provider.choose(role, headers, &changes).await?;
        assert_eq!(reply.status, 400, "{headers}{role}: {reply}");
    }
    provider.gateway.stop().await
}

#[tokio::test]
async fn a_code_is_worth_nothing_to_anybody_else() -> Result<()> {
    let provider = Provider::start().await?;
    let localhost = provider.console.replace("127.0.0.1", "localhost");
    for (what, change, error) in [
        ("another code", ("code", Some("x")), "invalid_grant"),
        ("no code", ("code", None), "invalid_request"),
        ("another verifier", ("code_verifier", Some(CHALLENGE)), "invalid_grant"),
        ("a short verifier", ("code_verifier", Some("x")), "invalid_grant"),
        ("no verifier", ("code_verifier", None), "invalid_request"),
        ("another redirect", ("redirect_uri", Some(localhost.as_str())), "invalid_grant"),
        ("no redirect", ("redirect_uri", None), "invalid_request"),
        ("another client", ("client_id", Some("local-client")), "invalid_client"),
        ("no client", ("client_id", None), "invalid_request"),
    ] {
        let code = provider.code("act", &[]).await?;
        assert_eq!(provider.change(&code, &[change]).await?, (false, json!({ "error": error })), "{what}");
        // A client that sends a wrong verifier gets no second try.
        let (is_good, _) = provider.change(&code, &[]).await?;
        assert_eq!(is_good, error == "invalid_request" || change.0 == "code", "{what}");
    }
    let refused = (false, json!({ "error": "invalid_grant" }));
    let used = provider.code("look", &[]).await?;
    assert!(provider.change(&used, &[]).await?.0);
    assert_eq!(provider.change(&used, &[]).await?, refused, "a used code");
    let old = provider.code("look", &[]).await?;
    provider.wait(60);
    assert_eq!(provider.change(&old, &[]).await?, refused, "an expired code");
    provider.gateway.stop().await
}

#[tokio::test]
async fn the_page_needs_no_token_and_each_view_does() -> Result<()> {
    let provider = Provider::start().await?;
    let page = get(&provider.api, "/console").await?.with_status(200)?.body;
    let assets: Vec<_> = page.split("\"/console/assets/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(assets.len() >= 3, "{page}");
    for asset in assets {
        let reply = get(&provider.api, &format!("/console/assets/{asset}")).await?.with_status(200)?;
        assert!(reply.head.contains("immutable"), "{asset}: {reply}");
    }
    for path in ["/console/views/day", "/console/views/nothing", "/console/", "/console/assets/a/b", "/counts"] {
        get(&provider.api, path).await?.with_status(401)?;
    }
    provider.gateway.stop().await
}

fn encoded(good: &[(&str, &str)], changes: &[Change<'_>]) -> String {
    let mut form = Serializer::new(String::new());
    for (name, value) in good {
        let change = changes.iter().find(|(changed, _)| changed == name);
        if let Some(value) = change.map_or(Some(*value), |(_, value)| *value) {
            form.append_pair(name, value);
        }
    }
    form.finish()
}
