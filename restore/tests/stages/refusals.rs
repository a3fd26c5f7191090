//! Worlds that are not as a stage needs them: each is refused, and nothing is done.

use anyhow::Result;
use payments_restore::Origin;
use payments_restore::stages::Start;

use crate::prepared::{hot, log, noted, ready, stage};
use crate::world::World;

/// A read that finds another world than a stage needs: the stage, the read and its answer.
const OTHERWISE: [(&str, &str, &str); 37] = [
    (
        "close",
        concat!(
            "aws cloudformation describe-stacks --stack-name payments-prod --query ",
            r"'Stacks[0].Parameters[?ParameterKey=='\''Paused'\''].ParameterValue | [0]'"
        ),
        r#""none""#,
    ),
    (
        "close",
        MAPPINGS,
        r#"{"EventSourceMappings":[{"UUID":"mapping-1","State":"Disabled"},{"UUID":"mapping-2","State":"Enabled"}]}"#,
    ),
    (
        "close",
        "aws scheduler list-schedules",
        r#"{"Schedules":[{"Name":"DailyDueSweeperFunctionSweep","State":"ENABLED"}]}"#,
    ),
    ("begin", LIMITS, OPEN),
    ("begin", AGE, "90000.5"),
    ("begin", MAPPINGS, UNCOUNTED),
    (
        "begin",
        MAPPINGS,
        r#"{"EventSourceMappings":[{"UUID":"mapping-1","State":"Disabled"},{"UUID":"mapping-2","State":"Disabled"}]}"#,
    ),
    ("begin", LIMITS, r#"{"LastUpdatedDate":"2026-11-20T09:57:01+00:00"}"#),
    ("begin", STATUS, r#""UPDATE_COMPLETE_CLEANUP_IN_PROGRESS""#),
    ("begin", EVENT, r#""2026-11-20T09:45:01.001Z""#),
    ("files", EVENT, r#""2026-11-20T09:45:01.001Z""#),
    (
        "tables",
        RESTORED,
        r#"{"Table":{"TableName":"payments-prod-restored-hot-1","RestoreSummary":{"SourceTableArn":"arn:aws:dynamodb:eu-west-2:111122223333:table/other"}}}"#,
    ),
    (
        "tables",
        RESTORED,
        r#"{"Table":{"TableName":"payments-prod-restored-hot-1","RestoreSummary":{"SourceTableArn":"arn:aws:dynamodb:eu-west-2:111122223333:table/hot","RestoreDateTime":"2026-11-20T08:59:59+00:00"}}}"#,
    ),
    ("tables", LIMITS, OPEN),
    ("tables-all", LIMITS, OPEN),
    (
        "tables",
        "aws scheduler list-schedules",
        r#"{"Schedules":[{"Name":"DailyDueSweeperFunctionSweep","State":"DISABLED"},{"Name":"DailyDueSweeperFunctionRedrive","State":"ENABLED"}]}"#,
    ),
    (
        "tables",
        BACKUPS,
        r#"{"ContinuousBackupsDescription":{"PointInTimeRecoveryDescription":
        {"EarliestRestorableDateTime":"2026-11-20T09:00:01+00:00"}}}"#,
    ),
    (
        "tables",
        BACKUPS,
        r#"{"ContinuousBackupsDescription":{"PointInTimeRecoveryDescription":
        {"LatestRestorableDateTime":1795165199.9}}}"#,
    ),
    ("changes", "git status --porcelain --untracked-files=no -- template.yaml", r#"" M template.yaml""#),
    ("changes", SET, r#"{"Status":"CREATE_COMPLETE","Description":"commit 0ther"}"#),
    ("changes", SET, r#"{"Status":"FAILED","Description":"commit c0ffee"}"#),
    ("import", SET, r#"{"Status":"CREATE_PENDING"}"#),
    ("import", "git rev-parse HEAD", r#""0ther""#),
    ("import", SET, r#"{"ExecutionStatus":"EXECUTE_FAILED"}"#),
    ("import", LIMITS, OPEN),
    ("import, done", LIMITS, OPEN),
    ("import", SET, r#"{"Changes":[]}"#),
    (
        "import",
        SET,
        r#"{"Changes":[
        {"ResourceChange":{"Action":"Import","LogicalResourceId":"PaymentsTable2"}},
        {"ResourceChange":{"Action":"Remove","LogicalResourceId":"PaymentsTable","PolicyAction":"Delete"}}]}"#,
    ),
    (
        "import",
        SET,
        r#"{"Changes":[
        {"ResourceChange":{"Action":"Import","LogicalResourceId":"PaymentsTable2"}},
        {"ResourceChange":{"Action":"Remove","LogicalResourceId":"PaymentsTable","PolicyAction":"Retain"}},
        {"ResourceChange":{"Action":"Modify","LogicalResourceId":"PublishFunctionSegmentAppended","Replacement":"True"}},
        {"ResourceChange":{"Action":"Modify","LogicalResourceId":"ReportsBucket","ResourceType":"AWS::S3::Bucket","Replacement":"Conditional"}},
        {"ResourceChange":{"Action":"Add","LogicalResourceId":"LogTable2","ResourceType":"AWS::DynamoDB::Table"}}]}"#,
    ),
    ("import", MAPPINGS, r#"{"EventSourceMappings":[{"UUID":"mapping-1","State":"Enabled"}]}"#),
    ("import of all", SET, "{}"),
    ("import", OLD_INDEXES, r#"["due","unreported"]"#),
    (
        "tables-all",
        HISTORY_BACKUPS,
        r#"{"ContinuousBackupsDescription":{"PointInTimeRecoveryDescription":{"LatestRestorableDateTime":"2026-11-20T08:59:59+00:00"}}}"#,
    ),
    ("open", HOT_OUTPUT, r#""hot""#),
    ("finish before the rebuild", AGE, "null"),
    ("finish of the log", AGE, "null"),
    ("finish of a used table", MAPPED, r#""arn:aws:dynamodb:eu-west-2:1:table/older/stream/1""#),
];

const AGE: &str = concat!(
    "aws cloudwatch get-metric-statistics --namespace AWS/Lambda --metric-name IteratorAge --dimensions ",
    "Name=FunctionName,Value=stream-aggregator --start-time 2026-11-20T09:50:00Z --end-time 2026-11-20T10:00:00Z ",
    "--period 60 --statistics Maximum --query 'sort_by(Datapoints, &Timestamp)[-1].Maximum'"
);
pub(crate) const STACK: &str = "aws cloudformation describe-stacks --stack-name payments-prod";
/// The aggregator's mapping is disabled.
const UNCOUNTED: &str = r#"{"EventSourceMappings":[{"UUID":"mapping-1","State":"Disabled"},{"UUID":"mapping-2","State":"Disabled"},{"UUID":"mapping-3","State":"Disabled"}]}"#;
pub(crate) const STATUS: &str =
    "aws cloudformation describe-stacks --stack-name payments-prod --query 'Stacks[0].StackStatus'";
const EVENT: &str = concat!(
    "aws cloudformation describe-stack-events --stack-name payments-prod --max-items 1 --query ",
    "'StackEvents[0].Timestamp'"
);
const RESTORED: &str = "aws dynamodb describe-table --table-name payments-prod-restored-hot-1";
const OLD_INDEXES: &str =
    "aws dynamodb describe-table --table-name hot --query 'Table.GlobalSecondaryIndexes[].IndexName'";
const HISTORY_BACKUPS: &str = "aws dynamodb describe-continuous-backups --table-name history";
pub(crate) const BACKUPS: &str = "aws dynamodb describe-continuous-backups --table-name hot";
pub(crate) const HOT_OUTPUT: &str = concat!(
    "aws cloudformation describe-stacks --stack-name payments-prod --query ",
    r"'Stacks[0].Outputs[?OutputKey=='\''PaymentsTableName'\''].OutputValue | [0]'"
);
const LIMITS: &str = "aws apigatewayv2 get-stage --api-id api --stage-name '$default'";
const MAPPINGS: &str = "aws lambda list-event-source-mappings";
const MAPPED: &str = concat!(
    "aws lambda list-event-source-mappings --function-name stream-aggregator --query ",
    r"'EventSourceMappings[?!contains(EventSourceArn, '\'':table/hot/'\'')].EventSourceArn | [0]'"
);
const OPEN: &str = r#"{"RouteSettings":{"POST /payment-batches":{"ThrottlingRateLimit":10}}}"#;
pub(crate) const SET: &str =
    "aws cloudformation describe-change-set --stack-name payments-prod --change-set-name restored-1";

#[test]
fn a_stage_is_refused_if_the_world_is_not_as_its_plan() -> Result<()> {
    let (mut refusals, mut accepted) = (Vec::new(), Vec::new());
    for (name, read, answer) in OTHERWISE {
        let run = |is_apply| {
            let mut world = World::new()?;
            let (note, steps) = match name {
                "finish before the rebuild" => (noted(&mut world, &hot())?, stage("finish")?.1),
                "finish of the log" => (noted(&mut world, &log(Origin::Table, None))?, stage("finish")?.1),
                "finish of a used table" => (noted(&mut world, &Start { used: true, ..hot() })?, stage("finish")?.1),
                "import of all" => (ready(&mut world, "endpoints")?, stage("import")?.1),
                "import, done" => {
                    let (note, import) = (ready(&mut world, "import")?, stage("import")?.1);
                    world.stage(true, &note, import)?;
                    world.acts.clear();
                    (note, import)
                }
                _ => (ready(&mut world, name)?, stage(name)?.1),
            };
            world.set(&format!("{read} => {answer}"))?;
            let refused = world.stage(is_apply, &note, steps).map_err(|error| format!("{error:#}"));
            anyhow::Ok((refused, world.acts))
        };
        let (Err(refusal), acts) = run(false)? else {
            accepted.push((name, read, answer));
            continue;
        };
        assert_eq!((run(true)?, acts), ((Err(refusal.clone()), Vec::new()), Vec::new()), "{name}");
        refusals.push(format!("{name}: {refusal}"));
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
    insta::assert_snapshot!("refusals", refusals.join("\n\n"));
    Ok(())
}
