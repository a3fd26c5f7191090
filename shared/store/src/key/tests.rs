//! Tests that keys keep their values, and their order.

use payments_model::{ActionId, ActionName, AmendmentId, BusinessZone, IdempotencyKey, Status, UtcSecond};
use proptest::prelude::*;

use super::*;
use crate::key::audit::{audit_outcome_sort, audit_sort, parse_audit_sort};
use crate::key::due::{DueSort, due_payment};
use crate::key::unreported::UnreportedSort;
use crate::key::{
    LANES, Lane, after_place_sort, before_place_sort, details_sort, head_sort, parse_account_partition,
    parse_details_sort, parse_head_sort, parse_payment_partition, parse_place_sort, place_sort,
};

prop_compose! {
    fn instants()(day in 0_i64..36_000, second in 0_i64..86_400) -> UtcSecond {
        let delta = std::time::Duration::from_secs(u64::try_from(day * 86_400 + second).unwrap());
        UtcSecond::new(UtcSecond::MIN.as_chrono() + delta).unwrap()
    }
}

prop_compose! {
    fn ids()(key in "[a-z]{1,8}") -> PaymentId {
        let account: AccountId = "acc".parse().unwrap();
        let key: IdempotencyKey = key.parse().unwrap();
        PaymentId::derive(&account, &key)
    }
}

prop_compose! {
    fn slots()(at in instants(), payment_id in ids()) -> Slot {
        Slot { at: at.to_string().parse().unwrap(), payment_id }
    }
}

prop_compose! {
    fn dues()(due_at in instants(), payment_id in ids(), status in prop::sample::select(Status::ALL.to_vec())) -> DueSort {
        let london: BusinessZone = "Europe/London".parse().unwrap();
        DueSort { status, due_date: london.date_of(due_at), due_at, payment_id }
    }
}

proptest! {
    #[test]
    fn audit_keys_keep_value_and_order(a in instants(), b in instants(), request in "[a-z]{1,8}") {
        let name = |at| ActionName { previewed_at: at, id: ActionId::derive(&request, at, "cancel") };
        let (intent, outcome) = (audit_sort(name(a)), audit_outcome_sort(name(a)));
        prop_assert_eq!(parse_audit_sort(&intent)?, (name(a), false));
        prop_assert_eq!(parse_audit_sort(&outcome)?, (name(a), true));
        prop_assert!(intent < outcome && outcome.as_str() < "~");
        // Nothing of another action is between the two.
        let other = audit_sort(name(b));
        prop_assert!(a == b || (other < intent) == (b < a) && (other < outcome) == (b < a));
    }

    #[test]
    fn head_keys_keep_value_and_order(a in slots(), b in slots()) {
        let (encoded_a, encoded_b) = (head_sort(a), head_sort(b));
        prop_assert_eq!(parse_head_sort(&encoded_a)?, a);
        prop_assert_eq!(a.cmp(&b), encoded_a.cmp(&encoded_b));
        // A place has the form of a slot, so both are in one order.
        let place = a.first_place();
        prop_assert_eq!((place_sort(place), parse_place_sort(&encoded_a)?), (encoded_a.clone(), place));
        prop_assert!(encoded_a < after_place_sort(place) && before_place_sort(place) < encoded_a);
        prop_assert!(a >= b || after_place_sort(place) < encoded_b);
        prop_assert!(a <= b || before_place_sort(place) > encoded_b);
    }

    #[test]
    fn head_keys_lie_within_their_instants(a in slots(), b in slots()) {
        // The range [from, to) of instants is the range [encode(from), encode(to)) of keys.
        prop_assert_eq!(a.at < b.at, head_sort(a) < b.at.first_due().to_string());
        prop_assert_eq!(a.at >= b.at, head_sort(a) >= b.at.first_due().to_string());
    }

    #[test]
    fn due_keys_keep_value_and_order(a in dues(), b in dues()) {
        prop_assert_eq!(a.to_string().parse::<DueSort>()?, a);
        let value = |k: &DueSort| (k.status.as_str(), k.due_date, k.due_at, k.payment_id);
        prop_assert_eq!(value(&a).cmp(&value(&b)), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn due_keys_lie_within_their_own_day(due in dues()) {
        let key = due.to_string();
        prop_assert!(DueSort::start_of(due.status, due.due_date) <= key);
        prop_assert!(key < DueSort::end_of(due.status, due.due_date));
        prop_assert!(DueSort::end_of(due.status, due.due_date) < DueSort::start_of(due.status, due.due_date.plus_days(1)));
    }

    #[test]
    fn unreported_keys_keep_value_and_order(a in (instants(), ids()), b in (instants(), ids())) {
        let key = |(settled_at, payment_id)| UnreportedSort { settled_at, payment_id };
        let (a, b) = (key(a), key(b));
        prop_assert_eq!(a.to_string().parse::<UnreportedSort>()?, a);
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }
}

#[test]
fn the_first_and_last_second_are_in_their_day() {
    let id = PaymentId::derive(&"acc".parse().unwrap(), &"k".parse().unwrap());
    for at in ["2026-12-01T00:00:00Z", "2026-12-01T00:00:01Z", "2026-12-01T00:59:59Z", "2026-12-01T23:59:59Z"] {
        let (due_date, due_at) = ("2026-12-01".parse().unwrap(), at.parse().unwrap());
        let key = DueSort { status: Status::Scheduled, due_date, due_at, payment_id: id }.to_string();
        assert!("SCHEDULED#2026-12-01" <= key.as_str() && key.as_str() < "SCHEDULED#2026-12-02", "{key}");
    }
}

proptest! {
    #[test]
    fn payments_due_by_now_are_before_its_upper_bound(due in dues(), now in instants()) {
        let london: BusinessZone = "Europe/London".parse().unwrap();
        let end = DueSort::end_at(due.status, london.date_of(now), now);
        prop_assert_eq!(due.due_at <= now, due.to_string() < end);
        prop_assert!(DueSort::start_of_status(due.status) < due.to_string());
        prop_assert!(due.to_string() < due.just_after());
    }
}

#[test]
fn lanes_never_change_and_all_are_used() {
    // If a lane changed, it would only spread a shard's counts over two lanes.
    let lane = |shard: &str| Lane::for_stream_shard(shard).index();
    assert_eq!(lane("shardId-00000001796000000000-a1b2c3d4"), 1);
    let mut used: Vec<usize> = (0..200).map(|n| lane(&format!("shardId-0000000179600{n:07}-00000000"))).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, (0..LANES).collect::<Vec<_>>());
    assert_eq!(Lane::all().map(Lane::index).collect::<Vec<_>>(), used);
}

#[test]
fn quarter_hours_start_on_the_quarter() {
    for (at, want) in [
        ("2026-12-01T09:00:00Z", "202612010900"),
        ("2026-12-01T09:14:59Z", "202612010900"),
        ("2026-12-01T09:15:00Z", "202612010915"),
        ("2026-12-01T23:59:59Z", "202612012345"),
    ] {
        assert_eq!(UnreportedSort::quarter_hour(at.parse().unwrap()), want);
    }
}

proptest! {
    #[test]
    fn a_due_key_says_when_its_own_payment_is_due(slot in slots(), due in dues()) {
        let head = HeadKey { account: "acc".parse().unwrap(), slot };
        let is_own = due.payment_id == slot.payment_id;
        let want = if is_own { due.due_at } else { slot.at.first_due() };
        prop_assert_eq!(due_payment(&head, &due.to_string()).due_at, want);
    }
}

#[test]
fn details_have_a_key_for_each_amendment() {
    let payment = PaymentId::derive(&"acc".parse().unwrap(), &"k".parse().unwrap());
    let name = AmendmentName { version: 20, id: AmendmentId::derive(payment, &"change".parse().unwrap()) };
    assert_eq!((details_sort(None).as_str(), parse_details_sort("DETAILS")), ("DETAILS", Ok(None)));
    let sort = details_sort(Some(name));
    assert_eq!(
        (sort.as_str(), parse_details_sort(&sort)),
        (format!("DETAILS#20#{}", name.id).as_str(), Ok(Some(name)))
    );
    for text in ["DETAILS#", "DETAILS#2", "DETAILSx", "details"] {
        assert!(parse_details_sort(text).is_err(), "{text}");
    }
}

#[test]
fn other_texts_are_not_keys() {
    for text in ["", "#", "ACCT#", "ACCT#a#b", "PAY#1", "2026-12-01T00:00:00Z#", "x#y#z", "SCHEDULED#2026-12-01"] {
        assert!(parse_account_partition(text).is_err(), "{text}");
        assert!(parse_payment_partition(text).is_err(), "{text}");
        assert!(parse_head_sort(text).is_err(), "{text}");
        assert!(parse_details_sort(text).is_err(), "{text}");
        assert!(text.parse::<DueSort>().is_err(), "{text}");
        assert!(text.parse::<UnreportedSort>().is_err(), "{text}");
    }
}
