//! Tests of the slots of heads, and a payment for tests.

use super::*;
use crate::actor::Actor;
use crate::money::Money;
use crate::payment::forms::{Details, Head, Instruction};

/// A payment of a day in London.
pub(crate) fn details() -> Details {
    let account: AccountId = "acc-1".parse().unwrap();
    let payment_id = PaymentId::derive(&account, &"rent".parse().unwrap());
    let instruction = Instruction {
        account,
        payee: "landlord-7".parse().unwrap(),
        money: Money { amount: "125000".parse().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2026-12-01".parse().unwrap(),
        date_rule: None,
        reference: None,
        data: None,
    };
    let (zone, shards) = ("Europe/London".parse().unwrap(), "10".parse().unwrap());
    Details::accept(
        payment_id,
        instruction,
        zone,
        shards,
        "2026-11-20T08:00:00Z".parse().unwrap(),
        Actor::client("feed"),
    )
}

#[test]
fn a_head_is_at_its_slot_wherever_it_is_due() {
    let details = details();
    let head = Head::scheduled(&details);
    assert_eq!((head.key(), head.slot_at.to_string().as_str()), (details.key(), "2026-12-01T00:00:00Z"));
    let elsewhere = Head { due_at: "2026-12-04T09:30:00Z".parse().unwrap(), ..head.clone() };
    assert_eq!(elsewhere.key(), details.key());
    assert_eq!((head.is_due_as_at_first(), elsewhere.is_due_as_at_first()), (true, false));
    // A guess leads to the head only if the payment is due as at first.
    assert_eq!(head.due_payment().guessed_key(), details.key());
    assert_ne!(elsewhere.due_payment().guessed_key(), details.key());
    assert_eq!(details.key().guessed_due(), head.due_payment());
}

/// A copy of a head at another slot would be sent a second time.
#[test]
fn a_head_agrees_with_its_details_if_it_is_at_its_slot() {
    let details = details();
    let head = Head::scheduled(&details);
    let (other_time, other_date) = ("2026-12-04T00:00:00Z", "2026-12-04");
    let changed = |slot_at: &str, due_at: &str, due_date: &str| Head {
        slot_at: slot_at.parse().unwrap(),
        due_at: due_at.parse().unwrap(),
        due_date: due_date.parse().unwrap(),
        ..head.clone()
    };
    let (time, date) = ("2026-12-01T00:00:00Z", "2026-12-01");
    for (slot_at, due_at, due_date, want) in [
        (time, time, date, vec![]),
        (time, other_time, date, vec!["dueAt"]),
        (time, other_time, other_date, vec!["dueAt", "dueDate"]),
        (time, time, other_date, vec!["dueDate"]),
        (other_time, time, date, vec!["dueAt"]),
        (other_time, other_time, date, vec!["dueAt"]),
        (other_time, other_time, other_date, vec!["dueAt", "dueDate"]),
    ] {
        let found = changed(slot_at, due_at, due_date).differences(&details);
        assert_eq!(found, want, "{slot_at}, {due_at}, {due_date}");
    }
}
