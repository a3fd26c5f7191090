//! `cargo local --require-tokens` over real HTTP: the issue of tokens, and their check.

use chrono::{DateTime, TimeDelta, Utc};
use payments_local::token::Issuer;
use payments_local::{Bank, Gateway, welcome};
use payments_machine::environment::AUDIENCE;
use payments_machine::links::ReportLinks;
use payments_tests::prelude::*;

use crate::laptop::{Answer, fixed_clock, get_with, post, start};

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
        assert_eq!((reply.status, reply.body.as_str()), (401, r#"{"message":"Unauthorized"}"#), "{what}: {reply}");
        assert!(reply.head.contains("www-authenticate: Bearer"), "{what}: {reply}");
    }
    for (what, header) in [
        ("as it is", format!("Bearer {token}")),
        ("bare", token.clone()),
        ("for us among others", changed(|claims, _| claims["aud"] = json!(["somebody", AUDIENCE]))?),
    ] {
        for (account, status) in [("acc-1", 200), ("acc-2", 404)] {
            let reply = list(&gateway.url(), account, &header).await?;
            assert_eq!(reply.status, status, "{what}, {account}: {reply}");
        }
    }
    gateway.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_welcome_says_where_to_get_a_token() -> Result<()> {
    let system = start(|options| options.require_tokens = true).await?;
    let api = system.api_url();
    for (form, account, status) in [
        ("grant_type=client_credentials", "acc-1", 200),
        ("grant_type=client_credentials&scope=payments%2Fread", "acc-1", 200),
        ("grant_type=client_credentials&scope=payments/write+openid", "acc-1", 403),
        ("grant_type=client_credentials&account=acc-1&account=acc-2", "acc-2", 200),
        ("grant_type=client_credentials&account=acc-1", "acc-2", 404),
    ] {
        let answer = post(&api, "/oauth2/token", "", form).await?.with_status(200)?.json()?;
        let token = answer["access_token"].as_str().context("no token")?;
        let reply = list(&api, account, &format!("Bearer {token}")).await?;
        assert_eq!(reply.status, status, "{form}: {reply}");
    }
    post(&api, "/oauth2/token", "", "grant_type=password").await?.with_status(400)?;
    let text = welcome::with_tokens("Create a payment.\n\n  curl -i a\n\n  curl b", &api);
    assert!(text.contains(&format!("{api}/oauth2/token -d grant_type=client_credentials")), "{text}");
    assert_eq!(text.matches(r#"  curl --oauth2-bearer "$TOKEN" "#).count(), 2, "{text}");
    system.stop().await
}

async fn list(api: &str, account: &str, authorization: &str) -> Result<Answer> {
    get_with(api, &format!("/accounts/{account}/payments"), &format!("Authorization: {authorization}\n")).await
}
