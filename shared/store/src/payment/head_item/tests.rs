//! Tests of the limits of a head, and of items that are not heads.

use payments_model::business_days::calendars;
use payments_model::{
    AccountId, Amended, Amendment, AmendmentId, BusinessZone, Calendar, CalendarVersion, DateMove, DateRule, Details,
    Event, Instruction, JsonText, MAX_AMENDMENTS, MAX_AMOUNT_MINOR, Money, MoveReason, PaymentId, Settlement,
    ShardCount,
};

use super::*;
use crate::error::StoreError;
use crate::payment::details_item::{client_bytes, decode_details, encode_details};
use crate::payment::head_item::{decode_head, encode_head};
use crate::size::{OWN_DETAILS_BYTES, item_bytes};

/// Details with every field at its longest.
fn longest() -> Details {
    let account: AccountId = "a".repeat(48).parse().unwrap();
    let payment_id = PaymentId::derive(&account, &"k".parse().unwrap());
    let instruction = Instruction {
        account,
        payee: "p".repeat(48).parse().unwrap(),
        money: Money { amount: MAX_AMOUNT_MINOR.try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2099-12-30T23:59:59+00:30".parse().unwrap(),
        date_rule: Some(DateRule::Following),
        reference: Some("R".repeat(35).parse().unwrap()),
        data: Some(JsonText::from_stored("\"data\"".to_owned()).unwrap().into()),
    };
    let zone: BusinessZone = "Pacific/Kiritimati".parse().unwrap();
    let shards: ShardCount = "1000".parse().unwrap();
    let now: UtcSecond = "2099-12-31T00:00:01Z".parse().unwrap();
    Details::accept(payment_id, instruction, zone, shards, now, Actor::client(&"b".repeat(38)))
}

/// A move by the calendar with the longest names.
fn moved(reason: MoveReason) -> DateMove {
    let of = |calendar: &Calendar| CalendarVersion::current(calendar);
    let longest = calendars().unwrap().iter().map(of).max_by_key(|calendar| calendar.id().len());
    DateMove { reason, calendar: longest }
}

/// Details of a payment's last amendment, due at another time than at first.
fn longest_amended() -> Details {
    let first = longest();
    let name = |version| AmendmentName { version, id: AmendmentId::derive(first.payment_id, &"k".parse().unwrap()) };
    let (due_at, due_date) = ("2099-12-31T23:59:58Z".parse().unwrap(), "2099-12-31".parse().unwrap());
    let amendment = Some(Amendment { name: name(MAX_AMENDMENTS + 1), previous: Some(name(MAX_AMENDMENTS)) });
    Details { due_at, due_date, amendment, ..first }
}

/// A head in each state, with every field at its longest, as created and as amended.
fn longest_heads() -> Vec<Head> {
    let first = Head::scheduled(&longest());
    let details = longest_amended();
    let fields = ["payeeAccountId", "amountMinor", "currency", "scheduledFor", "dateRule", "reference", "data"];
    let changed = fields.map(str::to_owned).to_vec();
    let amended = Amended { at: details.created_at, by: details.created_by.clone(), changed };
    let amended = first.amended(details.amendment.unwrap().name, &details, amended);
    [lives(&first), lives(&amended)].concat()
}

/// A head in each state. The actor of a create, an amendment or a cancel can have any name; only
/// the bank claims, and only the transaction service settles.
fn lives(scheduled: &Head) -> Vec<Head> {
    let version = scheduled.version;
    let entry = |status| TrailEntry {
        status,
        at: UtcSecond::MAX,
        by: match status {
            Status::Pending => Actor::sweep(),
            Status::Cancelled => Actor::client(&"c".repeat(38)),
            _ => Actor::transaction_service(),
        },
    };
    let transaction_id = Settlement::Processed("t".repeat(64).parse().unwrap());
    let failed = Event::Settle(Settlement::Failed(Failure::new(Some("AM04"), &"r".repeat(256))));
    let settled = |settlement: Settlement| {
        let state = State::from(settlement);
        let moved = vec![entry(Status::Pending), entry(state.status())];
        let dispatch_attempt = Some(u32::MAX);
        let unamended = Head { amended: None, ..scheduled.clone() };
        Head { state, moved, version: version + 2, dispatch_attempt, unreported: true, ..unamended }
    };
    let moved = vec![entry(Status::Cancelled)];
    let cancelled = Head { state: State::Cancelled, moved, version: version + 1, ..scheduled.clone() };
    let moved = vec![entry(Status::Pending)];
    let (dispatch_attempt, sent_again_at) = (Some(u32::MAX), Some(UtcSecond::MAX));
    let pending = Head {
        state: State::Pending,
        moved,
        version: version + 1,
        dispatch_attempt,
        sent_again_at,
        ..scheduled.clone()
    };
    let without = Head { reference: None, ..settled(reason_of(&failed, &Head { reference: None, ..pending.clone() })) };
    let reason = reason_of(&failed, &pending);
    vec![scheduled.clone(), pending, settled(transaction_id), settled(reason), without, cancelled]
}

/// The settlement as a pending head keeps it.
fn reason_of(event: &Event, pending: &Head) -> Settlement {
    let step = pending.transition(event, UtcSecond::MAX, Actor::transaction_service()).unwrap();
    let State::Failed(failure) = step.to() else { panic!("it failed") };
    Settlement::Failed(failure.clone())
}

#[test]
fn every_head_fits_one_write_unit() {
    for head in longest_heads() {
        let bytes = item_bytes(&encode_head(&head).unwrap());
        assert!(bytes <= 1_024, "{}: {bytes}", head.state.status());
    }
}

#[test]
fn heads_and_details_are_decoded() {
    for head in longest_heads() {
        assert_eq!(decode_head("t", encode_head(&head).unwrap()).unwrap(), head);
    }
    let moved = Details { moved: Some(moved(MoveReason::CutOff)), ..longest() };
    for details in [moved, longest_amended()] {
        assert_eq!(decode_details("t", encode_details(&details).unwrap()).unwrap(), details);
    }
}

/// Our own part of details never takes more than is reserved for it, so the largest ones take 8
/// write units, and a later attribute changes nothing for clients. A new attribute needs its
/// longest value in `longest` or `longest_amended`, and its name here.
#[test]
fn everything_of_ours_fits_beside_the_largest_payment() {
    let whole = Details { moved: Some(moved(MoveReason::Weekend)), ..longest_amended() };
    let item = encode_details(&whole).unwrap();
    let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    let ours = "accountId amountMinor calendarId calendarVersion createdAt createdBy currency data dateRule dueAt dueDate moveReason payeeAccountId pk previous \
                reference scheduledFor shard sk slotAt";
    assert_eq!(names.join(" "), ours);
    let bytes = item_bytes(&item) - client_bytes(&whole.instruction);
    assert!(bytes <= OWN_DETAILS_BYTES, "{bytes}");
}

/// The limit of a payment does not depend on the number of its amendments, on the reason of its
/// move, or on its creator.
#[test]
fn only_what_the_client_sent_counts() {
    let first = longest();
    let moved = Details { moved: Some(moved(MoveReason::CutOff)), created_by: Actor::client("b"), ..longest() };
    let sent = 48 + 48 + "2099-12-30T23:59:59+00:30".len() + "following".len() + 35 + "\"data\"".len();
    for details in [&first, &moved, &longest_amended()] {
        assert_eq!(client_bytes(&details.instruction), sent);
    }
}

#[test]
fn a_damaged_amendment_is_unreadable() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let amended = &longest_heads()[6];
    let whole = encode_head(amended).unwrap();
    let other_due = format!("SCHEDULED#2099-12-30#2099-12-30T00:00:00Z#{}", amended.payment_id);
    let other_name = format!("20#{}", amended.amendment.unwrap().id);
    for (attribute, damage, why) in [
        ("due", Some(text(&other_due)), "the moved key is not that of its due time"),
        ("moved", None, "the moved key is not that of its due time"),
        ("amended", None, "it is amended, and does not say by whom"),
        ("details", None, "the trail and the version disagree"),
        ("details", Some(text(&other_name)), "the trail and the version disagree"),
        ("version", Some(AttributeValue::N("22".to_owned())), "the trail and the version disagree"),
    ] {
        let mut item = whole.clone();
        item.remove(attribute);
        item.extend(damage.map(|value| (attribute.to_owned(), value)));
        let Err(StoreError::Unreadable { why: said, .. }) = decode_head("t", item) else {
            panic!("{attribute} passed")
        };
        assert_eq!(said, why, "{attribute}");
    }
    // A due time that only a manual edit can have changed stops a payment that was never amended.
    let mut item = encode_head(&longest_heads()[0]).unwrap();
    item.extend([("due".to_owned(), text(&other_due))]);
    item.extend([("moved".to_owned(), text(&format!("2099-12-30T00:00:00Z#{}", amended.payment_id)))]);
    let Err(StoreError::Unreadable { why, .. }) = decode_head("t", item) else { panic!("it passed") };
    assert_eq!(why, "it is due elsewhere without an amendment");

    let whole = encode_details(&longest_amended()).unwrap();
    for attribute in ["slotAt", "sk"] {
        let mut item = whole.clone();
        item.remove(attribute);
        item.extend([("sk".to_owned(), text("DETAILS"))]);
        assert!(decode_details("t", item).is_err(), "{attribute}");
    }
}

#[test]
fn damaged_heads_are_unreadable() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let whole = encode_head(&longest_heads()[2]).unwrap();
    for (attribute, damage, why) in [
        ("status", text("PENDING"), "status, dispatchAttempt, transactionId, failureCode and failureReason disagree"),
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
