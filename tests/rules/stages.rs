//! Compares the two stages: functions may use the key of prod, which is warm for the feed; dev is cold.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use daily_due_sweeper::SWEEP_EVERY;
use payments_boot::MARGIN;
use payments_machine::template::overrides;
use serde_json::{Value, json};

use crate::template::{FUNCTION, package, resources, template, text};

const BUCKET: &str = "AWS::S3::Bucket";
const KEY_POLICY: &str = "AWS::IAM::ManagedPolicy";

/// The feed: a million payments in half an hour.
const FEED_PER_SECOND: u64 = 1_000_000_u64.div_ceil(30 * 60);

/// The write units of a payment's details of 8 KB.
const UNITS_OF_DETAILS: u64 = 8_192 / 1_024;

/// The write units that a new on-demand table allows.
const UNITS_OF_A_NEW_TABLE: u64 = 4_000;

fn in_prod(then: &Value, otherwise: &Value) -> Value {
    json!({"!If": ["IsProd", then, otherwise]})
}

fn nothing() -> Value {
    json!({"!Ref": "AWS::NoValue"})
}

/// Encryption must neither stop a function nor allow it more.
#[test]
fn functions_use_the_key_through_the_services_that_they_call() -> Result<()> {
    let template = template()?;
    let mut services = BTreeMap::new();
    for (name, policy) in resources(&template, KEY_POLICY)? {
        assert_eq!(policy["Condition"], "IsProd", "{name}");
        let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_array().context("no statements")?;
        let [statement] = statements.as_slice() else { anyhow::bail!("{name}: one statement") };
        assert_eq!(statement["Resource"], json!({"!GetAtt": "DataKey.Arn"}), "{name}");
        let via = text(&statement["Condition"]["StringEquals"]["kms:ViaService"]["!Sub"])?;
        let service = via.strip_suffix(".${AWS::Region}.amazonaws.com").with_context(|| via.to_owned())?;
        services.insert(name, service);
    }
    for (name, function) in resources(&template, FUNCTION)? {
        let role = text(&function["Properties"]["Role"]["!GetAtt"])?.strip_suffix(".Arn").context("not a role")?;
        let policies = &template["Resources"][role]["Properties"]["ManagedPolicyArns"];
        assert_eq!(*policies, in_prod(&policies["!If"][1], &nothing()), "{name}");
        let policies = policies["!If"][1].as_array().with_context(|| name.to_owned())?;
        let service = |policy: &Value| services.get(text(&policy["!Ref"]).ok()?).copied();
        let found: Vec<&str> = policies.iter().filter_map(service).collect();
        let wanted: &[&str] = match package(function)? {
            "dispatch" | "settle" => &["dynamodb", "sqs"],
            "publish" | "query-account" | "report" | "seal" | "undo" => &["dynamodb", "s3"],
            "console" => &["dynamodb", "sqs", "s3"],
            _ => &["dynamodb"],
        };
        assert_eq!(found, wanted, "{name}");
    }
    Ok(())
}

/// Final files have no expiry, or a rule for attempts would delete them.
#[test]
fn only_attempts_expire() -> Result<()> {
    let template = template()?;
    for (name, bucket) in resources(&template, BUCKET)? {
        let rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"].as_array().context("no rules")?;
        let expire = rules.iter().any(|rule| !rule["ExpirationInDays"].is_null());
        assert_eq!(expire, name == "AttemptsBucket", "{name}");
        assert!(rules.iter().all(|rule| rule["Prefix"].is_null()), "{name} has two kinds of files");
    }
    Ok(())
}

/// An operator may put an older version back, so the bucket's policy does not say so, but the role of the function does.
#[test]
fn a_published_report_is_written_once_by_its_function() -> Result<()> {
    let template = template()?;
    let policies = &template["Resources"]["ReportRole"]["Properties"]["Policies"];
    let statements = policies[0]["PolicyDocument"]["Statement"].as_array().context("no statements")?;
    let reports = json!({ "!Sub": "${ReportsBucket.Arn}/reports/*" });
    let puts = statements.iter().filter(|statement| {
        let of = |value: &Value, one: &Value| *value == *one || value.as_array().is_some_and(|all| all.contains(one));
        of(&statement["Action"], &json!("s3:PutObject")) && of(&statement["Resource"], &reports)
    });
    let conditions: Vec<&Value> = puts.map(|statement| &statement["Condition"]).collect();
    assert_eq!(conditions, [&json!({ "Null": { "s3:if-none-match": "false" } })]);
    Ok(())
}

/// The model of the partitions (`tools/capacity`) reads the same values.
#[test]
fn prod_is_warm_for_the_feed_and_dev_is_not() -> Result<()> {
    for environment in ["default", "dev"] {
        let overrides = overrides(environment)?;
        assert!(overrides.keys().all(|name| !name.ends_with("WarmWriteUnits")), "{environment}: {overrides:?}");
    }
    let prod = overrides("prod")?;
    let units = |parameter| prod.get(parameter).context("prod is cold")?.parse::<u64>().context("units");
    let feed = FEED_PER_SECOND * UNITS_OF_DETAILS;
    ensure!(feed > UNITS_OF_A_NEW_TABLE && units("HistoryWarmWriteUnits")? > feed, "what the description says");
    Ok(())
}

/// The relations of the parameters that their descriptions state.
#[test]
fn the_default_paces_are_those_that_the_descriptions_state() -> Result<()> {
    let template = template()?;
    let default = |name: &str| template["Parameters"][name]["Default"].as_u64().context("no default");
    let shards = default("WriteShards")?;
    assert_eq!(shards, default("ReadShards")?);
    let claims = shards * default("ClaimsPerSecondPerShard")?;
    let settlements = default("SettleConcurrency")? * default("SettlementsPerSecond")?;
    assert_eq!((shards, claims, settlements, shards * default("MovesPerSecondPerShard")?), (32, 640, 640, 960));
    // A sweep claims until shortly before its timeout, and then nothing does until the next one begins.
    let timeout =
        template["Resources"]["DailyDueSweeperFunction"]["Properties"]["Timeout"].as_u64().context("timeout")?;
    let every = u64::try_from(SWEEP_EVERY.num_seconds())?;
    ensure!(timeout < every, "the next sweep begins before the timeout");
    let claimed = claims * (timeout - MARGIN.as_secs()) / every;
    assert_eq!((timeout - MARGIN.as_secs(), claimed), (279, 595));
    ensure!(claimed > FEED_PER_SECOND && settlements > FEED_PER_SECOND, "{claimed} claims: the feed is faster");
    // A unit for each create, claim, redrive and settlement, and 1,000 for a report.
    assert_eq!(FEED_PER_SECOND + 2 * claims + settlements + 1_000, 3_476);
    // One for a create, two for a claim and for a settlement.
    assert_eq!(FEED_PER_SECOND + 2 * claims + 2 * settlements, 3_116);
    Ok(())
}

#[test]
fn sam_environments_set_existing_parameters() -> Result<()> {
    let template = template()?;
    for (environment, stage) in [("default", "dev"), ("dev", "dev"), ("prod", "prod")] {
        let overrides = overrides(environment)?;
        assert_eq!(overrides.get("Stage").map(String::as_str), Some(stage), "{environment}");
        for name in overrides.keys() {
            assert!(!template["Parameters"][name].is_null(), "{environment} sets {name}, which is not a parameter");
        }
    }
    Ok(())
}
