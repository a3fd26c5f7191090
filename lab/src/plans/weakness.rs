//! Weaknesses: something that the functions get wrong, to show that a month finds it.
//!
//! Each is made outside of the functions: in their calls, in the answers to them, or in what they are told.

use chrono::{DateTime, TimeDelta, Utc};
use clap::ValueEnum;
use fastrand::Rng;
use payments_delivery::StreamSettings;
use payments_machine::Environment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::facts::attributes::text;
use crate::facts::heads::is_of_head;
use crate::plans::later::{self, RESTORE};
use crate::plans::weakening::{CHECKPOINTS, counting, is_of_log, remove_clause, remove_condition, remove_consistency};
use crate::random::happens;

/// A time that has passed, in seconds since 1970, and not so long ago that DynamoDB would ignore it.
const LONG_AGO: &str = "1735689600";

/// A weakness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weakness {
    /// Updates of heads lose their conditions.
    Unconditional,
    /// A cancel trusts what it has read, which may be a moment old.
    UnconditionalCancel,
    /// `settle` trusts what it has read, which may be a moment old.
    UnconditionalSettle,
    /// The sweep trusts what it has read, which may be a moment old.
    UnconditionalSweep,
    /// `settle` forgets the due key in its condition.
    ForgottenDueKey,
    /// `settle` writes the hot table first: now and then it ends before it writes the long-term table.
    HotFirst,
    /// `settle` completes an earlier settlement with the present time.
    SettledAnew,
    /// `recount` counts a settlement that only the long-term table knows yet.
    CountedInBetween,
    /// The report lets heads expire at once.
    EarlyExpiry,
    /// Reads lose their consistency.
    Inconsistent,
    /// The checkpoint of `stream-aggregator` is neither read nor a condition.
    NoCheckpoint,
    /// A transaction of counters loses the checkpoint, as if that were written afterwards.
    CheckpointOutside,
    /// A transaction of counters loses the counters.
    NoCounters,
    /// `stream-aggregator` appends to the log without its conditions.
    UnconditionalLog,
    /// The log has two lanes, one for half of the stream shards.
    Lanes,
    /// `stream-aggregator` takes a transaction that was cancelled for one that is done.
    IgnoredConflict,
    /// The mapping of `stream-aggregator` discards what has failed twice.
    DiscardedRecords,
    /// Details are written without the condition that there are none.
    OverwritingDetails,
    /// Now and then a create is answered before its head is written, and the sandbox ends.
    LostHead,
    /// The sweep looks back two hours, and not to the beginning.
    FixedLookBack,
    /// The sweep's clock is an hour ahead.
    EarlySweep,
    /// A redrive knows no last dispatch attempt.
    EndlessRedrive,
    /// No redrive runs.
    NoRedrive,
    /// The archive does not look whether a payment was reported.
    UnreportedArchive,
    /// Now and then the archive deletes a head whose copy is not written.
    LostCopy,
    /// The archive, a redate and a restore copy only the attributes that they know.
    ForgottenAttributes,
    /// Now and then the report does not take a payment out of the index.
    ForgottenMark,
    /// The report trusts an index, and does not read the heads again.
    TrustedIndex,
    /// `publish` moves on and does not wait for its file: now and then there is none.
    LostFile,
    /// `publish` sends to an endpoint whose lease it does not have.
    UnleasedWebhooks,
    /// An amendment forgets the version in its condition.
    UnversionedAmendment,
    /// Now and then an amendment's details are not written, and the head names them.
    LostAmendment,
    /// Now and then the details of a redate are not written, and the head names them.
    LostRedate,
    /// `dispatch` sends a payment's first details, and not those that its head names.
    FirstDetails,
    /// The list of an account does not read the index of the payments that moved.
    UnlistedMoved,
    /// The list of a date does not read the long-term table.
    UnlistedArchived,
    /// The counts leave out a lane.
    UncountedLane,
    /// `dispatch` acknowledges requests that SQS rejects.
    UnsentAcknowledged,
    /// `settle` acknowledges results whose calls failed.
    UnsettledAcknowledged,
}

impl Weakness {
    /// All weaknesses.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The function that a weakness of conditions is about; empty if it is about all.
    #[must_use]
    pub fn of_function(self) -> &'static str {
        match self {
            Self::UnconditionalCancel => "ingest",
            Self::UnconditionalSettle => "settle",
            Self::UnconditionalSweep => "daily-due-sweeper",
            _ => "",
        }
    }

    /// Weakens a call's input. Returns whether anything changed.
    pub fn weaken(self, function: &str, operation: &str, input: &mut Value) -> bool {
        let before = input.clone();
        let is_update = operation == "UpdateItem" && is_of_head(text(&input["Key"], "pk"));
        match (self, function) {
            (Self::Unconditional, _) if is_update => remove_condition(input),
            (Self::UnconditionalCancel | Self::UnconditionalSettle | Self::UnconditionalSweep, _)
                if function == self.of_function() =>
            {
                remove_consistency(input);
                if is_update {
                    remove_condition(input);
                }
            }
            (Self::ForgottenDueKey, "settle") if is_update => remove_clause(input, " AND due = :fromDue"),
            (Self::UnversionedAmendment, "ingest")
                if is_update && input["ExpressionAttributeValues"][":details"].is_object() =>
            {
                remove_clause(input, " AND version = :fromVersion");
            }
            (Self::Inconsistent, _) => remove_consistency(input),
            (Self::NoCheckpoint, _) => {
                if operation == "GetItem" && text(&input["Key"], "pk") == CHECKPOINTS {
                    input["Key"]["sk"] = json!({ "S": "nowhere" });
                }
                if let Some(checkpoint) = counting(input).and_then(|actions| actions.first_mut()) {
                    remove_condition(&mut checkpoint["Update"]);
                }
            }
            (Self::CheckpointOutside, _) => {
                let more = counting(input).filter(|actions| actions.len() > 1);
                more.into_iter().for_each(|actions| drop(actions.remove(0)));
            }
            (Self::NoCounters, _) => counting(input).into_iter().for_each(|actions| actions.truncate(1)),
            (Self::UnconditionalLog, _) => {
                for action in counting(input).into_iter().flatten().filter(|action| is_of_log(action)) {
                    action.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(remove_condition);
                }
            }
            (Self::OverwritingDetails, _)
                if operation == "PutItem" && text(&input["Item"], "pk").starts_with("PAY#") =>
            {
                remove_condition(input);
            }
            (Self::UnleasedWebhooks, "publish")
                if operation == "UpdateItem" && text(&input["Key"], "sk").starts_with("webhook#") =>
            {
                remove_condition(input);
            }
            (Self::CountedInBetween, "recount") if input["ProjectionExpression"] == "pk, sk, due" => {
                // What it would leave out is not found.
                nowhere(&mut input["ExpressionAttributeValues"]);
            }
            (Self::EarlyExpiry, "report") if is_update => {
                let expires = input["ExpressionAttributeValues"].get_mut(":expires");
                expires.into_iter().for_each(|expires| *expires = json!({ "N": LONG_AGO }));
            }
            (Self::ForgottenAttributes, "archive" | "redate" | RESTORE) if operation == "PutItem" => {
                later::forget(&mut input["Item"]);
            }
            (Self::UnreportedArchive, "archive") if operation == "DeleteItem" => {
                remove_clause(input, " AND attribute_not_exists(unreported)");
            }
            _ => {}
        }
        before != *input
    }

    /// Lets a query begin where the function should not, or end where it begins.
    pub(crate) fn weaken_query(self, function: &str, input: &mut Value, now: DateTime<Utc>) {
        let is_of_moved = input["IndexName"] == "moved";
        let is_of_history = input["TableName"] == "payment-history";
        let values = &mut input["ExpressionAttributeValues"];
        if self == Self::UnlistedMoved && function == "query-account" && is_of_moved {
            values[":to"] = values[":from"].clone();
        }
        if self == Self::UnlistedArchived && function == "query-due" && is_of_history {
            nowhere(values);
        }
        if self == Self::UnreportedArchive
            && function == "archive"
            && let Some((status, _)) = values[":to"]["S"].as_str().and_then(|to| to.split_once('#'))
        {
            values[":to"] = json!({ "S": now.format(&format!("{status}#%F")).to_string() });
        }
        if self == Self::UncountedLane && function == "query-due" && values[":pk"] == json!({ "S": "COUNTS#0" }) {
            nowhere(values);
        }
        if self == Self::FixedLookBack
            && function == "daily-due-sweeper"
            && let Some(from) = values[":from"]["S"].as_str().filter(|from| from.starts_with("SCHEDULED#"))
        {
            let earliest = (now - TimeDelta::hours(2)).format("SCHEDULED#%F#%FT%TZ").to_string();
            values[":from"] = json!({ "S": earliest.as_str().max(from) });
        }
    }

    /// Whether a call is answered as done, and is not.
    pub(crate) fn swallows(self, function: &str, operation: &str, input: &Value, random: &mut Rng) -> bool {
        let is_of_head = |item: &str| is_of_head(text(&input[item], "pk"));
        let is_swallowed = match (self, function, operation) {
            (Self::LostHead, "ingest", "PutItem") => is_of_head("Item"),
            (Self::LostAmendment, "ingest", "PutItem") | (Self::LostRedate, "redate", "PutItem") => {
                text(&input["Item"], "sk").starts_with("DETAILS#")
            }
            (Self::LostCopy, "archive", "PutItem") | (Self::HotFirst, "settle", "PutItem") => is_of_head("Item"),
            (Self::ForgottenMark, "report", "UpdateItem") => is_of_head("Key"),
            _ => false,
        };
        is_swallowed && happens(random, 60)
    }

    /// Changes an answer. Returns the new one, if there is one.
    pub(crate) fn answer(self, function: &str, operation: &str, (status, body): (u16, &Value)) -> Option<(u16, Value)> {
        match (self, function, operation) {
            (Self::IgnoredConflict, "stream-aggregator", "TransactWriteItems") if status == 400 => {
                Some((200, json!({})))
            }
            (Self::UnleasedWebhooks, "publish", "Query") if status == 200 => {
                let mut body = body.clone();
                for item in body["Items"].as_array_mut().into_iter().flatten() {
                    item.as_object_mut().into_iter().for_each(|item| drop(item.remove("leaseUntil")));
                }
                Some((status, body))
            }
            (Self::UnsentAcknowledged, "dispatch", "SendMessageBatch") if status == 200 => {
                let mut body = body.clone();
                let rejected = body["Failed"].as_array_mut().map(std::mem::take).unwrap_or_default();
                let sent = rejected.into_iter().map(|entry| json!({ "Id": entry["Id"], "MessageId": "0" }));
                body["Successful"].as_array_mut()?.extend(sent);
                Some((status, body))
            }
            (Self::SettledAnew, "settle", "PutItem") if status == 400 => Some((status, settled_anew(body)?)),
            (Self::UnreportedArchive, "archive", "BatchGetItem") if status == 200 => {
                let mut body = body.clone();
                for item in body["Responses"]["payments"].as_array_mut().into_iter().flatten() {
                    item.as_object_mut().into_iter().for_each(|item| drop(item.remove("unreported")));
                }
                Some((status, body))
            }
            _ => None,
        }
    }

    /// How far the clock of a function is ahead.
    pub(crate) fn ahead(self, function: &str) -> TimeDelta {
        let is_early = self == Self::EarlySweep && function == "daily-due-sweeper";
        if is_early { TimeDelta::hours(1) } else { TimeDelta::zero() }
    }

    /// Whether the report takes what an index shows for the heads.
    pub(crate) fn trusts_index(self, function: &str) -> bool {
        self == Self::TrustedIndex && function == "report"
    }

    /// Whether a file is said to be stored, and is not.
    pub(crate) fn loses(self, file: &str) -> bool {
        self == Self::LostFile && file.starts_with("journal/") && file.ends_with("3.jsonl.gz")
    }

    /// Whether a schedule never runs.
    pub(crate) fn skips(self, schedule: &str) -> bool {
        self == Self::NoRedrive && schedule == "redrive"
    }

    /// Changes what a function says of its batch.
    pub(crate) fn weaken_acknowledgement(self, function: &str, answer: &mut Value) {
        if self == Self::UnsettledAcknowledged && function == "settle" {
            answer["batchItemFailures"] = json!([]);
        }
    }

    /// Changes what the functions are told.
    pub(crate) fn weaken_environment(self, environment: &mut Environment) {
        if self == Self::EndlessRedrive {
            environment.dispatch_attempts = 16;
        }
    }

    /// Changes the mapping of `stream-aggregator`.
    pub(crate) fn weaken_aggregator(self, settings: StreamSettings) -> StreamSettings {
        let maximum_retry_attempts =
            if self == Self::DiscardedRecords { Some(1) } else { settings.maximum_retry_attempts };
        StreamSettings { maximum_retry_attempts, ..settings }
    }
}

/// Makes the bounds of a query such that it finds nothing.
fn nowhere(values: &mut Value) {
    (values[":from"], values[":to"]) = (json!({ "S": "0" }), json!({ "S": "0" }));
}

/// The settlement that a put met, a minute later.
fn settled_anew(body: &Value) -> Option<Value> {
    let mut body = body.clone();
    let head = body.get_mut("Item")?;
    let at: DateTime<Utc> = text(head, "settledAt").parse().ok()?;
    let later = json!({ "S": (at + TimeDelta::minutes(1)).format("%FT%TZ").to_string() });
    head["trail"]["L"].as_array_mut()?.last_mut()?["M"]["at"] = later.clone();
    head["settledAt"] = later;
    Some(body)
}
