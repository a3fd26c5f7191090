//! Golden texts: cursors, events, and the messages to and from the transaction service.

use chrono::{DateTime, TimeDelta, Utc};
use payments_http::{AccountCursor, CursorKind, DueCursor, Problem};
use payments_machine::given::moved;
use payments_machine::transaction_service::{TransactionService, TransactionServiceSettings};
use payments_model::{
    Actor, Amended, AmendmentId, Details, Epoch, Event, EventFields, EventKind, GapEvent, Head, Instruction,
    IrregularEvent, JsonText, LogRestoredEvent, Logged, Money, PaymentId, PaymentRestoredEvent, Place, Settlement,
    Status, UtcSecond, VersionBefore,
};
use payments_queue::in_process::QueueSettings;
use payments_queue::{MessageKind, PaymentRequest, Queue, SettlementResult};
use payments_store::LogPosition;
use payments_tests::prelude::*;

use super::forms::{Goldens, Kind, text_form};

const EPOCH: Epoch = Epoch::FIRST;
const PLACE: &str = "shardId-00000003801168300000-0a1b2c3d/42";

fn now() -> Result<UtcSecond> {
    Ok("2026-12-01T10:00:00Z".parse()?)
}

/// A payment with all that a client can say of it, and one with the least.
fn details(is_full: bool) -> Result<Details> {
    let account = "tenant".parse()?;
    let payment_id = PaymentId::derive(&account, &if is_full { "full" } else { "plain" }.parse()?);
    let instruction = Instruction {
        account,
        payee: "landlord".parse()?,
        money: Money { amount: "125000".parse()?, currency: "GBP".parse()? },
        scheduled_for: "2026-12-01".parse()?,
        date_rule: None,
        reference: is_full.then_some("INV 2026/117".parse()?),
        data: is_full.then_some(JsonText::from_stored("{ \"note\":\"kürz \u{fffe}\" }".to_owned())?.into()),
    };
    let zone = "Europe/London".parse()?;
    let shards = "10".parse()?;
    let created = "2026-11-20T08:00:00Z".parse()?;
    Ok(Details::accept(payment_id, instruction, zone, shards, created, Actor::client("feed")))
}

/// The head after an amendment of all fields.
fn amended(head: &Head, details: &Details) -> Result<Head> {
    let mut instruction = details.instruction.clone();
    (instruction.payee, instruction.reference) = ("other-landlord".parse()?, None);
    instruction.money = Money { amount: "7".parse()?, currency: "EUR".parse()? };
    let id = AmendmentId::derive(head.payment_id, &"change".parse()?);
    let next = details.amended(head, id, instruction, (now()?, Actor::client("feed")));
    let changed = details.changes(&next).into_iter().map(str::to_owned).collect();
    let name = next.amendment.context("it is an amendment")?.name;
    Ok(head.amended(name, &next, Amended { at: now()?, by: Actor::client("feed"), changed }))
}

/// The event of a change of a head.
fn version(before: Option<&Head>, after: &Head) -> Result<String> {
    let known = |head: &Head| VersionBefore {
        version: head.version,
        status: head.state.status(),
        head: Some(Box::new(head.clone())),
    };
    Logged::from_change(before.map(known), after, now()?, PLACE).json(EPOCH)?.context("not an event")
}

/// The events, by kind and case.
fn events() -> Result<Vec<(EventKind, &'static str, String)>> {
    let (full, now) = (details(true)?, now()?);
    let (scheduled, plain) = (Head::scheduled(&full), Head::scheduled(&details(false)?));
    let pending = moved(&scheduled, &Event::Sweep, now, Actor::sweep())?;
    let settled = |settlement| moved(&pending, &Event::Settle(settlement), now, Actor::transaction_service());
    let [processed, failed] = ["PROCESSED", "FAILED"].map(|end| settled(settlement_of(end)?));
    let cancelled = moved(&scheduled, &Event::Cancel, now, Actor::operator("ops-1"))?;
    let irregular = |payment| {
        let event = IrregularEvent { payment, at: now, place: PLACE.to_owned(), reason: "it cannot be read" };
        Logged::Irregular(event).json(EPOCH)?.context("it is an event")
    };
    let gap = |since| GapEvent { at: now, since, until: now, reason: "nobody looked" }.json(EPOCH, 7);
    let begun = |restored_to| LogRestoredEvent { at: now, restored_to, end_cursor: "1.7.0".to_owned() }.json(EPOCH);
    let missing = |payee| PaymentRestoredEvent::Missing { payment: scheduled.due_payment(), payee, at: now };
    Ok(vec![
        (EventKind::Scheduled, "full", version(None, &scheduled)?),
        (EventKind::Scheduled, "plain", version(None, &plain)?),
        (EventKind::Pending, "full", version(Some(&scheduled), &pending)?),
        (EventKind::Processed, "full", version(Some(&pending), &processed?)?),
        (EventKind::Failed, "full", version(Some(&pending), &failed?)?),
        (EventKind::Cancelled, "by an operator", version(Some(&scheduled), &cancelled)?),
        (EventKind::Amended, "all fields", version(Some(&scheduled), &amended(&scheduled, &full)?)?),
        (EventKind::Irregular, "of a payment", irregular(Some(scheduled.due_payment()))?),
        (EventKind::Irregular, "of what cannot be read", irregular(None)?),
        (
            EventKind::PaymentRestored,
            "as it is now",
            PaymentRestoredEvent::Head(Box::new(pending.clone())).json(EPOCH)?,
        ),
        (EventKind::PaymentRestored, "missing", missing(Some("landlord".to_owned())).json(EPOCH)?),
        (EventKind::PaymentRestored, "missing, without a payee", missing(None).json(EPOCH)?),
        (EventKind::Gap, "since an instant", gap(Some(scheduled.created_at()))?),
        (EventKind::Gap, "since nobody knows when", gap(None)?),
        (EventKind::LogRestored, "with the payments", begun(Some(scheduled.created_at()))?),
        (EventKind::LogRestored, "alone", begun(None)?),
    ])
}

/// All events, as a file of the journal has them.
pub(super) fn all_events() -> Result<Vec<String>> {
    Ok(events()?.into_iter().map(|(_, _, event)| event).collect())
}

/// The answer of the transaction service to the request of a payment that ends so.
fn result(details: &Details, end: &str) -> Result<String> {
    let named = |name: &str| Queue::new(QueueSettings::named(name));
    let (requests, results) = (named("requests"), named("results"));
    let settings = TransactionServiceSettings {
        shortest_delay: TimeDelta::zero(),
        longest_delay: TimeDelta::zero(),
        failures_per_thousand: if end == "FAILED" { 1_000 } else { 0 },
        repeats_per_thousand: 0,
        ..TransactionServiceSettings::seeded(1)
    };
    let at: DateTime<Utc> = now()?.as_chrono();
    requests.send(PaymentRequest::new(details, 1).to_json()?, at)?;
    TransactionService::new(settings, requests, results.clone()).step(at);
    Ok(results.receive(1, at).pop().context("no answer")?.body)
}

pub(super) fn settlement_of(end: &str) -> Result<Settlement> {
    Ok(SettlementResult::parse(&result(&details(true)?, end)?)?.settlement)
}

fn cursors() -> Result<Vec<(Kind, &'static str, String)>> {
    let head = Head::scheduled(&details(true)?);
    let (account, after) = (head.account.clone(), Place { due_at: head.due_at, payment_id: head.payment_id });
    let (from, to) = ("2026-11-20".parse()?, "2027-02-18".parse()?);
    let plain = AccountCursor {
        account,
        from,
        to,
        statuses: "".parse().unwrap_or_default(),
        payee: None,
        reference: None,
        is_descending: false,
        after,
    };
    let full = AccountCursor {
        statuses: "SCHEDULED,FAILED".parse()?,
        payee: Some("landlord".parse()?),
        reference: Some("INV 2026/117".parse()?),
        is_descending: true,
        ..plain.clone()
    };
    let start = DueCursor {
        due_date: from,
        statuses: plain.statuses.clone(),
        only_shard: None,
        at: (Status::Pending, 0),
        after: None,
    };
    let within = DueCursor {
        statuses: full.statuses.clone(),
        only_shard: Some(7),
        at: (Status::Failed, 7),
        after: Some((head.due_at, head.payment_id)),
        ..start.clone()
    };
    let place = LogPosition { epoch: Epoch::begun_at(now()?), number: 17, offset: 3 };
    Ok(vec![
        (Kind::Cursor(CursorKind::Account), "plain", plain.encode()),
        (Kind::Cursor(CursorKind::Account), "full", full.encode()),
        (Kind::Cursor(CursorKind::Due), "at the start of a shard", start.encode()),
        (Kind::Cursor(CursorKind::Due), "within a shard", within.encode()),
        (Kind::Place, "within a segment", place.to_string()),
    ])
}

/// The texts that the code writes.
pub(super) fn written() -> Result<Goldens> {
    let (full, plain) = (details(true)?, details(false)?);
    let messages = [
        (MessageKind::Payment, "full", PaymentRequest::new(&full, 2).to_json()?),
        (MessageKind::Payment, "plain", PaymentRequest::new(&plain, 1).to_json()?),
        (MessageKind::Settlement, "processed", result(&full, "PROCESSED")?),
        (MessageKind::Settlement, "failed", result(&full, "FAILED")?),
    ];
    let messages = messages.into_iter().map(|(kind, case, text)| (Kind::Message(kind), case, text));
    let events = events()?.into_iter().map(|(kind, case, text)| (Kind::Event(kind), case, text));
    let mut goldens = Goldens::new();
    for (kind, case, text) in cursors()?.into_iter().chain(events).chain(messages) {
        goldens.entry(kind.name()).or_default().push(text_form(case, &text));
    }
    Ok(goldens)
}

/// Reads a golden text, and writes it again if its reader is also what writes it.
pub(super) fn read(kind: Kind, text: &str) -> Result<()> {
    let refused = |problem: Problem| anyhow::anyhow!("{problem:?}");
    let again = match kind {
        Kind::Cursor(CursorKind::Account) => AccountCursor::decode(text).map_err(refused)?.encode(),
        Kind::Cursor(CursorKind::Due) => DueCursor::decode(text).map_err(refused)?.encode(),
        Kind::Place => text.parse::<LogPosition>()?.to_string(),
        Kind::Event(kind) => {
            let event: EventFields = serde_json::from_str(text)?;
            ensure!(event.kind == kind.as_str(), "{text}");
            text.to_owned()
        }
        Kind::Message(MessageKind::Payment) => {
            let settings = TransactionServiceSettings::seeded(1);
            let named = |name: &str| Queue::new(QueueSettings::named(name));
            let (requests, at) = (named("requests"), now()?.as_chrono());
            requests.send(text, at)?;
            let step = TransactionService::new(settings, requests, named("results")).step(at);
            ensure!(step.received == 1, "the service rejects {text}");
            text.to_owned()
        }
        Kind::Message(MessageKind::Settlement) => {
            let result = SettlementResult::parse(text)?;
            let wanted = details(true)?;
            ensure!((result.payment_id, result.money) == (wanted.payment_id, wanted.instruction.money), "{text}");
            ensure!(result.echo == Some(Head::scheduled(&wanted).due_payment()), "{text}");
            text.to_owned()
        }
        Kind::Item(_) | Kind::File(_) => bail!("{kind:?} is not a text"),
    };
    assert_eq!(again, text, "{kind:?} is written again, and differs from what was read");
    Ok(())
}
