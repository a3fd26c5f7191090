//! `cargo local --require-tokens` over real HTTP: how to get a token, and how it is checked.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use payments_local::token::Issuer;
use payments_local::{Bank, Gateway, Options, System, welcome};
use payments_machine::environment::AUDIENCE;
use payments_machine::links::ReportLinks;
use payments_tests::World;
use serde_json::{Value, json};

use crate::laptop::gateway::{exchange, fixed_clock, options};

/// A change of a good token's claims.
type Change = fn(&mut Value, DateTime<Utc>);

#[tokio::test]
async fn the_gateway_accepts_only_valid_tokens_of_its_issuer() -> Result<()> {
    let world = World::open().await?;
    let clock = fixed_clock();
    let now = clock.instant();
    let issuer = Arc::new(Issuer::new("custom:accounts")?);
    let stranger = Issuer::new("custom:accounts")?;
    let reports = ReportLinks::over(Arc::clone(&world.outside.reports));
    let bank = Bank { functions: world.functions().clone(), clock, zone: "Europe/London".parse()?, reports };
    let gateway = Gateway::start(0, bank, Some(Arc::clone(&issuer)), None).await?;
    let good = issuer.claims("payments/read", &["acc-1".to_owned()], now);
    let changed = |change: Change| {
        let mut claims = good.clone();
        change(&mut claims, now);
        issuer.sign(&claims).map(|token| format!("Bearer {token}"))
    };
    let token = issuer.sign(&good)?;
    let (signed, _) = token.rsplit_once('.').context("a signature")?;
    let refused = [
        ("nothing", String::new()),
        ("no token", "Bearer x".to_owned()),
        ("no signature", format!("Bearer {signed}.")),
        ("an unsigned token", format!("Bearer eyJhbGciOiJub25lIn0.{}.", signed.rsplit('.').next().unwrap_or_default())),
        ("another key", format!("Bearer {}", stranger.sign(&good)?)),
        ("another way to send it", format!("Basic {token}")),
        ("claims that were altered", format!("Bearer {}", token.replacen(".ey", ".eyA", 1))),
        ("it is over", changed(|claims, now| claims["exp"] = json!(now.timestamp()))?),
        ("without an end", changed(|claims, _| claims["exp"] = Value::Null)?),
        ("not yet", changed(|claims, now| claims["nbf"] = json!((now + TimeDelta::seconds(1)).timestamp()))?),
        ("another issuer", changed(|claims, _| claims["iss"] = json!("https://login.bank.example"))?),
        ("another client", changed(|claims, _| claims["client_id"] = json!("somebody"))?),
        // The audience is checked before the client.
        ("another audience", changed(|claims, _| claims["aud"] = json!(["somebody"]))?),
    ];
    for (what, header) in refused {
        let reply = list(&gateway.url(), "acc-1", &header).await?;
        assert!(reply.starts_with("HTTP/1.1 401 Unauthorized"), "{what}: {reply}");
        assert!(reply.ends_with(r#"{"message":"Unauthorized"}"#), "{what}: {reply}");
        assert!(reply.contains("www-authenticate: Bearer"), "{what}: {reply}");
    }
    for (what, header) in [
        ("as it is", format!("Bearer {token}")),
        ("bare", token.clone()),
        ("for us among others", changed(|claims, _| claims["aud"] = json!(["somebody", AUDIENCE]))?),
    ] {
        let reply = list(&gateway.url(), "acc-1", &header).await?;
        assert!(reply.starts_with("HTTP/1.1 200 OK"), "{what}: {reply}");
        let other = list(&gateway.url(), "acc-2", &header).await?;
        assert!(other.starts_with("HTTP/1.1 404"), "{what}: {other}");
    }
    gateway.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_welcome_says_where_to_get_a_token() -> Result<()> {
    let system = System::start(&Options { require_tokens: true, ..options()? }, &fixed_clock()).await?;
    let api = system.api_url();
    for (form, account, status) in [
        ("grant_type=client_credentials", "acc-1", 200),
        ("grant_type=client_credentials&scope=payments%2Fread", "acc-1", 200),
        ("grant_type=client_credentials&scope=payments/write+openid", "acc-1", 403),
        ("grant_type=client_credentials&account=acc-1&account=acc-2", "acc-2", 200),
        ("grant_type=client_credentials&account=acc-1", "acc-2", 404),
    ] {
        let reply = list(&api, account, &format!("Bearer {}", token(&api, form).await?)).await?;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{form}: {reply}");
    }
    assert!(ask_for_token(&api, "grant_type=password").await?.starts_with("HTTP/1.1 400 "));
    let text = welcome::with_tokens("Create a payment.\n\n  curl -i a\n\n  curl b", &api);
    assert!(text.contains(&format!("{api}/oauth2/token -d grant_type=client_credentials")), "{text}");
    assert_eq!(text.matches(r#"  curl --oauth2-bearer "$TOKEN" "#).count(), 2, "{text}");
    system.stop().await
}

async fn list(api: &str, account: &str, authorization: &str) -> Result<String> {
    let request = format!("GET /accounts/{account}/payments HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n");
    exchange(api, &format!("{request}Authorization: {authorization}\n\n")).await
}

async fn ask_for_token(api: &str, form: &str) -> Result<String> {
    let request = "POST /oauth2/token HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n";
    exchange(api, &format!("{request}Content-Length: {}\n\n{form}", form.len())).await
}

async fn token(api: &str, form: &str) -> Result<String> {
    let reply = ask_for_token(api, form).await?;
    let (_, body) = reply.split_once("\r\n\r\n").context("no body")?;
    let body: Value = serde_json::from_str(body)?;
    body["access_token"].as_str().map(str::to_owned).with_context(|| reply.clone())
}
