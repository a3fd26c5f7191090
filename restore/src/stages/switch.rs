//! The switch of a restored long-term table: all is stopped, and held as in the old table, until somebody resumes.

use anyhow::{Result, ensure};
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::call::Call;
use crate::note::Note;
use crate::stages::{fact, step};
use crate::step::{Fact, Runner, Step, Want};

/// The actor of a stop, and of its end.
const RESTORE: &str = "b:restore";

/// Stops all, as the console does. A stop that an operator made, in the old table or the new one, stays that operator's.
pub(super) fn stopped((old, table): (&str, &str), now: &str, runner: &mut Runner<'_>) -> Result<Step> {
    let known = runner.read(&read(old))?;
    let is_stopped = known.pointer("/Item/stopped/BOOL") == Some(&json!(true));
    let of = |name: &str, other: &str| {
        let value = known.pointer(&format!("/Item/{name}")).filter(|_| is_stopped);
        value.cloned().unwrap_or_else(|| json!({ "S": other }))
    };
    let update = "SET stopped = :yes, stoppedAt = :since, #by = :by, #at = :at, reason = :why, \
                  heldDates = if_not_exists(heldDates, :none), version = if_not_exists(version, :zero) + :one";
    let values = json!({
        ":yes": {"BOOL": true}, ":by": of("by", RESTORE), ":at": of("at", now), ":since": of("stoppedAt", now),
        ":why": of("reason", "The table was restored."),
        ":none": {"L": []}, ":zero": {"N": "0"}, ":one": {"N": "1"},
    });
    let call = changed(table, update, &["by", "at"], &values);
    Ok(step("Stop all claims and sends, until somebody resumes", call, vec![self::is_stopped(table, true)]))
}

/// Holds the due dates that are held in the old table and not in the new one, if there are any. Where the old table is gone, nobody knows.
pub(super) fn held((old, new): (&str, &str), runner: &mut Runner<'_>) -> Result<Option<Step>> {
    let mut holds = |table: &str| -> Result<Vec<Value>> {
        let switch = runner.read(&read(table))?;
        Ok(switch.pointer("/Item/heldDates/L").and_then(Value::as_array).cloned().unwrap_or_default())
    };
    let (was, mut held) = (holds(old)?, holds(new)?);
    let missing: Vec<Value> = was.into_iter().filter(|hold| !held.contains(hold)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let what = format!("Hold the due dates that {old} holds: {} more", missing.len());
    held.extend(missing);
    let values = json!({":holds": {"L": held}, ":one": {"N": "1"}});
    let call = changed(new, "SET heldDates = :holds, version = version + :one", &[], &values);
    let done = fact("heldDates of the switch", read(new), "/Item/heldDates/L", Want::Is(held.into()), "run this again");
    Ok(Some(step(what, call, vec![done])))
}

/// The step that ends the stop of `cargo restore endpoints`. One that an operator made stays, and so do holds.
///
/// # Errors
/// If the long-term table was not restored, so that this restore stopped nothing.
pub fn resume(note: &Note, now: UtcSecond) -> Result<Vec<Step>> {
    let (table, now) = (&note.history.new, now.to_string());
    ensure!(note.history.is_new(), "the long-term table {table} was not restored, so this restore stopped nothing");
    let update = "SET stopped = :no, freedAt = :now, #by = :by, #at = :now, reason = :why, version = version + :one";
    let values = json!({
        ":yes": {"BOOL": true}, ":no": {"BOOL": false}, ":by": {"S": RESTORE}, ":now": {"S": now},
        ":why": {"S": "The restore is done."}, ":one": {"N": "1"},
    });
    // Somebody may stop after the look below.
    let call = changed(table, update, &["by", "at"], &values)
        .with("--condition-expression")
        .with("stopped = :yes AND #by = :by");
    let remedy =
        "an operator has stopped it; once that is right, edit the item as docs/operations.md says in Four eyes";
    let needs = vec![fact("by of the switch", read(table), "/Item/by/S", Want::Is(RESTORE.into()), remedy)];
    let resumed = step("Resume claims and sends", call, vec![is_stopped(table, false)]);
    Ok(vec![Step { needs, ..resumed }])
}

fn is_stopped(table: &str, stopped: bool) -> Fact {
    fact("stopped of the switch", read(table), "/Item/stopped/BOOL", Want::Is(stopped.into()), "run this again")
}

fn item(name: &str, table: &str) -> Call {
    let key = json!({"pk": {"S": "CONTROL"}, "sk": {"S": "SWITCH"}});
    Call::aws_with("dynamodb {} --table-name {} --key", &[name, table]).with(key.to_string())
}

fn read(table: &str) -> Call {
    item("get-item", table).with("--consistent-read")
}

/// An update of the switch; `names` are reserved words.
fn changed(table: &str, update: &str, names: &[&str], values: &Value) -> Call {
    let mut call = item("update-item", table).with("--update-expression").with(update);
    if !names.is_empty() {
        let names: Value = names.iter().map(|name| (format!("#{name}"), Value::from(*name))).collect();
        call = call.with("--expression-attribute-names").with(names.to_string());
    }
    call.with("--expression-attribute-values").with(values.to_string())
}
