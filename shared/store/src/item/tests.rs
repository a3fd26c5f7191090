//! What fits into a head, and what is no head.

use payments_model::{AmendmentId, BusinessZone, DateRule, Details, Instruction, Event, JsonText, MoveReason, PaymentId, Settlement, ShardCount};

use super::*;
use crate::details_item::{decode_details, encode_details};
use crate::{IN_HISTORY, item_bytes};

/// Details with every field at its longest.
fn longest() -> Details {
    let account: AccountId = "a".repeat(48).parse().unwrap();
    let payment_id = PaymentId::derive(&account, &"k".parse().unwrap());
    let instruction = Instruction {
        account,
        payee: "p".repeat(48).parse().unwrap(),
        money: Money { amount: i64::MAX.try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2099-12-30T23:59:59+00:30".parse().unwrap(),
        date_rule: Some(DateRule::Following),
        reference: Some("R".repeat(35).parse().unwrap()),
        data: Some(JsonText::from_stored("\"data\"".to_owned()).unwrap()),
    };
    let zone: BusinessZone = "Pacific/Kiritimati".parse().unwrap();
    let shards: ShardCount = "1000".parse().unwrap();
    let now: UtcSecond = "2099-12-31T00:00:01Z".parse().unwrap();
    Details::accept(payment_id, instruction, zone, shards, now, Actor::named(&"b".repeat(40)))
}

/// A head in each state, with every field at its longest.
fn longest_heads() -> Vec<Head> {
    let scheduled = Head::scheduled(&longest());
    let entry = |status| TrailEntry { status, at: UtcSecond::MAX, by: Actor::named(&"c".repeat(40)) };
    let transaction_id = Settlement::Processed("t".repeat(64).parse().unwrap());
    let failed = Event::Settle(Settlement::Failed(FailureReason::cut(&"r".repeat(256))));
    let settled = |settlement: Settlement| {
        let state = State::from(settlement);
        let moved = vec![entry(Status::Pending), entry(state.status())];
        let dispatch_attempt = Some(u32::MAX);
        Head { state, moved, version: 3, dispatch_attempt, unreported: true, ..scheduled.clone() }
    };
    let cancelled =
        Head { state: State::Cancelled, moved: vec![entry(Status::Cancelled)], version: 2, ..scheduled.clone() };
    let moved = vec![entry(Status::Pending)];
    let pending = Head { state: State::Pending, moved, version: 2, dispatch_attempt: Some(1), ..scheduled.clone() };
    let without =
        Head { reference: None, ..settled(reason_of(&failed, &Head { reference: None, ..pending.clone() })) };
    let reason = reason_of(&failed, &pending);
    vec![scheduled.clone(), pending, settled(transaction_id), settled(reason), without, cancelled]
}

/// How a pending head keeps this end.
fn reason_of(event: &Event, pending: &Head) -> Settlement {
    let step = pending.transition(event, UtcSecond::MAX, Actor::named("settle")).unwrap();
    let State::Failed(reason) = step.to() else { panic!("it failed") };
    Settlement::Failed(reason.clone())
}

#[test]
fn every_head_fits_one_write_unit() {
    for head in longest_heads() {
        // A settlement also marks the head as in history.
        let mark = if head.state.status().is_settled() { IN_HISTORY.len() + 1 } else { 0 };
        let bytes = item_bytes(&encode_head(&head).unwrap()) + mark;
        assert!(bytes <= 1_024, "{}: {bytes}", head.state.status());
    }
}

#[test]
fn heads_and_details_are_decoded() {
    for head in longest_heads() {
        assert_eq!(decode_head("t", encode_head(&head).unwrap()).unwrap(), head);
        // Due on another date than its slot's.
        let (due_at, due_date) = ("2027-01-04T00:00:00Z".parse().unwrap(), "2027-01-04".parse().unwrap());
        let head = Head { due_at, due_date, ..head };
        assert_eq!(decode_head("t", encode_head(&head).unwrap()).unwrap(), head);
    }
    let moved = Details { moved: Some(MoveReason::CutOff), ..longest() };
    assert_eq!(decode_details("t", encode_details(&moved).unwrap()).unwrap(), moved);
}

#[test]
fn damaged_heads_are_unreadable() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let whole = encode_head(&longest_heads()[2]).unwrap();
    for (attribute, damage, why) in [
        ("status", text("PENDING"), "status, dispatchAttempt, transactionId and failureReason disagree"),
        ("version", AttributeValue::N("2".to_owned()), "the trail and the version disagree"),
        ("settledAt", text("2099-12-31T23:59:58Z"), "settledAt and the trail disagree"),
        ("sk", text("nonsense"), "\"nonsense\" is not a head sort key"),
        ("amountMinor", AttributeValue::N("0".to_owned()), "an amount is at least 1 minor unit"),
        ("shard", AttributeValue::N("1000".to_owned()), "the shard is out of range"),
        ("trail", AttributeValue::L(vec![]), "the trail is empty"),
    ] {
        let mut item = whole.clone();
        item.insert(attribute.to_owned(), damage);
        let Err(StoreError::Unreadable { why: said, .. }) = decode_head("t", item) else {
            panic!("{attribute} passed")
        };
        assert_eq!(said, why);
    }
}
