//! Adds up the limits of routes: they leave room for the other functions, the other routes and each client.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use payments_boot::HTTP_CALL_TIMEOUT;
use payments_machine::template::overrides;
use serde_json::Value;

use super::chains::{AMEND, CANCEL, CREATE};
use crate::template::{API, FUNCTION, resources, template};
use crate::tree::read;

/// The concurrent invocations of an account by default, and how many of them AWS keeps unreserved.
const ACCOUNT_QUOTA: u64 = 1_000;
const UNRESERVED: u64 = 100;

/// The feed: a million payments in half an hour, in batches of 100.
const FEED_BATCHES_PER_SECOND: u64 = (1_000_000_u64 / 100).div_ceil(30 * 60);

/// The payments of a batch, and how many of them `ingest` creates at once.
const BATCH: u32 = 100;
const AT_ONCE: u32 = 16;

/// A slow call of DynamoDB on a usual day: three times the slowest usual read of `docs/performance.md`.
const USUAL_CALL: Duration = Duration::from_millis(45);

/// The shares of a route's limit: one client takes ten of them, and ten others take one each.
const SHARES: u64 = 20;
const CANCELS: &str = "POST /accounts/{accountId}/payments/{paymentId}/cancel";

/// The value of a property, for a parameter's value in this environment.
fn number(template: &Value, value: &Value, environment: &BTreeMap<String, String>) -> Result<u64> {
    let Some(parameter) = value["!Ref"].as_str() else { return value.as_u64().context("not a number") };
    let default = || template["Parameters"][parameter]["Default"].as_u64();
    let given = environment.get(parameter).map(|given| given.parse());
    given.transpose()?.or_else(default).with_context(|| parameter.to_owned())
}

/// The rate and the burst of a route.
fn limits(template: &Value, route: &str, environment: &BTreeMap<String, String>) -> Result<(u64, u64)> {
    let [(_, api)] = resources(template, API)?[..] else { anyhow::bail!("one API") };
    let settings = &api["Properties"]["RouteSettings"][route];
    let limit = |name: &str| number(template, &settings[name], environment).with_context(|| route.to_owned());
    Ok((limit("ThrottlingRateLimit")?, limit("ThrottlingBurstLimit")?))
}

/// The concurrent invocations of `ingest` while each of its routes gets as many requests as it accepts: those of the
/// rates, and those that the bursts add. `one` is the time of a single create, `batch` that of a batch.
fn concurrency_of_ingest(
    template: &Value,
    environment: &BTreeMap<String, String>,
    [one, batch, amendment, cancel]: [Duration; 4],
) -> Result<(u64, u64)> {
    let routes = [
        ("POST /accounts/{accountId}/payments", one),
        ("POST /payment-batches", batch),
        ("POST /accounts/{accountId}/payment-batches", batch),
        ("PUT /accounts/{accountId}/payments/{paymentId}", amendment),
        (CANCELS, cancel),
    ];
    let (mut steady, mut bursts) = (0, 0);
    for (route, longest) in routes {
        let (rate, burst) = limits(template, route, environment)?;
        steady += (u128::from(rate) * longest.as_millis()).div_ceil(1_000);
        bursts += burst;
    }
    Ok((u64::try_from(steady)?, bursts))
}

/// The concurrent invocations that the account reserves, and one function's part of them.
fn reserved(template: &Value, environment: &BTreeMap<String, String>, of: &str) -> Result<(u64, u64)> {
    let (mut all, mut own) = (0, 0);
    for (name, function) in resources(template, FUNCTION)? {
        let reserved = &function["Properties"]["ReservedConcurrentExecutions"]["!If"][1];
        if !reserved.is_null() {
            let reserved = number(template, reserved, environment)?;
            all += reserved;
            own += if name == of { reserved } else { 0 };
        }
    }
    Ok((all, own))
}

#[test]
fn ingest_leaves_concurrency_to_the_others_while_dynamodb_is_slow() -> Result<()> {
    let template = template()?;
    let slow = [
        CREATE.of_one(HTTP_CALL_TIMEOUT),
        CREATE.of_request(HTTP_CALL_TIMEOUT),
        AMEND.of_request(HTTP_CALL_TIMEOUT),
        CANCEL.of_request(HTTP_CALL_TIMEOUT),
    ];
    for environment in ["default", "dev", "prod"] {
        let given = overrides(environment)?;
        let (reserved, _) = reserved(&template, &given, "")?;
        ensure!(reserved <= ACCOUNT_QUOTA - UNRESERVED, "{environment}: {reserved} are reserved");
        let quota = format!("at least {}", reserved + UNRESERVED);
        let told = template["Parameters"]["ReserveConcurrency"]["Description"].as_str().unwrap_or_default();
        ensure!(told.contains(&quota), "the description of ReserveConcurrency names another quota than {quota}");
        ensure!(read("docs/deploy.md")?.contains(&quota), "docs/deploy.md names another quota than {quota}");
        let is_reserved = given.get("ReserveConcurrency").is_some_and(|given| given == "true");
        let (steady, bursts) = concurrency_of_ingest(&template, &given, slow)?;
        ensure!(
            is_reserved || steady + bursts <= ACCOUNT_QUOTA - UNRESERVED,
            "{environment}: ingest may take {} concurrent invocations",
            steady + bursts
        );
        assert_eq!(is_reserved, environment == "prod", "{environment}");
        let (batches, _) = limits(&template, "POST /payment-batches", &given)?;
        ensure!(batches > FEED_BATCHES_PER_SECOND, "{environment}: the feed needs room for its retries");
    }
    Ok(())
}

/// Without room for all routes, a client of one route would take the cancels of the others.
#[test]
fn the_reserve_of_ingest_holds_each_route_at_its_limit_on_a_usual_day() -> Result<()> {
    let template = template()?;
    let given = overrides("prod")?;
    let batch = CREATE.of_one(USUAL_CALL) * BATCH.div_ceil(AT_ONCE);
    let usual = [CREATE.of_one(USUAL_CALL), batch, AMEND.of_one(USUAL_CALL), CANCEL.of_one(USUAL_CALL)];
    let (steady, _) = concurrency_of_ingest(&template, &given, usual)?;
    let (_, reserved) = reserved(&template, &given, "IngestFunction")?;
    ensure!(steady <= reserved, "ingest takes {steady} of its {reserved} concurrent invocations");
    Ok(())
}

/// API Gateway's token bucket of one route: a request takes a token, and a second brings as many as the rate.
struct Bucket {
    rate: u64,
    burst: u64,
    tokens: u64,
}

impl Bucket {
    /// Returns whether each client's requests succeed for a minute. A client begins with all of a second's at once.
    fn serves(&mut self, each_second: &[u64]) -> Vec<bool> {
        let mut served = vec![true; each_second.len()];
        for _ in 0..60 {
            for (client, requests) in each_second.iter().enumerate() {
                for _ in 0..*requests {
                    let passes = self.tokens > 0;
                    self.tokens -= u64::from(passes);
                    served[client] &= passes;
                }
            }
            self.tokens = (self.tokens + self.rate).min(self.burst);
        }
        served
    }
}

/// One client at ten times its share does not hurt the others, whose requests come last. Above the limit it does, because an
/// HTTP API has no limit of one client.
#[test]
fn the_others_cancel_until_all_together_reach_the_limit_that_the_guide_names() -> Result<()> {
    let template = template()?;
    let guide = read("docs/deploy.md")?;
    for (environment, seconds) in [("dev", SHARES), ("prod", 1)] {
        let (rate, burst) = limits(&template, CANCELS, &overrides(environment)?)?;
        // In dev a share is less than one cancel a second, so the clients' seconds are longer.
        let (rate, burst) = (rate * seconds, burst * seconds);
        let share = rate / SHARES;
        let mut clients = [share; 11];
        clients[0] = 10 * share;
        let mut bucket = Bucket { rate, burst, tokens: burst };
        assert_eq!(bucket.serves(&clients), [true; 11], "{environment}");
        clients[0] = rate;
        let mut bucket = Bucket { rate, burst, tokens: burst };
        assert_eq!(bucket.serves(&clients)[1..], [false; 10], "{environment}: nothing bounds one client");
    }
    let prod = overrides("prod")?;
    for (route, what) in [
        ("POST /accounts/{accountId}/payments", "single creates"),
        ("POST /payment-batches", "batches"),
        ("POST /accounts/{accountId}/payment-batches", "batches of one account"),
        ("PUT /accounts/{accountId}/payments/{paymentId}", "amendments"),
        (CANCELS, "cancels"),
    ] {
        let of = |given: &BTreeMap<String, String>| Ok::<_, anyhow::Error>(limits(&template, route, given)?.0);
        let row = format!("| {what} | {} | {} |", of(&BTreeMap::new())?, of(&prod)?);
        ensure!(guide.contains(&row), "docs/deploy.md lacks the row {row}");
    }
    Ok(())
}
