//! The weaknesses, a row each: an error that the functions make.
//!
//! Each is made outside of the functions: here in their calls and in the answers to them, or
//! elsewhere in their settings.

use chrono::TimeDelta;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::call::Reply;
use super::replies::{acknowledge, find_none_hot, forget, hide_changes, second_is_another, settle_anew};
use super::row::{Held, Row, Seen, answer, input, swallows};
use super::take_out::{CHECKPOINTS, counting, is_of_log, remove_clause, remove_condition, remove_consistency};
use super::{first_details, lanes, reservations};
use crate::layers::attributes::{is_of_head, text};

/// A time that has passed, in seconds since 1970, and not so long ago that DynamoDB would ignore it.
const LONG_AGO: &str = "1735689600";

/// The start of the names of attributes of a later version, which a copy must have.
const LATER: &str = "later";

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
    /// The report makes heads expire at once.
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
    /// The sweep looks whether its claims are within the limit of their date, and reserves them after it has made them.
    LateReservation,
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
    /// A function that checks an approval does not compare its two persons.
    OnePersonTwice,
    /// The clock of `seal` is two days ahead.
    EarlySeal,
    /// `seal` does not look whether the hot table still has a payment.
    SealedHot,
    /// The clear does not look at the age of a part.
    EarlyClear,
    /// The clear does not compare rows with payments, and its writes have no condition.
    ClearedDiffering,
    /// The clear names another row than the one that it has compared.
    RecordWithoutRow,
    /// A run of an undo that begins again after a restore trusts the results of the first one, and does not read its plan.
    UndoneByResults,
}

impl Weakness {
    /// All weaknesses.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The weakness's name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The time by which the clock of a function is ahead.
    pub fn ahead(self, function: &str) -> TimeDelta {
        match (self, function) {
            (Self::EarlySweep, "daily-due-sweeper") => TimeDelta::hours(1),
            (Self::EarlySeal, "seal") => TimeDelta::days(2),
            _ => TimeDelta::zero(),
        }
    }

    /// Returns the row of the table, if the weakness is one of calls.
    pub(super) fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|(weakness, _)| *weakness == self).map(|(_, row)| row)
    }
}

/// The rows of the weaknesses of calls. The others are in the functions' settings and surroundings.
static TABLE: &[(Weakness, Row)] = &[
    (Weakness::Unconditional, input(&[], |seen| seen.on_head_update(remove_condition))),
    (Weakness::UnconditionalCancel, input(&["ingest"], trust)),
    (Weakness::UnconditionalSettle, input(&["settle"], trust)),
    (Weakness::UnconditionalSweep, input(&["daily-due-sweeper"], trust)),
    (
        Weakness::ForgottenDueKey,
        input(&["settle"], |seen| seen.on_head_update(|input| remove_clause(input, " AND due = :fromDue"))),
    ),
    (
        Weakness::UnversionedAmendment,
        input(&["ingest"], |seen| {
            if seen.input["ExpressionAttributeValues"][":details"].is_object() {
                seen.on_head_update(|input| remove_clause(input, " AND version = :fromVersion"));
            }
        }),
    ),
    (Weakness::Inconsistent, input(&[], |seen| remove_consistency(seen.input))),
    (
        Weakness::NoCheckpoint,
        input(&[], |seen| {
            if seen.is("GetItem", "Key", |key| text(key, "pk") == CHECKPOINTS) {
                seen.input["Key"]["sk"] = json!({ "S": "nowhere" });
            }
            if let Some(checkpoint) = counting(seen.input).and_then(|actions| actions.first_mut()) {
                remove_condition(&mut checkpoint["Update"]);
            }
        }),
    ),
    (
        Weakness::CheckpointOutside,
        input(&[], |seen| {
            let more = counting(seen.input).filter(|actions| actions.len() > 1);
            more.into_iter().for_each(|actions| drop(actions.remove(0)));
        }),
    ),
    (Weakness::NoCounters, input(&[], |seen| counting(seen.input).into_iter().for_each(|actions| actions.truncate(1)))),
    (
        Weakness::UnconditionalLog,
        input(&[], |seen| {
            for action in counting(seen.input).into_iter().flatten().filter(|action| is_of_log(action)) {
                action.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(remove_condition);
            }
        }),
    ),
    (Weakness::Lanes, input(&[], |seen| seen.held = lanes::take(seen.input).map(Held::Segment))),
    (Weakness::FirstDetails, input(&[], |seen| first_details::send(seen.engine, seen.input))),
    (
        Weakness::OverwritingDetails,
        input(&[], |seen| {
            if seen.is("PutItem", "Item", |item| text(item, "pk").starts_with("PAY#")) {
                remove_condition(seen.input);
            }
        }),
    ),
    (
        Weakness::UnleasedWebhooks,
        Row {
            answer: |operation, reply| forget("leaseUntil", "Query", operation, reply),
            ..input(&["publish"], |seen| {
                if seen.is("UpdateItem", "Key", |key| text(key, "sk").starts_with("webhook#")) {
                    remove_condition(seen.input);
                }
            })
        },
    ),
    (
        Weakness::CountedInBetween,
        input(&["recount"], |seen| {
            if seen.input["ProjectionExpression"] == "pk, sk, due" {
                // The query that excludes such settlements finds nothing.
                nowhere(&mut seen.input["ExpressionAttributeValues"]);
            }
        }),
    ),
    (
        Weakness::EarlyExpiry,
        input(&["report"], |seen| {
            seen.on_head_update(|input| {
                let expires = input["ExpressionAttributeValues"].get_mut(":expires");
                expires.into_iter().for_each(|expires| *expires = json!({ "N": LONG_AGO }));
            });
        }),
    ),
    (
        Weakness::ForgottenAttributes,
        input(&["archive", "redate", "restore"], |seen| {
            if seen.operation == "PutItem" {
                let item = seen.input["Item"].as_object_mut();
                item.into_iter().for_each(|item| item.retain(|name, _| !name.starts_with(LATER)));
            }
        }),
    ),
    (
        Weakness::TrustedIndex,
        input(&["report"], |seen| {
            if seen.operation == "BatchGetItem" {
                remove_consistency(seen.input);
            }
        }),
    ),
    (
        Weakness::UnreportedArchive,
        Row {
            answer: |operation, reply| forget("unreported", "BatchGetItem", operation, reply),
            ..input(&["archive"], |seen| {
                if seen.operation == "DeleteItem" {
                    remove_clause(seen.input, " AND attribute_not_exists(unreported)");
                }
                let to = seen.bound(":to").unwrap_or_default();
                if let Some((status, _)) = to.split_once('#') {
                    let to = seen.now.format(&format!("{status}#%F")).to_string();
                    seen.input["ExpressionAttributeValues"][":to"] = json!({ "S": to });
                }
            })
        },
    ),
    (
        Weakness::UnlistedMoved,
        input(&["query-account"], |seen| {
            if seen.operation == "Query" && seen.input["IndexName"] == "moved" {
                let values = &mut seen.input["ExpressionAttributeValues"];
                values[":to"] = values[":from"].clone();
            }
        }),
    ),
    (
        Weakness::UnlistedArchived,
        input(&["query-due"], |seen| {
            if seen.operation == "Query" && seen.input["TableName"] == "payment-history" {
                nowhere(&mut seen.input["ExpressionAttributeValues"]);
            }
        }),
    ),
    (
        Weakness::UncountedLane,
        input(&["query-due"], |seen| {
            if seen.bound(":pk").is_some_and(|pk| pk == "COUNTS#0") {
                nowhere(&mut seen.input["ExpressionAttributeValues"]);
            }
        }),
    ),
    (
        Weakness::FixedLookBack,
        input(&["daily-due-sweeper"], |seen| {
            if let Some(from) = seen.bound(":from").filter(|from| from.starts_with("SCHEDULED#")) {
                let earliest = (seen.now - TimeDelta::hours(2)).format("SCHEDULED#%F#%FT%TZ").to_string();
                seen.input["ExpressionAttributeValues"][":from"] = json!({ "S": earliest.max(from) });
            }
        }),
    ),
    (Weakness::LateReservation, input(&["daily-due-sweeper"], |seen| seen.held = reservations::take(seen))),
    (Weakness::LostHead, swallows(&["ingest"], puts_head)),
    (Weakness::LostCopy, swallows(&["archive"], puts_head)),
    (Weakness::HotFirst, swallows(&["settle"], puts_head)),
    (Weakness::LostAmendment, swallows(&["ingest"], puts_details)),
    (Weakness::LostRedate, swallows(&["redate"], puts_details)),
    (
        Weakness::ForgottenMark,
        swallows(&["report"], |operation, input| operation == "UpdateItem" && is_of_head(text(&input["Key"], "pk"))),
    ),
    (
        Weakness::IgnoredConflict,
        answer(&["stream-aggregator"], |operation, reply| {
            if operation == "TransactWriteItems" && reply.status == 400 {
                *reply = Reply::from_json(200, json!({}));
            }
        }),
    ),
    (
        Weakness::UnsentAcknowledged,
        answer(&["dispatch"], |operation, reply| {
            if operation == "SendMessageBatch" && reply.status == 200 {
                reply.change(acknowledge);
            }
        }),
    ),
    (
        Weakness::OnePersonTwice,
        answer(&["recount", "redate", "undo"], |operation, reply| {
            if operation == "GetItem" && reply.status == 200 {
                reply.change(second_is_another);
            }
        }),
    ),
    (Weakness::SealedHot, answer(&["seal"], find_none_hot)),
    (
        Weakness::ClearedDiffering,
        Row {
            answer: hide_changes,
            ..input(&["seal"], |seen| {
                if seen.is("UpdateItem", "Key", |key| text(key, "pk").starts_with("PAY#")) {
                    remove_condition(seen.input);
                }
            })
        },
    ),
    (
        Weakness::RecordWithoutRow,
        input(&["seal"], |seen| {
            if seen.is("UpdateItem", "Key", |key| text(key, "pk").starts_with("PAY#")) {
                name_next_row(&mut seen.input["ExpressionAttributeValues"]);
            }
        }),
    ),
    (
        Weakness::SettledAnew,
        answer(&["settle"], |operation, reply| {
            if operation == "PutItem" && reply.status == 400 {
                reply.change(|body| settle_anew(body).is_some());
            }
        }),
    ),
];

/// Trusts an earlier read, which may be a moment old.
fn trust(seen: &mut Seen<'_>) {
    remove_consistency(seen.input);
    seen.on_head_update(remove_condition);
}

/// Makes the place of a row, such as `2026-11-20/1/57`, that of the next one.
fn name_next_row(values: &mut Value) {
    for value in values.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let place = value["S"].as_str().and_then(|text| text.rsplit_once('/'));
        let next = place.and_then(|(part, row)| Some(format!("{part}/{}", row.parse::<u32>().ok()? + 1)));
        if let Some(next) = next {
            *value = json!({ "S": next });
        }
    }
}

fn puts_head(operation: &str, input: &Value) -> bool {
    operation == "PutItem" && is_of_head(text(&input["Item"], "pk"))
}

fn puts_details(operation: &str, input: &Value) -> bool {
    operation == "PutItem" && text(&input["Item"], "sk").starts_with("DETAILS#")
}

/// Makes the bounds of a query such that it finds nothing.
fn nowhere(values: &mut Value) {
    (values[":from"], values[":to"]) = (json!({ "S": "0" }), json!({ "S": "0" }));
}
