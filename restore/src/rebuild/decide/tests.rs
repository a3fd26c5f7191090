//! Contradictory data is listed and not touched, and clear changes are made: a table of the cases of one payment.

use payments_model::{
    Actor, DataHash, Event, Failure, Instruction, Money, PaymentData, PaymentId, SealedData, Settlement, ShardCount,
    TransactionId,
};
use serde_json::json;

use super::*;
use crate::rebuild::known::Payments;

mod amended;

const SINCE: &str = "2026-11-20T08:30:00Z";
const AT: &str = "2026-11-20T09:20:00Z";

fn details() -> Details {
    let account = "payer".parse().unwrap();
    let id = PaymentId::derive(&account, &"key".parse().unwrap());
    let instruction = Instruction {
        account,
        payee: "shop".parse().unwrap(),
        money: Money { amount: 4_200.try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2026-11-20".parse().unwrap(),
        reference: None,
        data: None,
        date_rule: None,
    };
    let zone = "Europe/London".parse().unwrap();
    let shards: ShardCount = "1".parse().unwrap();
    Details::accept(id, instruction, zone, shards, "2026-11-20T09:00:00Z".parse().unwrap(), Actor::client("client"))
}

/// The head after these events, a minute apart.
fn head(events: &[Event]) -> StoredHead {
    let mut head = StoredHead::new(Head::scheduled(&details())).unwrap();
    for event in events {
        let step = head.known().transition(event, AT.parse().unwrap(), Actor::client("somebody")).unwrap();
        head = head.moved_by(&step).unwrap();
    }
    head
}

fn processed(id: &str) -> Vec<Event> {
    vec![Event::Sweep, Event::Settle(Settlement::Processed(id.parse::<TransactionId>().unwrap()))]
}

/// The log's events: versions with their statuses, and the transaction id of the last one.
fn known(versions: &[(u32, &str, Option<&str>)], reported: Option<&str>) -> Known {
    let (details, mut payments) = (details(), Payments::default());
    for (version, to, transaction) in versions {
        let event = json!({
            "id": "7-x", "type": format!("payment.{}", to.to_lowercase()), "at": AT, "epoch": 7, "accountId": "payer",
            "paymentId": details.payment_id.to_string(), "version": version, "status": to, "by": { "kind": "client", "name": "client" },
            "dueAt": details.due_at.to_string(), "dueDate": "2026-11-20", "transactionId": transaction,
        });
        payments.take(&event.to_string(), SINCE.parse().unwrap()).unwrap();
    }
    let known = payments.entry(&details.key().guessed_due());
    known.reported = reported.map(|at| at.parse().unwrap());
    known.clone()
}

/// The kind of change, the writes and the kinds of findings.
fn decided(
    known: &Known,
    hot: Option<&StoredHead>,
    history: Option<&StoredHead>,
) -> (Option<Change>, usize, Vec<Finding>) {
    decided_at("2026-11-20T10:00:00Z", known, hot, history)
}

fn decided_at(
    now: &str,
    known: &Known,
    hot: Option<&StoredHead>,
    history: Option<&StoredHead>,
) -> (Option<Change>, usize, Vec<Finding>) {
    decided_of(&details(), now, known, hot, history)
}

fn decided_of(
    details: &Details,
    now: &str,
    known: &Known,
    hot: Option<&StoredHead>,
    history: Option<&StoredHead>,
) -> (Option<Change>, usize, Vec<Finding>) {
    let rules = Rules { excepts: Vec::new(), since: SINCE.parse().unwrap(), now: now.parse().unwrap() };
    let (amended, contents) = (HashMap::new(), Contents::new());
    let seen = Seen { known, hot, history, details: Some(details), amended: &amended, contents: &contents };
    let decision = decide(seen, &rules).unwrap();
    let findings = decision.findings.iter().map(|(kind, _)| *kind).collect();
    (decision.change.map(|(change, _)| change), decision.writes.len(), findings)
}

#[test]
fn what_contradicts_is_listed_and_not_touched() {
    let cancelled = head(&[Event::Cancel]);
    let pending = head(&[Event::Sweep]);
    let one = head(&processed("TX-1"));
    let other = head(&processed("TX-2"));
    let failed = head(&[Event::Sweep, Event::Settle(Settlement::Failed(Failure::new(Some("AM04"), "no")))]);
    let scheduled = head(&[]);
    let settled = known(&[(2, "PENDING", None), (3, "PROCESSED", Some("TX-1"))], None);
    for (name, known, hot, history, want) in [
        (
            "a hole in the versions",
            known(&[(3, "PROCESSED", Some("TX-1"))], None),
            Some(&scheduled),
            None,
            Finding::Incomplete,
        ),
        ("cancelled here, settled there", settled.clone(), Some(&cancelled), Some(&one), Finding::Differs),
        ("settled in two ways", settled.clone(), Some(&other), Some(&one), Finding::Differs),
        ("failed here, processed in the log", settled.clone(), Some(&failed), Some(&failed), Finding::Differs),
        (
            "pending here, cancelled in the log",
            known(&[(2, "CANCELLED", None)], None),
            Some(&pending),
            None,
            Finding::Differs,
        ),
        ("pending here, cancelled there", known(&[], None), Some(&pending), Some(&cancelled), Finding::Differs),
        ("newer than the log", known(&[(1, "SCHEDULED", None)], None), Some(&pending), None, Finding::Above),
        ("reported, and nowhere settled", known(&[], Some(AT)), Some(&pending), None, Finding::ReportedUnsettled),
        ("reported, and lost", known(&[], Some(AT)), None, None, Finding::ReportedUnsettled),
    ] {
        assert_eq!(decided(&known, hot, history), (None, 0, vec![want]), "{name}");
    }
}

#[test]
fn no_head_is_built_from_sealed_details() {
    let known = known(&[(2, "PENDING", None), (3, "PROCESSED", Some("TX-1"))], None);
    let mut sealed = details();
    let place = "2026-11-20/1/0".parse().unwrap();
    sealed.instruction.data = Some(PaymentData::Sealed(SealedData { place, hash: DataHash::new("{}") }));
    let decided = decided_of(&sealed, "2026-11-20T10:00:00Z", &known, None, None);
    assert_eq!(decided, (None, 0, vec![Finding::DetailsLost]));
}

#[test]
fn what_is_clear_is_done() {
    let scheduled = head(&[]);
    let pending = head(&[Event::Sweep]);
    let one = head(&processed("TX-1"));
    let in_hot = one.in_hot_table(None).unwrap();
    let settled = known(&[(2, "PENDING", None), (3, "PROCESSED", Some("TX-1"))], None);
    let nothing = known(&[], None);
    for (name, known, hot, history, want) in [
        ("nothing is known", nothing.clone(), Some(&scheduled), None, (None, 0)),
        (
            "it is as the log says",
            known(&[(1, "SCHEDULED", None), (2, "PENDING", None)], None),
            Some(&pending),
            None,
            (None, 0),
        ),
        ("both tables have it", settled.clone(), Some(&in_hot), Some(&one), (None, 0)),
        ("the log alone knows the end", settled.clone(), Some(&scheduled), None, (Some(Change::Moved), 2)),
        ("nobody has a head", settled.clone(), None, None, (Some(Change::Built), 2)),
        (
            "the long-term table has the end",
            nothing.clone(),
            Some(&scheduled),
            Some(&one),
            (Some(Change::Completed), 1),
        ),
        ("the long-term table lost its end", settled.clone(), Some(&in_hot), None, (Some(Change::Copied), 2)),
        ("no report has it", nothing.clone(), None, Some(&one), (Some(Change::PutBack), 1)),
        (
            "a report has it, and its date is not over",
            known(&[], Some(AT)),
            None,
            Some(&one),
            (Some(Change::PutBack), 1),
        ),
        (
            "a report has it, and it waits for one",
            known(&[], Some(AT)),
            Some(&in_hot),
            Some(&one),
            (Some(Change::Reported), 1),
        ),
    ] {
        assert_eq!(decided(&known, hot, history), (want.0, want.1, Vec::new()), "{name}");
    }
    let reported = known(&[], Some(AT));
    assert_eq!(
        decided_at("2026-11-21T12:00:00Z", &reported, None, Some(&one)),
        (None, 0, Vec::new()),
        "its date is over"
    );
    // A report lists another settlement of the payment.
    let other = known(&[], Some("2026-11-20T09:21:00Z"));
    assert_eq!(decided(&other, Some(&pending), Some(&one)), (Some(Change::Completed), 1, vec![Finding::Differs]));
}
