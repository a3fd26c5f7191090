//! The beginning of each outage.

use std::sync::Arc;

use anyhow::Result;
use chrono::TimeDelta;
use payments_machine::client::Request;
use payments_machine::layers::attributes::text;
use serde_json::{Value, json};

use crate::facts::heads::{due_of, id_of, transfer};
use crate::facts::results::processed;
use crate::plans::broken::Part;
use crate::plans::outages::Outage;
use crate::time::pause;
use crate::workloads::{by_hand, clients};
use crate::world::bank::{Bank, second_thoughts};

/// The time for which the transaction service is away.
const AWAY: TimeDelta = TimeDelta::days(2);

/// The number of results that name payments that do not exist here.
const STRANGERS: u64 = 5;

/// The time between reads of a list while the API fails.
const READS_EVERY: TimeDelta = TimeDelta::seconds(15);

/// The number of payments that are due together while writes are throttled: the alarm is set for a bank of millions.
const DUE_TOGETHER: usize = 25;

/// The time until these payments are due.
const DUE_IN: TimeDelta = TimeDelta::minutes(20);

/// A payment that is damaged before it is claimed is due after the first and before the second.
const SOON: [TimeDelta; 2] = [TimeDelta::minutes(4), TimeDelta::minutes(20)];

/// Begins an outage.
pub(crate) async fn begin(bank: &Arc<Bank>, outage: Outage) -> Result<()> {
    let broken = &bank.broken;
    let begun = || {
        bank.state().began.insert(outage, bank.time.now());
    };
    let break_part = |part| {
        broken.break_part(part, outage);
        begun();
    };
    match outage {
        Outage::StreamStandsStill | Outage::RecordsTrimmed => {
            ["dispatch", "stream-aggregator"].into_iter().for_each(|package| break_part(Part::Mapping(package)));
        }
        Outage::DispatchDisabled => break_part(Part::Mapping("dispatch")),
        Outage::SettleDisabled => break_part(Part::Mapping("settle")),
        Outage::ServiceAway => {
            break_part(Part::Service);
            pause(AWAY).await;
            broken.mend(|part, _| part == Part::Service);
        }
        Outage::NoSweeps => break_part(Part::Schedule("sweep")),
        Outage::NoRedrives => break_part(Part::Schedule("redrive")),
        Outage::NoArchive => {
            ["archive-begins", "archive"].into_iter().for_each(|name| break_part(Part::Schedule(name)));
        }
        Outage::NoRecount => break_part(Part::Schedule("recount")),
        Outage::NoJournal => break_part(Part::Schedule("publish")),
        Outage::ReportsFail => break_part(Part::Reports),
        Outage::ArchiveFails => break_part(Part::Function("archive")),
        Outage::WritesThrottled => {
            clients::create_all(bank, DUE_TOGETHER, bank.time.now() + DUE_IN).await;
            break_part(Part::Writes);
        }
        Outage::ApiFails => {
            let functions = ["ingest", "query-account", "query-due"].map(Part::Function);
            functions.into_iter().for_each(break_part);
            while broken.is(Part::Function("query-account")) {
                let _reply = clients::ask(bank, &Request::get("/accounts/acc-1/payments")).await;
                pause(READS_EVERY).await;
            }
        }
        Outage::UnknownResults => {
            begun();
            strangers(bank)?;
        }
        Outage::Contradictions => {
            contradict(bank).await?;
            begun();
        }
        Outage::CancelledProcessed => {
            process_cancelled(bank).await?;
            begun();
        }
        Outage::ScheduledDamaged => damage_first(bank, outage, "SCHEDULED", "version", json!({ "S": "two" })).await?,
        Outage::PendingDamaged => damage_first(bank, outage, "PENDING", "version", json!({ "S": "two" })).await?,
        Outage::SettledDamaged => damage_first(bank, outage, "PROCESSED", "version", json!({ "S": "two" })).await?,
        Outage::AmountDamaged => damage_first(bank, outage, "SCHEDULED", "amountMinor", json!({ "N": "0" })).await?,
        Outage::Disagreement => {
            damage_first(bank, outage, "SCHEDULED", "payeeAccountId", json!({ "S": "tenant" })).await?
        }
    }
    Ok(())
}

/// Sends results of payments of another stack.
fn strangers(bank: &Bank) -> Result<()> {
    for number in 0..STRANGERS {
        let id = payments_model::PaymentId::derive(&"elsewhere".parse()?, &format!("stranger-{number}").parse()?);
        let transfer = json!({
            "paymentId": id.to_string(), "amountMinor": 7, "currency": "GBP", "payeeAccountId": "nobody",
        });
        bank.send_result(&processed(&transfer, &format!("TX-{number}")))?;
    }
    Ok(())
}

/// Waits for the next settled payment, and sends another result of it.
async fn contradict(bank: &Bank) -> Result<()> {
    let head = first(bank, "PROCESSED").await?;
    bank.send_result(&second_thoughts(&transfer(&head)))
}

/// Cancels a payment, as its client, which the transaction service processes all the same.
async fn process_cancelled(bank: &Arc<Bank>) -> Result<()> {
    loop {
        // The one that is due last: it is not claimed meanwhile.
        let heads = by_hand::heads(bank, "SCHEDULED")?;
        let id = heads.last().map(|head| id_of(text(head, "sk")));
        let place = bank.state().intents.iter().position(|intent| id.is_some() && intent.accepted.as_deref() == id);
        if let Some(place) = place {
            clients::cancel(bank, place).await;
            let intent = bank.intent(place);
            if intent.cancelled {
                return bank.send_result(&processed(&intent.transfer(), "TX-CANCELLED"));
            }
        }
        pause(TimeDelta::minutes(5)).await;
    }
}

/// Damages the first head with a status.
async fn damage_first(
    bank: &Bank,
    outage: Outage,
    status: &str,
    attribute: &'static str,
    damaged: Value,
) -> Result<()> {
    let head = first(bank, status).await?;
    by_hand::damage(bank, outage, &head, attribute, damaged).await?;
    bank.state().began.insert(outage, bank.time.now());
    Ok(())
}

/// Waits for a head with a status: of scheduled ones for the first that is due soon, and of settled ones for the first that
/// is in no report.
async fn first(bank: &Bank, status: &str) -> Result<Value> {
    loop {
        let [soon, later] = SOON.map(|soon| (bank.time.now() + soon).format("%FT%TZ").to_string());
        let fits = |head: &Value| match status {
            "SCHEDULED" => soon.as_str() < due_of(head).1 && due_of(head).1 < later.as_str(),
            "PROCESSED" => head.get("unreported").is_some(),
            _ => true,
        };
        if let Some(head) = by_hand::heads(bank, status)?.into_iter().find(fits) {
            return Ok(head);
        }
        // A payment is pending for two minutes at most, and scheduled for longer.
        let look_again = if status == "SCHEDULED" { TimeDelta::minutes(5) } else { TimeDelta::seconds(20) };
        pause(look_again).await;
    }
}
