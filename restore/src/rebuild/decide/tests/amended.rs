//! Payments that were amended: with the details of their amendments, and without them.

use payments_model::{AmendmentId, AmendmentName};

use super::*;

fn name(key: &str, version: u32) -> AmendmentName {
    AmendmentName { version, id: AmendmentId::derive(details().payment_id, &key.parse().unwrap()) }
}

/// The details of an amendment of a head to this amount, due a day later for each version.
fn amendment(head: &Head, key: &str, amount: i64) -> Details {
    let version = head.version + 1;
    let day = format!("2026-11-{}", 19 + version);
    let money = Money { amount: amount.try_into().unwrap(), ..head.money };
    let instruction = Instruction { money, scheduled_for: day.parse().unwrap(), ..details().instruction };
    let amended =
        details().amended(head, name(key, version).id, instruction, (AT.parse().unwrap(), Actor::client("client")));
    Details { due_at: format!("{day}T00:00:00Z").parse().unwrap(), due_date: day.parse().unwrap(), ..amended }
}

/// A head that was amended so, one amendment after the other, and the details of all.
fn amended(keys: &[&str]) -> (StoredHead, Vec<Details>) {
    let (mut stored, mut all) = (head(&[]), Vec::new());
    for (key, amount) in keys.iter().zip(1..) {
        let details = amendment(stored.known(), key, amount);
        let changed = vec!["amountMinor".to_owned(), "scheduledFor".to_owned()];
        let amended = Amended { at: AT.parse().unwrap(), by: Actor::client("client"), changed };
        stored = stored.amended_by(details.amendment.unwrap().name, &details, amended).unwrap();
        all.push(details);
    }
    (stored, all)
}

fn after(head: &StoredHead, events: &[Event]) -> StoredHead {
    events.iter().fold(head.clone(), |head, event| {
        let step = head.known().transition(event, AT.parse().unwrap(), Actor::sweep()).unwrap();
        head.moved_by(&step).unwrap()
    })
}

/// The log's events of a payment that had these heads.
fn logged(heads: &[&StoredHead]) -> Known {
    let mut payments = Payments::default();
    for stored in heads {
        let (head, key) = (stored.known(), stored.known().payment_id.to_string());
        let amended = head.amended.as_ref().filter(|_| head.state == State::Scheduled);
        let event = json!({
            "id": "7-x", "type": "payment.x", "at": AT, "epoch": 7, "accountId": "payer", "paymentId": key,
            "version": head.version, "status": head.state.status().as_str(), "by": { "kind": "client", "name": "client" },
            "payeeAccountId": head.payee.as_str(), "amountMinor": head.money.amount.get(), "currency": "GBP",
            "dueAt": head.due_at.to_string(), "dueDate": head.due_date.to_string(),
            "amendmentId": amended.map(|_| head.amendment.unwrap().id.to_string()),
            "changedFields": amended.map(|amended| amended.changed.clone()),
            "scheduledFor": amended.map(|_| head.scheduled_for.to_string()),
            "transactionId": head.transaction_id().map(TransactionId::as_str),
        });
        payments.take(&event.to_string(), SINCE.parse().unwrap()).unwrap();
    }
    payments.known.into_values().next().unwrap()
}

fn decision(
    known: &Known,
    hot: Option<&StoredHead>,
    history: Option<&StoredHead>,
    details_left: &[Details],
) -> Decision {
    let first = details();
    let rules =
        Rules { excepts: Vec::new(), since: SINCE.parse().unwrap(), now: "2026-11-20T10:00:00Z".parse().unwrap() };
    let amended = details_left.iter().map(|details| (details.details_key(), Ok(details.clone()))).collect();
    let contents = Contents::new();
    decide(Seen { known, hot, history, details: Some(&first), amended: &amended, contents: &contents }, &rules).unwrap()
}

fn kinds(decision: &Decision) -> Vec<Finding> {
    decision.findings.iter().map(|(kind, _)| *kind).collect()
}

/// The head that is put into the hot table.
fn put(decision: &Decision) -> Head {
    let put = decision.writes.iter().find_map(|write| match write {
        Write::ToHot { new, .. } => Some(new.known().clone()),
        _ => None,
    });
    put.unwrap_or_else(|| panic!("nothing is put: {decision:?}"))
}

#[test]
fn amendments_that_a_head_lacks_are_made_again() {
    let scheduled = head(&[]);
    let (once, _) = amended(&["one"]);
    let (twice, all) = amended(&["one", "two"]);
    let claimed = after(&twice, &[Event::Sweep]);
    let processed = after(&twice, &processed("TX-1"));
    for (case, heads, want) in [
        ("once", vec![&once], &once),
        ("twice", vec![&once, &twice], &twice),
        ("claimed", vec![&once, &twice, &claimed], &claimed),
        ("settled", vec![&once, &twice, &claimed, &processed], &processed),
    ] {
        for hot in [Some(&scheduled), None] {
            let known = logged(&[&[&scheduled][..], &heads].concat());
            let decision = decision(&known, hot, None, &all);
            assert_eq!(kinds(&decision), [], "{case}");
            let (put, want) = (put(&decision), want.known());
            assert_eq!((put.money, put.due_at, put.version), (want.money, want.due_at, want.version), "{case}");
            assert_eq!((put.state, put.amendment), (want.state.clone(), want.amendment), "{case}");
        }
    }
}

/// The old content may not be paid: an amendment was in force. So the head names the lost details, and `dispatch`
/// rejects the head.
#[test]
fn an_amendment_whose_details_are_lost_leaves_nothing_that_is_paid() {
    let scheduled = head(&[]);
    let (twice, all) = amended(&["one", "two"]);
    let (once, _) = amended(&["one"]);
    let (claimed, cancelled) = (after(&twice, &[Event::Sweep]), after(&twice, &[Event::Cancel]));
    let processed = after(&twice, &processed("TX-1"));
    // The changes after the amendments, and the advice to the operator.
    for (later, advice) in [
        (vec![], "SCHEDULED at version 3: let its client cancel it"),
        (vec![&claimed], "PENDING at version 4: ask the transaction service"),
        (vec![&cancelled], "CANCELLED at version 4: it has ended"),
        (vec![&claimed, &processed], "PROCESSED at version 5: it has ended"),
    ] {
        let heads = [&[&scheduled, &once, &twice][..], &later].concat();
        let (known, end) = (logged(&heads), heads[heads.len() - 1]);
        for hot in [Some(&scheduled), None] {
            let decision = decision(&known, hot, None, &all[..1]);
            assert_eq!(kinds(&decision), [Finding::DetailsLost]);
            assert!(decision.findings[0].1.contains(advice), "{:?}", decision.findings);
            let (put, want) = (put(&decision), end.known());
            assert_eq!((&put.payee, put.money, &put.reference), (&want.payee, want.money, &want.reference));
            assert_eq!((put.due_at, put.due_date), (want.due_at, want.due_date));
            assert_eq!(put.scheduled_for, want.scheduled_for);
            assert_eq!((put.state, put.amendment), (want.state.clone(), want.amendment));
        }
    }
    // The finding comes each time, until the client has another payment.
    for end in [&twice, &claimed, &cancelled] {
        let decision = decision(&logged(&[&scheduled, &once, &twice, end]), Some(end), None, &all[..1]);
        assert_eq!((kinds(&decision), decision.writes), (vec![Finding::DetailsLost], Vec::new()));
    }
}

/// The head has the content of the log, and its details have another: so `dispatch` rejects the head, and the old
/// content is not paid either.
#[test]
fn an_amendment_whose_details_are_not_the_logs_is_as_the_log_says_and_not_paid() {
    let scheduled = head(&[]);
    let (once, all) = amended(&["one"]);
    let original = &all[0];
    let payee = Instruction { payee: "thief".parse().unwrap(), ..original.instruction.clone() };
    let later = amended(&["one", "two"]).1.remove(1);
    for (field, other) in [
        ("payeeAccountId", Details { instruction: payee, ..original.clone() }),
        ("dueAt, dueDate", Details { due_at: later.due_at, due_date: later.due_date, ..original.clone() }),
    ] {
        for hot in [Some(&scheduled), None] {
            let decision = decision(&logged(&[&scheduled, &once]), hot, None, std::slice::from_ref(&other));
            assert_eq!(kinds(&decision), [Finding::DetailsLost], "{field}");
            assert!(decision.findings[0].1.contains(&format!("have another {field}, so nothing is sent")), "{field}");
            let (put, want) = (put(&decision), once.known());
            assert_eq!((&put.payee, put.due_at, put.due_date), (&want.payee, want.due_at, want.due_date), "{field}");
            assert_eq!(put.amendment, want.amendment, "{field}");
        }
    }
}

/// The content before the last amendment is not sent any more, so nobody needs its details.
#[test]
fn an_earlier_amendment_whose_details_are_lost_is_not_missed() {
    let scheduled = head(&[]);
    let ((once, _), (twice, all)) = (amended(&["one"]), amended(&["one", "two"]));
    for hot in [Some(&scheduled), None] {
        let decision = decision(&logged(&[&scheduled, &once, &twice]), hot, None, &all[1..]);
        assert_eq!((kinds(&decision), put(&decision)), (Vec::new(), twice.known().clone()));
    }
}

/// Somebody changed the due time of the head of an amended payment by hand. By the log, the payment is claimed at
/// another time.
#[test]
fn a_due_time_that_is_not_the_logs_is_listed_and_not_touched() {
    let scheduled = head(&[]);
    let (once, all) = amended(&["one"]);
    let claimed = after(&once, &[Event::Sweep]);
    let moved = Head { due_at: "2026-11-27T00:00:00Z".parse().unwrap(), ..once.known().clone() };
    let moved = StoredHead::new(moved).unwrap();
    let decision = decision(&logged(&[&scheduled, &once, &claimed]), Some(&moved), None, &all);
    assert_eq!((kinds(&decision), decision.writes), (vec![Finding::Differs], Vec::new()));
}

#[test]
fn another_amendment_than_the_logs_is_listed_and_not_touched() {
    let scheduled = head(&[]);
    let ((one, _), (two, all)) = (amended(&["one"]), amended(&["two"]));
    let decision = decision(&logged(&[&scheduled, &one]), Some(&two), None, &all);
    assert_eq!((kinds(&decision), decision.writes), (vec![Finding::Differs], Vec::new()));
}

#[test]
fn the_end_in_the_long_term_table_counts_for_a_head_from_before_the_amendment() {
    let scheduled = head(&[]);
    let (once, all) = amended(&["one"]);
    let end = after(&once, &processed("TX-1"));
    for known in [logged(&[&scheduled]), logged(&[&scheduled, &once])] {
        let decision = decision(&known, Some(&scheduled), Some(&end), &all);
        assert_eq!((kinds(&decision), put(&decision).state), (Vec::new(), end.known().state.clone()));
    }
    // A claimed head has the content that was sent.
    let claimed = head(&[Event::Sweep]);
    let decision = decision(&logged(&[&scheduled]), Some(&claimed), Some(&end), &all);
    assert_eq!(kinds(&decision), [Finding::Differs]);
}
