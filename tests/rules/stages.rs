//! Compares the two stages: prod keeps payment data, encrypts it with its own key and is warm for the feed; dev is
//! cold, and is deleted with its stack.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use daily_due_sweeper::SWEEP_EVERY;
use payments_boot::MARGIN;
use serde_json::{Value, json};

use crate::template::{FUNCTION, package, resources, template, text};

const TABLE: &str = "AWS::DynamoDB::Table";
const QUEUE: &str = "AWS::SQS::Queue";
const BUCKET: &str = "AWS::S3::Bucket";
const BUCKET_POLICY: &str = "AWS::S3::BucketPolicy";
const USER_POOL: &str = "AWS::Cognito::UserPool";
const KEY: &str = "AWS::KMS::Key";
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

#[test]
fn payment_data_outlives_a_prod_stack_and_is_deleted_with_a_dev_one() -> Result<()> {
    let template = template()?;
    assert_eq!(template["Conditions"]["IsProd"], json!({"!Equals": [{"!Ref": "Stage"}, "prod"]}));
    let kept = in_prod(&json!("Retain"), &json!("Delete"));
    // A protected user pool cannot be deleted: without these policies, the rollback of a first deployment would end there.
    for kind in [TABLE, BUCKET, BUCKET_POLICY, USER_POOL] {
        for (name, resource) in resources(&template, kind)? {
            assert_eq!((&resource["DeletionPolicy"], &resource["UpdateReplacePolicy"]), (&kept, &kept), "{name}");
        }
    }
    for (name, table) in resources(&template, TABLE)? {
        let table = &table["Properties"];
        assert_eq!(table["DeletionProtectionEnabled"], in_prod(&json!(true), &json!(false)), "{name}");
        assert_eq!(table["PointInTimeRecoverySpecification"], json!({"PointInTimeRecoveryEnabled": true}), "{name}");
    }
    for (name, bucket) in resources(&template, BUCKET)? {
        let versions = in_prod(&json!({"Status": "Enabled"}), &nothing());
        assert_eq!(bucket["Properties"]["VersioningConfiguration"], versions, "{name}");
    }
    Ok(())
}

#[test]
fn payment_data_is_encrypted_with_the_key_of_prod() -> Result<()> {
    let template = template()?;
    let [(id, key)] = resources(&template, KEY)?[..] else { anyhow::bail!("one key") };
    assert_eq!((&key["Condition"], &key["Properties"]["EnableKeyRotation"]), (&json!("IsProd"), &json!(true)));
    // These settings cannot be changed later.
    assert_eq!(key["Properties"]["MultiRegion"], true);
    assert_eq!((&key["DeletionPolicy"], &key["UpdateReplacePolicy"]), (&json!("Retain"), &json!("Retain")));
    let arn = json!({"!GetAtt": format!("{id}.Arn")});
    for (name, table) in resources(&template, TABLE)? {
        let own = in_prod(&json!({"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": arn}), &nothing());
        assert_eq!(table["Properties"]["SSESpecification"], own, "{name}");
    }
    for (name, queue) in resources(&template, QUEUE)? {
        assert_eq!(queue["Properties"]["KmsMasterKeyId"], in_prod(&arn, &nothing()), "{name}");
        assert_eq!(queue["Properties"]["SqsManagedSseEnabled"], in_prod(&nothing(), &json!(true)), "{name}");
    }
    for (name, bucket) in resources(&template, BUCKET)? {
        let rules = &bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"];
        let own = &rules[0]["!If"][1]["ServerSideEncryptionByDefault"];
        assert_eq!(rules[0]["!If"][0], "IsProd", "{name}");
        assert_eq!(*own, json!({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn}), "{name}");
    }
    Ok(())
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
            "publish" | "report" => &["dynamodb", "s3"],
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

/// Whatever came in a file's place would be read as what happened.
#[test]
fn files_of_the_journal_are_written_once() -> Result<()> {
    let template = template()?;
    let policy = &template["Resources"]["ReportsBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"];
    let statements = policy.as_array().context("no statements")?;
    let once =
        statements.iter().find(|statement| statement["Sid"] == "JournalIsWrittenOnce").context("no statement")?;
    assert_eq!(
        (&once["Effect"], &once["Principal"], &once["Action"], &once["Resource"]),
        (&json!("Deny"), &json!("*"), &json!("s3:PutObject"), &json!({"!Sub": "${ReportsBucket.Arn}/journal/*"}))
    );
    assert_eq!(once["Condition"], json!({"Null": {"s3:if-none-match": "true"}}));
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
    const WARM: [(&str, &str); 3] = [
        ("HasWarmHistory", "HistoryWarmWriteUnits"),
        ("HasWarmPayments", "PaymentsWarmWriteUnits"),
        ("HasWarmIndexes", "IndexWarmWriteUnits"),
    ];
    let template = template()?;
    let [history, payments, by_shard] = WARM.map(
        |(condition, parameter)| json!({"!If": [condition, {"WriteUnitsPerSecond": {"!Ref": parameter}}, nothing()]}),
    );
    let tables = &template["Resources"];
    assert_eq!(tables["HistoryTable"]["Properties"]["WarmThroughput"], history);
    assert_eq!(tables["PaymentsTable"]["Properties"]["WarmThroughput"], payments);
    let indexes = &tables["PaymentsTable"]["Properties"]["GlobalSecondaryIndexes"];
    for (index, name) in ["due", "unreported"].into_iter().enumerate() {
        assert_eq!((&indexes[index]["IndexName"], &indexes[index]["WarmThroughput"]), (&json!(name), &by_shard));
    }
    let (dev, prod) = (overrides("dev")?, overrides("prod")?);
    for (condition, parameter) in WARM {
        assert_eq!(template["Conditions"][condition], json!({"!Not": [{"!Equals": [{"!Ref": parameter}, "0"]}]}));
        assert_eq!(template["Parameters"][parameter]["Default"], 0);
        assert_eq!((overrides("default")?.get(parameter), dev.get(parameter)), (None, None));
    }
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
    let settle = &template["Resources"]["SettleFunction"]["Properties"];
    let scaling = &settle["Events"]["Report"]["Properties"]["ScalingConfig"];
    assert_eq!(*scaling, json!({"MaximumConcurrency": {"!Ref": "SettleConcurrency"}}));
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

/// The parameters of an environment in `samconfig.toml`.
pub(crate) fn overrides(environment: &str) -> Result<BTreeMap<String, String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../samconfig.toml");
    let config = std::fs::read_to_string(path).context(path)?;
    let section = format!("[{environment}.global.parameters]\n");
    let (_, rest) = config.split_once(&section).with_context(|| section.clone())?;
    let line = rest.lines().find_map(|line| line.strip_prefix("parameter_overrides = ")).context("no overrides")?;
    let all: Vec<String> = serde_json::from_str(line).context("not a list of texts")?;
    let pair = |it: &String| Some(it.split_once('=')?).map(|(name, value)| (name.to_owned(), value.to_owned()));
    all.iter().map(|it| pair(it).with_context(|| it.clone())).collect()
}
