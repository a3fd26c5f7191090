//! Changes that a restore undid, as a later restore reads them.

use serde_json::json;

use super::*;

const SINCE: &str = "2026-11-20T08:30:00Z";
const EARLIER: &str = "2026-11-20T06:00:00Z";
const LATER: &str = "2026-11-20T09:00:00Z";

/// An event of the payment, as the log has it.
fn event(epoch: u32, kind: &str, at: &str, version: u32, to: &str) -> String {
    let account = "payer".parse().unwrap();
    let payment = PaymentId::derive(&account, &"key".parse().unwrap()).to_string();
    json!({
        "id": format!("{epoch}-{payment}-{version}"), "type": kind, "at": at, "epoch": epoch, "accountId": "payer",
        "paymentId": payment, "version": version, "status": to, "by": { "kind": "client", "name": "client" }, "dueAt": "2026-12-01T00:00:00Z", "dueDate": "2026-12-01",
    })
    .to_string()
}

fn epoch_begins(epoch: u32, at: &str) -> String {
    json!({ "id": format!("{epoch}-restored"), "type": "log.restored", "at": at, "epoch": epoch, "endCursor": "7.2.0" })
        .to_string()
}

/// The known versions of the payment after these events.
fn versions(events: &[String]) -> Vec<(u32, Status)> {
    let mut payments = Payments::default();
    for event in events {
        payments.take(event, SINCE.parse().unwrap()).unwrap();
    }
    let known = payments.known.values().flat_map(|known| &known.versions);
    known.map(|version| (version.number, version.status)).collect()
}

#[test]
fn what_a_restore_took_back_counts_however_old_it_is() {
    let cancelled = event(7, "payment.cancelled", LATER, 2, "CANCELLED");
    let restored = event(8, "payment.restored", EARLIER, 1, "SCHEDULED");
    assert_eq!(versions(std::slice::from_ref(&cancelled)), [(2, Status::Cancelled)]);
    assert_eq!(versions(&[cancelled.clone(), epoch_begins(8, LATER), restored.clone()]), [(1, Status::Scheduled)]);
    // The file with the beginning of the epoch may be missing.
    assert_eq!(versions(&[cancelled, restored]), [(1, Status::Scheduled)]);
}

/// The restored table has the payment as it was then, and its changes before `since`, whose events are not read.
#[test]
fn what_a_restore_took_back_long_before_the_instant_does_not_count() {
    let restored = event(8, "payment.restored", EARLIER, 1, "SCHEDULED");
    let cancelled = event(8, "payment.cancelled", "2026-11-20T08:00:00Z", 2, "CANCELLED");
    assert!(versions(&[epoch_begins(8, "2026-11-20T07:00:00Z"), restored, cancelled]).is_empty());
}

#[test]
fn what_a_restore_tells_is_no_proof_that_the_log_is_old() {
    let mut payments = Payments::default();
    for event in
        [event(8, "payment.restored", EARLIER, 1, "SCHEDULED"), event(8, "payment.pending", LATER, 2, "PENDING")]
    {
        payments.take(&event, SINCE.parse().unwrap()).unwrap();
    }
    assert_eq!(payments.first_at, Some(LATER.parse().unwrap()));
}
