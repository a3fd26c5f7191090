//! Permissions that a function's configuration requires, by the *AWS Lambda Developer Guide*: Lambda reads the event
//! source, writes the failure destination and the log with the function's role.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use payments_tests::Permission;
use serde_json::Value;

use crate::template::{FUNCTION, package, resources, text};

/// *Using Lambda with Amazon DynamoDB*: the calls of a stream mapping.
const OF_STREAM: [&str; 4] =
    ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"];

/// *Using Lambda with Amazon SQS*: the calls of a queue mapping.
const OF_QUEUE: [&str; 3] = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"];

/// Requirements of a failure destination of stream records.
const OF_FAILURES: [&str; 1] = ["sqs:SendMessage"];

/// Requirements of a log group that exists.
const OF_LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

/// The permissions that each function's configuration requires, by package.
pub(super) fn permissions(template: &Value) -> Result<BTreeMap<String, BTreeSet<Permission>>> {
    let functions = resources(template, FUNCTION)?.into_iter();
    functions
        .map(|(name, it)| Ok((package(it)?.to_owned(), permissions_of_function(it).with_context(|| name.to_owned())?)))
        .collect()
}

fn permissions_of_function(function: &Value) -> Result<BTreeSet<Permission>> {
    let properties = &function["Properties"];
    let mut permissions = BTreeSet::new();
    let mut require = |actions: &[&str], place: &str| {
        permissions.extend(actions.iter().map(|action| Permission {
            action: (*action).to_owned(),
            place: place.to_owned(),
            keys: String::new(),
        }));
    };
    require(&OF_LOG, text(&properties["LoggingConfig"]["LogGroup"]["!Ref"])?);
    for event in properties["Events"].as_object().context("no events")?.values() {
        let source = &event["Properties"];
        match text(&event["Type"])? {
            "DynamoDB" => require(&OF_STREAM, &format!("{}/stream/*", part_of(&source["Stream"], ".StreamArn")?)),
            "SQS" => require(&OF_QUEUE, part_of(&source["Queue"], ".Arn")?),
            // API Gateway and the scheduler invoke the function by its own policy, or by a role of the schedule.
            "HttpApi" | "ScheduleV2" => {}
            other => bail!("what does an event of {other} require?"),
        }
        let failures = &source["DestinationConfig"]["OnFailure"];
        if !failures.is_null() {
            ensure!(failures["Type"] == "SQS", "what does a destination of {} require?", failures["Type"]);
            require(&OF_FAILURES, part_of(&failures["Destination"], ".Arn")?);
        }
    }
    Ok(permissions)
}

/// The resource whose attribute this is.
fn part_of<'v>(value: &'v Value, attribute: &str) -> Result<&'v str> {
    text(&value["!GetAtt"])?.strip_suffix(attribute).with_context(|| format!("{value} is not an {attribute}"))
}
