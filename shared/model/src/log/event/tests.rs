//! Tests of events: the changes that produce them, and their JSON.

use super::*;
use crate::actor::Actor;
use crate::log::marks::GapEvent;
use crate::payment::amendment::{Amended, AmendmentId, AmendmentName};
use crate::payment::forms::TrailEntry;
use crate::payment::settlement::Settlement;
use crate::payment::slot::tests::details;
use crate::payment::transition::{Event, State, Transition};

const PLACE: &str = "shardId-1/42";

fn now() -> UtcSecond {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

fn scheduled() -> Head {
    Head { reference: Some("RENT 7".parse().unwrap()), ..Head::scheduled(&details()) }
}

fn moved(head: &Head, event: &Event, by: Actor) -> Head {
    let step: Transition = head.transition(event, now(), by).unwrap();
    let mut head = head.clone();
    head.state = step.to().clone();
    head.version = step.version() + 1;
    head.moved.push(TrailEntry { status: step.to().status(), at: step.at(), by: step.by().clone() });
    head.unreported = head.settled_at().is_some();
    head
}

fn before(head: &Head) -> Option<VersionBefore> {
    Some(VersionBefore { version: head.version, status: head.state.status(), head: Some(Box::new(head.clone())) })
}

fn json_of(before: Option<VersionBefore>, after: &Head) -> String {
    Logged::from_change(before, after, now(), PLACE).json(Epoch::FIRST).unwrap().unwrap()
}

#[test]
fn each_version_is_one_event() {
    let scheduled = scheduled();
    let pending = moved(&scheduled, &Event::Sweep, Actor::sweep());
    let processed =
        moved(&pending, &Event::Settle(Settlement::Processed("TX-1".parse().unwrap())), Actor::transaction_service());
    let id = scheduled.payment_id;
    let common = |number: u32| format!(r#"{{"id":"1-{id}-{number}","type":"payment."#);
    let first = json_of(None, &scheduled);
    assert_eq!(
        first,
        format!(
            r#"{}scheduled","at":"2026-11-20T08:00:00Z","epoch":1,"v":1,"accountId":"acc-1","payeeAccountId":"landlord-7","paymentId":"{id}","version":1,"status":"SCHEDULED","by":{{"kind":"client","name":"feed"}},"dueAt":"2026-12-01T00:00:00Z","dueDate":"2026-12-01","amountMinor":125000,"currency":"GBP","reference":"RENT 7"}}"#,
            common(1)
        )
    );
    let second = json_of(before(&scheduled), &pending);
    assert!(second.starts_with(&format!("{}pending\"", common(2))), "{second}");
    assert!(second.contains(r#""previousStatus":"SCHEDULED","status":"PENDING","by":{"kind":"bank"}"#), "{second}");
    let third = json_of(before(&pending), &processed);
    assert!(third.contains(r#""by":{"kind":"transaction-service"}"#), "{third}");
    assert!(third.ends_with(r#""reference":"RENT 7","transactionId":"TX-1"}"#), "{third}");
}

fn amended(head: &Head, changed: &[&str]) -> Head {
    let id = AmendmentId::derive(head.payment_id, &"change-1".parse().unwrap());
    let name = AmendmentName { version: head.version + 1, id };
    let changed = changed.iter().map(|field| (*field).to_owned()).collect();
    let amended = Some(Amended { at: now(), by: Actor::client("desk"), changed });
    Head { version: name.version, amendment: Some(name), amended, ..head.clone() }
}

#[test]
fn an_amendment_is_an_event_that_says_what_changed() {
    let first = scheduled();
    let data = amended(&first, &["data"]);
    let json = json_of(before(&first), &data);
    assert!(
        json.starts_with(&format!(
            r#"{{"id":"1-{}-2","type":"payment.amended","at":"2026-12-01T10:00:00Z""#,
            first.payment_id
        )),
        "{json}"
    );
    let want = r#""version":2,"previousStatus":"SCHEDULED","status":"SCHEDULED","by":{"kind":"client","name":"desk"},"changedFields":["data"],"amendmentId":"#;
    assert!(json.contains(want) && !json.contains("previous\":"), "{json}");
    assert!(json.contains(r#","scheduledFor":"2026-12-01","dueAt""#), "{json}");
    let payee = Head { payee: "landlord-8".parse().unwrap(), ..amended(&data, &["payeeAccountId", "data"]) };
    let json = json_of(before(&data), &payee);
    let want =
        r#","changedFields":["payeeAccountId","data"],"previous":{"payeeAccountId":"landlord-7"},"amendmentId":"#;
    assert!(json.contains(want) && json.contains(r#""payeeAccountId":"landlord-8""#), "{json}");
    assert!(json.contains(r#""version":3"#), "{json}");
    // The next changes are as without amendments.
    let pending = moved(&payee, &Event::Sweep, Actor::sweep());
    let json = json_of(before(&payee), &pending);
    assert!(
        json.contains(r#""version":4,"previousStatus":"SCHEDULED","status":"PENDING","by":{"kind":"bank"},"dueAt""#),
        "{json}"
    );
    // A new version alone is not an amendment.
    let alone = Head { version: 2, ..first.clone() };
    let json = json_of(before(&first), &alone);
    assert!(json.contains("payment.irregular") && json.contains("neither its status nor an amendment"), "{json}");
}

#[test]
fn an_amendment_says_what_the_changed_fields_of_the_head_were() {
    let first = scheduled();
    let all = ["payeeAccountId", "amountMinor", "currency", "scheduledFor", "dateRule", "reference", "data"];
    for (changed, want) in [
        (
            &all[..],
            r#""previous":{"payeeAccountId":"landlord-7","amountMinor":125000,"currency":"GBP","scheduledFor":"2026-12-01","reference":"RENT 7"},"#,
        ),
        (&["dueAt"], r#""previous":{"dueAt":"2026-12-01T00:00:00Z"},"#),
        (&["currency"], r#""previous":{"currency":"GBP"},"#),
    ] {
        let json = json_of(before(&first), &amended(&first, changed));
        assert!(json.contains(want), "{json}");
    }
    // The payment had no reference, and heads have no date rule.
    let without = Head { reference: None, ..first };
    let json = json_of(before(&without), &amended(&without, &["dateRule", "reference"]));
    assert!(!json.contains("previous\":"), "{json}");
}

#[test]
fn a_change_without_a_new_version_is_no_event() {
    let pending = moved(&scheduled(), &Event::Sweep, Actor::sweep());
    let redriven = Head { dispatch_attempt: Some(2), ..pending.clone() };
    assert_eq!(Logged::from_change(before(&pending), &redriven, now(), PLACE), Logged::Nothing);
}

#[test]
fn a_version_that_does_not_follow_is_irregular() {
    let scheduled = scheduled();
    let pending = moved(&scheduled, &Event::Sweep, Actor::sweep());
    let same_version = Head { state: State::Cancelled, ..scheduled.clone() };
    for (before, after) in [
        // The payment appears with a past, as after a restore.
        (None, &pending),
        (before(&pending), &scheduled),
        (before(&scheduled), &same_version),
    ] {
        let json =
            Logged::from_change(before, after, now(), PLACE).json(Epoch::FIRST.next(UtcSecond::MIN)).unwrap().unwrap();
        assert!(json.starts_with(r#"{"id":"2-irregular-shardId-1/42","type":"payment.irregular""#), "{json}");
        assert!(
            json.contains(r#","v":1,"#) && json.contains(r#","reason":"its "#) && !json.contains("place"),
            "{json}"
        );
        assert!(json.contains(&after.payment_id.to_string()), "{json}");
    }
}

#[test]
fn an_epoch_is_at_least_one() {
    assert_eq!(Epoch::from_stored(0), None);
    assert_eq!(Epoch::from_stored(7).map(Epoch::get), Some(7));
}

#[test]
fn an_epoch_is_never_used_again() {
    let at = |text: &str| text.parse::<UtcSecond>().unwrap();
    assert_eq!(Epoch::begun_at(at("2020-01-01T00:01:59Z")).get(), 1);
    assert_eq!(Epoch::begun_at(at("2026-12-01T10:00:00Z")).get(), 3_638_040);
    // Even a clock before 2020 gives an epoch.
    assert_eq!(Epoch::begun_at(at("1999-12-31T23:59:59Z")), Epoch::FIRST);
    let first = Epoch::begun_at(now());
    assert_eq!(first.next(now()).get(), first.get() + 1, "two begin in one minute");
    assert_eq!(first.next(at("2026-12-01T10:07:00Z")).get(), first.get() + 7);
}

#[test]
fn a_gap_says_from_when_to_when_if_that_is_known() {
    let until = "2026-12-01T09:00:00Z".parse().unwrap();
    let gap = GapEvent { at: now(), since: None, until, reason: "nobody looked" };
    let want = r#"{"id":"1-gap-7","type":"log.gap","at":"2026-12-01T10:00:00Z","epoch":1,"v":1,"until":"2026-12-01T09:00:00Z","reason":"nobody looked"}"#;
    assert_eq!(gap.json(Epoch::FIRST, 7).unwrap(), want);
    let gap = GapEvent { since: Some("2026-11-30T09:00:00Z".parse().unwrap()), ..gap };
    let want = want.replace(r#""until""#, r#""since":"2026-11-30T09:00:00Z","until""#);
    assert_eq!(gap.json(Epoch::FIRST, 7).unwrap(), want);
}
