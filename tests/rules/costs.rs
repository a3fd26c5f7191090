//! The cost of a stack without payments: resources that monitor depend on `Monitoring`, and whatever can have tags has
//! them, so that a bill can be told apart.

use anyhow::{Context as _, Result, ensure};
use payments_machine::template::overrides;
use serde_json::{Value, json};

use crate::template::{API, FUNCTION, resources, template, text};

/// The types that monitor.
const MONITORS: [&str; 2] = ["AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"];

/// The types that take tags, and the property with them: a list of keys and values, or a map. `.ci/check-tags.py` compares what
/// SAM makes of the template with the schemas of all types.
const TAGGED: [(&str, &str, bool); 13] = [
    ("AWS::ApiGatewayV2::DomainName", "Tags", false),
    ("AWS::CloudWatch::Alarm", "Tags", true),
    ("AWS::CloudWatch::Dashboard", "Tags", true),
    ("AWS::Cognito::UserPool", "UserPoolTags", false),
    ("AWS::DynamoDB::Table", "Tags", true),
    ("AWS::IAM::Role", "Tags", true),
    ("AWS::KMS::Key", "Tags", true),
    ("AWS::Logs::LogGroup", "Tags", true),
    ("AWS::S3::Bucket", "Tags", true),
    ("AWS::SNS::Topic", "Tags", true),
    ("AWS::SQS::Queue", "Tags", true),
    ("AWS::SecretsManager::Secret", "Tags", true),
    ("AWS::Serverless::HttpApi", "Tags", false),
];

/// The types that take none.
const WITHOUT_TAGS: [&str; 9] = [
    "AWS::ApiGatewayV2::ApiMapping",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolDomain",
    "AWS::Cognito::UserPoolResourceServer",
    "AWS::IAM::ManagedPolicy",
    "AWS::KMS::Alias",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SQS::QueuePolicy",
];

fn if_monitored(then: &Value, otherwise: &Value) -> Value {
    json!({ "!If": ["IsMonitored", then, otherwise] })
}

#[test]
fn what_monitors_hangs_on_monitoring() -> Result<()> {
    let template = template()?;
    for (environment, value) in [("default", "off"), ("dev", "off"), ("prod", "on")] {
        assert_eq!(overrides(environment)?.get("Monitoring").map(String::as_str), Some(value), "{environment}");
    }
    for (name, resource) in template["Resources"].as_object().context("no resources")? {
        let monitors = MONITORS.contains(&text(&resource["Type"])?);
        ensure!(monitors == (resource["Condition"] == "IsMonitored"), "{name}: {}", resource["Condition"]);
    }
    Ok(())
}

#[test]
fn routes_have_detailed_metrics_only_if_they_are_monitored() -> Result<()> {
    for (name, api) in resources(&template()?, API)? {
        let api = &api["Properties"];
        let own = api["RouteSettings"].as_object().context("no routes")?.values();
        for settings in own.chain([&api["DefaultRouteSettings"]]) {
            let wanted = if_monitored(&json!(true), &json!(false));
            assert_eq!(settings["DetailedMetricsEnabled"], wanted, "{name}: {settings}");
        }
    }
    Ok(())
}

#[test]
fn all_that_can_have_tags_has_them() -> Result<()> {
    let template = template()?;
    let map = json!({ "Application": "scheduled-payments", "Stage": { "!Ref": "Stage" } });
    let pairs = map.as_object().context("a map")?.iter().map(|(key, value)| json!({ "Key": key, "Value": value }));
    let list: Value = pairs.collect();
    for (name, resource) in template["Resources"].as_object().context("no resources")? {
        let (kind, properties) = (text(&resource["Type"])?, &resource["Properties"]);
        match TAGGED.iter().find(|(tagged, ..)| *tagged == kind) {
            Some((_, place, is_list)) => {
                assert_eq!(properties[*place], if *is_list { list.clone() } else { map.clone() }, "{name}");
            }
            // Every function's are global.
            None if kind == FUNCTION => ensure!(properties["Tags"].is_null(), "{name} has tags of its own"),
            None => ensure!(WITHOUT_TAGS.contains(&kind), "can {name} have tags? {kind} is new to this rule"),
        }
        if kind == API {
            assert_eq!(properties["PropagateTags"], true, "{name}: its stage has no tags");
        }
    }
    let global = &template["Globals"]["Function"];
    assert_eq!((&global["Tags"], &global["PropagateTags"]), (&map, &json!(true)));
    // Mappings, which SAM gives no tags, have those of the stack.
    let config = crate::tree::read("samconfig.toml")?;
    for (environment, stage) in [("default", "dev"), ("dev", "dev"), ("prod", "prod")] {
        let section = format!("[{environment}.deploy.parameters]\n");
        let (_, rest) = config.split_once(&section).with_context(|| section.clone())?;
        let tags = rest.lines().take_while(|line| !line.starts_with('[')).find(|line| line.starts_with("tags = "));
        assert_eq!(tags, Some(format!("tags = \"Application=scheduled-payments Stage={stage}\"").as_str()));
    }
    Ok(())
}
