//! The restored tables, with the settings that the template gives to its own.

use anyhow::{Context as _, Result};
use payments_model::UtcSecond;
use payments_store::AuditMonth;
use serde_json::{Value, json};

use crate::call::Call;
use crate::list::list;
use crate::note::{Kind, Note, Origin, Table};
use crate::stack::StackNow;
use crate::stages::clients::closed;
use crate::stages::switch::{held, stopped};
use crate::stages::{HOURS, describe_table, fact, latest, step, wait, window};
use crate::step::{Act, Fact, Read, Runner, Step, Want};

/// The steps that restore the tables. An import changes no setting, so each table gets those of the template here.
///
/// # Errors
/// If the stack is not this system's, or the log's backup is missing.
pub fn tables(note: &Note, stack: &StackNow, now: UtcSecond, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut ready = Vec::new();
    if note.hot.is_new() {
        ready.extend(stack.paused()?);
        ready.push(closed(stack)?);
    }
    if note.history.is_new() {
        let mut needs = ready.clone();
        needs.extend(note.hot.to.filter(|_| note.history.to.is_none()).map(|to| latest(&note.history.old, to)));
        let months = AuditMonth::between(note.hot.to.unwrap_or(now), now);
        steps.extend(months.iter().map(|month| Step { needs: needs.clone(), ..audit_trail(note, month) }));
    }
    for (kind, table) in note.each().into_iter().filter(|(_, table)| table.is_new()) {
        let mut made = made(kind, table, stack, runner)?;
        if let (Kind::History, None, Some(hot)) = (kind, table.to, note.hot.to) {
            made.needs.push(latest(&table.old, hot));
            made.done.push(of_table(&table.new, "RestoreSummary/RestoreDateTime", Want::Since(hot)));
        }
        if kind == Kind::Hot {
            made.needs.append(&mut ready);
        }
        let active = of_table(&table.new, "TableStatus", Want::Is(json!("ACTIVE")));
        let what = format!("Wait until {} is there, which takes hours for a large table", table.new);
        steps.extend([made, Step { within: HOURS, ..wait(what, vec![active]) }]);
        steps.extend(protected(table, stack)?);
        match kind {
            Kind::Hot => steps.extend(warm(table, stack, "PaymentsWarmWriteUnits", &["due", "unreported"])?),
            Kind::History => {
                steps.push(class(table, stack)?);
                steps.extend(warm(table, stack, "HistoryWarmWriteUnits", &[])?);
                steps.push(expiry(kind, table));
            }
            // The stream of the hot table stays off until all is brought back.
            Kind::Log => steps.extend([streamed(kind, table), expiry(kind, table)]),
        }
    }
    Ok(steps)
}

/// A fact of a table.
fn of_table(table: &str, part: &str, want: Want) -> Fact {
    let remedy = "look at the table, then run this again";
    fact(format!("{part} of {table}"), describe_table(table), &format!("/Table/{part}"), want, remedy)
}

/// Nothing brings back the audit trail that a restore of the long-term table takes.
fn audit_trail(note: &Note, month: &AuditMonth) -> Step {
    let path = std::path::PathBuf::from(format!("audit-{}-{month}.json", note.number));
    let partition = format!("AUDIT#{month}");
    let call = Call::aws_with("dynamodb query --table-name {} --key-condition-expression", &[&note.history.old])
        .with("pk = :month")
        .with("--expression-attribute-values")
        .with(json!({":month": {"S": partition}}).to_string());
    let done = Fact {
        name: path.display().to_string(),
        read: Read::Json(path.clone()),
        part: String::new(),
        of: None,
        want: Want::Trail(partition),
        remedy: "delete the file, then run this again".to_owned(),
    };
    let what = format!(
        "Keep the audit trail of {month}. If {} cannot be read, write {{\"Items\":[]}} to {} by hand",
        note.history.old,
        path.display()
    );
    Step { act: Act::Save(call, path), ..wait(what, vec![done]) }
}

/// Restores a table, or makes an empty one.
fn made(kind: Kind, table: &Table, stack: &StackNow, runner: &mut Runner<'_>) -> Result<Step> {
    let Table { old, new, origin, to } = table;
    let (what, call) = match origin {
        Origin::Backup => {
            let backup = newest_backup(table, runner)?;
            let words = "dynamodb restore-table-from-backup --target-table-name {} --backup-arn {}";
            (format!("Restore the backup that {old} left as {new}"), Call::aws_with(words, &[new, &backup]))
        }
        Origin::Empty => (format!("Make an empty {new}"), empty(new, stack)?),
        _ => {
            let to = to.map(|to| format!("--restore-date-time {to}"));
            let to = to.unwrap_or_else(|| "--use-latest-restorable-time".to_owned());
            let words = "dynamodb restore-table-to-point-in-time --source-table-name {} --target-table-name {}";
            (format!("Restore {old} as {new}"), Call::aws_with(&format!("{words} {to}"), &[old, new]))
        }
    };
    // A table of this name that was not restored like this is of another restore.
    let remedy = format!("it is another table: delete {new}, or start again with another --number");
    let mut needs = vec![Fact { remedy, ..of_table(new, "TableName", Want::Missing) }];
    let mut done = vec![of_table(new, "TableName", Want::There)];
    match origin {
        Origin::Table => {
            needs.push(window(old, *to, kind));
            done.push(of_table(new, "RestoreSummary/SourceTableArn", Want::Is(stack.table_arn(old).into())));
            done.extend(to.map(|to| of_table(new, "RestoreSummary/RestoreDateTime", Want::At(to))));
        }
        Origin::Backup => {
            done.push(of_table(new, "RestoreSummary/SourceBackupArn", Want::Is(newest_backup(table, runner)?.into())));
        }
        _ => {}
    }
    Ok(Step { needs, ..step(what, call, done) })
}

/// A deleted table has a backup of its last moment, for 35 days.
fn newest_backup(table: &Table, runner: &mut Runner<'_>) -> Result<String> {
    let call = Call::aws_with("dynamodb list-backups --backup-type SYSTEM --table-name {}", &[&table.old]);
    let backups = runner.read(&call)?;
    let backup = list(&call, &backups, "BackupSummaries")?.last().and_then(|it| it["BackupArn"].as_str());
    let backup = backup.with_context(|| format!("{} left no backup; start again with --log empty", table.old))?;
    Ok(backup.to_owned())
}

/// A prod stack encrypts its tables with its own key.
fn empty(table: &str, stack: &StackNow) -> Result<Call> {
    let call = Call::aws_with(
        "dynamodb create-table --table-name {} --billing-mode PAY_PER_REQUEST --attribute-definitions \
         AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S --key-schema \
         AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE",
        &[table],
    );
    if stack.parameter("Stage")? != "prod" {
        return Ok(call);
    }
    let key = stack.resource("DataKey")?;
    Ok(call.with("--sse-specification").with(format!("Enabled=true,SSEType=KMS,KMSMasterKeyId={key}")))
}

/// The settings that the template gives to each table.
fn protected(table: &Table, stack: &StackNow) -> Result<Vec<Step>> {
    let Table { new, .. } = table;
    let stage = stack.parameter("Stage")?;
    let arn = stack.table_arn(new);
    let tags = json!([{"Key": "Application", "Value": "scheduled-payments"}, {"Key": "Stage", "Value": stage}]);
    let tag =
        "dynamodb tag-resource --tags Key=Application,Value=scheduled-payments Key=Stage,Value={} --resource-arn {}";
    let list = Call::aws_with("dynamodb list-tags-of-resource --resource-arn {}", &[&arn]);
    let backups = "dynamodb update-continuous-backups --table-name {} \
                   --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true";
    Ok(vec![
        update(
            format!("Protect {new} from deletion"),
            new,
            "--deletion-protection-enabled",
            &[("DeletionProtectionEnabled", Want::Is(json!(true)))],
        ),
        step(
            format!("Tag {new}"),
            Call::aws_with(tag, &[stage, &arn]),
            vec![fact(format!("Tags of {new}"), list, "/Tags", Want::Is(tags), "tag it by hand")],
        ),
        step(
            format!("Back up {new} continuously"),
            Call::aws_with(backups, &[new]),
            vec![window(new, None, Kind::Hot)],
        ),
    ])
}

/// A change of a table's settings. DynamoDB accepts one at a time.
fn update(what: String, table: &str, words: &str, done: &[(&str, Want)]) -> Step {
    let call = Call::aws_with(&format!("dynamodb update-table --table-name {{}} {words}"), &[table]);
    let mut facts = vec![of_table(table, "TableStatus", Want::Is(json!("ACTIVE")))];
    facts.extend(done.iter().map(|(part, want)| of_table(table, part, want.clone())));
    Step { within: HOURS, ..step(what, call, facts) }
}

/// The throughput that a table and its indexes accept at once. A higher one is enough.
fn warm(table: &Table, stack: &StackNow, parameter: &str, indexes: &[&str]) -> Result<Vec<Step>> {
    let Table { new, .. } = table;
    let mut steps = Vec::new();
    let units = stack.number(parameter)?;
    if units > 0 {
        let words = format!("--warm-throughput WriteUnitsPerSecond={units}");
        let done = ("WarmThroughput/WriteUnitsPerSecond", Want::AtLeast(units));
        steps.push(update(format!("Warm {new}"), new, &words, &[done]));
    }
    let units = if indexes.is_empty() { 0 } else { stack.number("IndexWarmWriteUnits")? };
    for index in indexes.iter().filter(|_| units > 0) {
        let update = json!([{"Update": {"IndexName": index, "WarmThroughput": {"WriteUnitsPerSecond": units}}}]);
        let words = "dynamodb update-table --table-name {} --global-secondary-index-updates";
        let query =
            format!("Table.GlobalSecondaryIndexes[?IndexName=='{index}'].WarmThroughput.WriteUnitsPerSecond | [0]");
        let read = describe_table(new).with("--query").with(query);
        let name = format!("WarmThroughput of the index {index} of {new}");
        let done = vec![
            of_table(new, "TableStatus", Want::Is(json!("ACTIVE"))),
            fact(name, read, "", Want::AtLeast(units), "look at the index, then run this again"),
        ];
        let warmed = step(
            format!("Warm the index {index} of {new}"),
            Call::aws_with(words, &[new]).with(update.to_string()),
            done,
        );
        steps.push(Step { within: HOURS, ..warmed });
    }
    Ok(steps)
}

fn class(table: &Table, stack: &StackNow) -> Result<Step> {
    let Table { new, .. } = table;
    let class = stack.parameter("HistoryTableClass")?;
    let mut step = update(format!("Give {new} the class {class}"), new, &format!("--table-class {class}"), &[]);
    // DynamoDB does not name the class of a table that never had another.
    let read = describe_table(new).with("--query").with("Table.TableClassSummary.TableClass || 'STANDARD'");
    let want = Want::Is(json!(class));
    step.done.push(fact(format!("TableClass of {new}"), read, "", want, "look at the table, then run this again"));
    Ok(step)
}

/// Its items expire.
pub(super) fn expiry(kind: Kind, table: &Table) -> Step {
    let (new, attribute) = (&table.new, kind.expiry());
    let words = "dynamodb update-time-to-live --table-name {} \
                 --time-to-live-specification Enabled=true,AttributeName={}";
    let read = Call::aws_with("dynamodb describe-time-to-live --table-name {}", &[new]);
    let remedy = "another attribute cannot be replaced within an hour: run this again then";
    let done = fact(
        format!("AttributeName of the time to live of {new}"),
        read,
        "/TimeToLiveDescription/AttributeName",
        Want::Is(json!(attribute)),
        remedy,
    );
    step(format!("Switch on the time to live of {new}"), Call::aws_with(words, &[new, attribute]), vec![done])
}

/// Its changes are streamed.
pub(super) fn streamed(kind: Kind, table: &Table) -> Step {
    let view = kind.stream_view().unwrap_or_default();
    let words = format!("--stream-specification StreamEnabled=true,StreamViewType={view}");
    let specification = json!({"StreamEnabled": true, "StreamViewType": view});
    let done = [("StreamSpecification", Want::Is(specification)), ("LatestStreamArn", Want::There)];
    update(format!("Stream the changes of {}", table.new), &table.new, &words, &done)
}

/// The steps that disable each webhook endpoint of a restored long-term table, stop all claims and sends, and hold what was held: the
/// table may be older than a stop and a hold.
///
/// # Errors
/// If the table cannot be read.
pub fn endpoints(note: &Note, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    let (table, now) = (&note.history.new, note.begun()?.to_string());
    anyhow::ensure!(note.history.is_new(), "the long-term table {table} was not restored, so its endpoints stay");
    let query = Call::aws_with("dynamodb query --table-name {} --key-condition-expression", &[table])
        .with("pk = :webhooks AND sk >= :first")
        .with("--expression-attribute-values")
        .with(json!({":webhooks": {"S": "WEBHOOK#ENDPOINTS"}, ":first": {"S": "-"}}).to_string());
    let found = runner.read(&query)?;
    anyhow::ensure!(!found.is_null(), "{table} is missing; restore it first: `cargo restore tables`");
    let id = |item: &Value| Some(disabled(table, item["sk"]["S"].as_str()?, &now));
    let steps: Option<Vec<Step>> = list(&query, &found, "Items")?.iter().map(id).collect();
    let mut steps = steps.context("an endpoint without an id")?;
    steps.push(stopped(table, &now));
    steps.extend(held((&note.history.old, table), runner)?);
    Ok(steps)
}

fn disabled(table: &str, id: &str, now: &str) -> Step {
    let key: Value = json!({"pk": {"S": "WEBHOOK#ENDPOINTS"}, "sk": {"S": id}});
    let item = |name| Call::aws_with("dynamodb {} --table-name {} --key", &[name, table]).with(key.to_string());
    let call = item("update-item")
        .with("--update-expression")
        .with("SET disabledAt = :now")
        .with("--expression-attribute-values")
        .with(json!({":now": {"S": now}}).to_string());
    let read = item("get-item").with("--consistent-read");
    let name = format!("disabledAt of the endpoint {id}");
    step(
        format!("Disable the webhook endpoint {id}"),
        call,
        vec![fact(name, read, "/Item/disabledAt/S", Want::There, "run this again")],
    )
}
