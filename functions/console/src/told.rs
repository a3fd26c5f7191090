//! Actions of the audit trail and answers to deliveries, in words.

use std::collections::BTreeMap;

use maud::{Markup, html};
use payments_model::{BusinessDate, PaymentId};
use payments_store::{Asked, AuditIntent, AuditOutcome, DeliveryEnd, Standing};

use crate::html::{foreign, limit_in_words, link, payment_link, person_of};
use crate::operations::BankQueue;
use crate::times::Times;
use crate::views::queues::title as queue_title;

/// The most payments of an action that a row names.
const NAMED: usize = 4;

/// The name of the action that cancels payments.
pub(crate) const CANCEL: &str = "cancel";

/// The outcome shown for an intent without one.
pub(crate) const UNKNOWN: &str = "Unknown: it may have happened";

/// The name of the action that plans an undo.
pub(crate) const PLAN_UNDO: &str = "plan-undo";

/// The beginning of the outcome of an action that was refused.
pub(crate) const REFUSED: &str = "refused: ";

/// Every action: its name, the name of its kind, and what an operator did.
pub(crate) const ACTIONS: [(&str, &str, &str); 27] = [
    (CANCEL, "Cancel", "Cancelled"),
    ("stop", "Stop", "Stopped all claims and sends"),
    ("resume", "Resume", "Resumed claims and sends"),
    ("hold-dates", "Hold dates", "Held the payments due"),
    ("release-dates", "Release dates", "Released the payments due"),
    ("release-day", "Release a date beyond its limit", "Raised the limit of"),
    ("send-again", "Send again", "Sent again"),
    ("close-finding", "Close a finding", "Closed a finding of"),
    ("move-dead-letters", "Move back", "Moved back"),
    ("redate", "Redate", "Started a redate"),
    (PLAN_UNDO, "Plan an undo", "Planned an undo"),
    ("undo", "Undo", "Started an undo"),
    ("look-for-redates", "Count for a redate", "Started a count for a redate"),
    ("start-sweep", "Sweep", "Started a sweep"),
    ("start-redrive", "Redrive", "Started a redrive"),
    ("start-report", "Report", "Started a report"),
    ("start-archive", "Archive", "Started the archive"),
    ("start-recount", "Recount", "Started a recount"),
    ("repair-counters", "Repair counters", "Started a repair of counters"),
    ("enable-endpoint", "Enable an endpoint", "Enabled"),
    ("test-endpoint", "Test an endpoint", "Tested"),
    ("replay-endpoint", "Replay", "Replayed to"),
    ("skip-event", "Skip an event", "Skipped an event of"),
    ("put-endpoint", "Write an endpoint", "Wrote"),
    ("delete-endpoint", "Delete an endpoint", "Deleted"),
    ("rotate-secret", "Rotate a secret", "Rotated the secret of"),
    ("read-secret", "Read a secret", "Read the secret of"),
];

/// The arguments that a row shows as links, or not at all.
const LINKED: [&str; 7] = ["payments", "payment", "endpoint", "queue", "hash", "version", "need"];

/// An action in the past tense, with links to the things that it is about.
pub(crate) fn action(intent: &AuditIntent) -> Markup {
    let known = ACTIONS.iter().find(|(name, ..)| *name == intent.action);
    let arguments = arguments(intent);
    let of = |name| arguments.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let rest: Vec<String> = arguments.iter().filter(|(name, _)| !LINKED.contains(name)).map(said).collect();
    // Not in the reason, in which an operator may name others.
    let payments = payments(of("payments").or(of("payment")).unwrap_or_default());
    html! {
        b { (known.map_or(intent.action.as_str(), |(.., did)| did)) } " "
        @match payments.len() { 0 => {}, 1 => "1 payment ", several => { (several) " payments " } }
        @for id in payments.iter().take(NAMED) { (payment_link(*id)) " " }
        @if payments.len() > NAMED { "and " (payments.len() - NAMED) " more" }
        @if let Some(endpoint) = of("endpoint") { "endpoint " a href=(link("endpoints", &[("id", endpoint)])) { (endpoint) } }
        @if let Some(queue) = of("queue") { a href=(link("queues", &[])) { (queue_named(queue)) } }
        @if !rest.is_empty() { small { (foreign(rest.join(", "))) } }
    }
}

/// The arguments, each with its name.
fn arguments(intent: &AuditIntent) -> Vec<(&str, &str)> {
    intent.arguments.lines().filter_map(|line| line.split_once(": ")).collect()
}

fn said((name, value): &(&str, &str)) -> String {
    match *name {
        // A quotation mark in it would end it, and begin another fact.
        "reason" | "description" => format!("“{}”", value.replace(['“', '”'], "'")),
        "enabled" if *value == "false" => "switched off".to_owned(),
        "enabled" => "switched on".to_owned(),
        "url" => format!("to {value}"),
        "types" => format!("only {}", value.replace(' ', ", ")),
        "accounts" => format!("only of {}", value.replace(' ', ", ")),
        "cursor" | "place" => format!("from the place {value} on"),
        "generation" => format!("secret {value}"),
        "attempt" => format!("after request {value}"),
        "dates" => format!("{value} closed dates"),
        "up-to" => {
            format!("up to {}", value.parse().map_or_else(|_| (*value).to_owned(), |limit| limit_in_words(&limit)))
        }
        name => match value.parse::<BusinessDate>() {
            Ok(date) => format!("{name} {}", date.as_chrono().format("%a %-d %b")),
            Err(_) => format!("{name} {value}"),
        },
    }
}

fn queue_named(queue: &str) -> String {
    queue.parse::<BankQueue>().map_or_else(|_| queue.to_owned(), |queue| queue_title(queue).to_ascii_lowercase())
}

/// The payments that a text names, each once.
fn payments(text: &str) -> Vec<PaymentId> {
    let words = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
    let mut found = Vec::new();
    for id in words.filter_map(|word| word.parse().ok()) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// An outcome in words: the class and the word of its pill, and one sentence.
pub(crate) struct Told {
    pub(crate) class: &'static str,
    pub(crate) word: &'static str,
    pub(crate) more: String,
}

/// The outcome of an action; without one, it may have happened.
pub(crate) fn outcome(action: &str, outcome: Option<&AuditOutcome>) -> Told {
    let Some(outcome) = outcome else {
        return Told { class: "warn", word: "Outcome unknown", more: "it may have happened".to_owned() };
    };
    let result = outcome.result.as_str();
    if let Some(why) = result.strip_prefix(REFUSED) {
        return Told { class: "stop", word: "Refused", more: why.to_owned() };
    }
    let more = if action == CANCEL { cancelled(&parts(result)) } else { without_names(result) };
    if more.starts_with("not ") || more.starts_with("0 of ") || more.contains("was closed before") {
        return Told { class: "warn", word: "Not done", more };
    }
    // The trail does not know how a run ended.
    let is_start = action.starts_with("start-") || action.contains("redate") || action == "repair-counters";
    Told { class: "ok", word: if is_start { "Accepted" } else { "Done" }, more }
}

/// The state of an action that needs a second person.
pub(crate) fn standing(asked: &Asked, times: Times) -> Told {
    let by = asked.decision.as_ref().map_or("", |decision| person_of(&decision.by));
    let (class, word, more) = match asked.standing(times.now) {
        Standing::Waits(until) => {
            ("warn", "Waits", format!("waits for a second person until {}", times.brief_text(until)))
        }
        Standing::Lapsed => ("off", "Lapsed", "no second person decided in four hours".to_owned()),
        Standing::Approved => ("warn", "Outcome unknown", format!("{by} approved it, and it may have happened")),
        Standing::Refused => ("stop", "Refused", format!("{by} refused it")),
        Standing::Ended => return outcome(&asked.intent.action, asked.outcome.as_ref()),
    };
    Told { class, word, more }
}

/// The lines of an outcome without the names before them.
fn without_names(result: &str) -> String {
    let lines = result.lines().map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest));
    lines.collect::<Vec<_>>().join(", ")
}

/// The lines of an outcome, each with its payment.
pub(crate) fn parts(result: &str) -> Vec<(PaymentId, &str)> {
    let lines = result.lines().filter_map(|line| line.split_once(": "));
    lines.filter_map(|(id, rest)| Some((id.parse().ok()?, rest))).collect()
}

/// The number of payments that were cancelled, and what happened to the others.
pub(crate) fn cancelled(parts: &[(PaymentId, &str)]) -> String {
    let done = parts.iter().filter(|(_, rest)| is_cancelled(rest)).count();
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for (_, rest) in parts.iter().filter(|(_, rest)| !is_cancelled(rest)) {
        *others.entry(in_words(rest)).or_default() += 1;
    }
    let of = if done == parts.len() { String::new() } else { format!(" of {}", parts.len()) };
    let mut text = format!("{done}{of} cancelled");
    for (what, number) in others {
        text.push_str(&format!(", {number} {what}"));
    }
    text
}

pub(crate) fn is_cancelled(rest: &str) -> bool {
    rest.starts_with("CANCELLED")
}

/// The result of one payment of a cancel.
pub(crate) fn in_words(rest: &str) -> String {
    match rest {
        "not cancelled, it is PENDING" => "claimed meanwhile".to_owned(),
        "not cancelled, it is PROCESSED" => "processed meanwhile".to_owned(),
        "not cancelled, it is FAILED" => "failed meanwhile".to_owned(),
        "CANCELLED" => "cancelled".to_owned(),
        "CANCELLED already" => "cancelled already".to_owned(),
        other => other.strip_prefix("not cancelled, ").unwrap_or(other).to_owned(),
    }
}

/// The answer to a delivery, in words.
pub(crate) fn answer(end: &DeliveryEnd) -> String {
    let words = match end.kind.as_str() {
        "accepted" => "accepted",
        "refused" => "refused",
        "connect" => "connection refused",
        "dns" => "host not found",
        "no-public-address" => "no public address",
        "not-permitted" => "not permitted",
        "unsigned" => "no secret to sign with",
        "tls" => "TLS failed",
        "lost" => "connection lost",
        "timed-out" => "no answer in time",
        other => other,
    };
    match end.status {
        Some(status) => format!("{words}, {status}"),
        None => words.to_owned(),
    }
}

/// A number of milliseconds in the unit that fits: `31 ms`, `4.1 s`.
pub(crate) fn took(ms: u64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = [
        "00000000-0000-5000-8000-000000000001",
        "00000000-0000-5000-8000-000000000002",
        "00000000-0000-5000-8000-000000000003",
    ];

    fn ended(action: &str, result: &str) -> (&'static str, String) {
        let known =
            AuditOutcome { at: "2026-11-20T09:00:00Z".parse().unwrap(), result: result.to_owned(), second: None };
        let told = outcome(action, Some(&known));
        (told.word, told.more)
    }

    #[test]
    fn a_cancel_says_how_many_and_why_others_are_not() {
        let [a, b, c] = IDS;
        for (result, want) in [
            (format!("{a}: CANCELLED\n{b}: CANCELLED"), "2 cancelled"),
            (format!("{a}: CANCELLED\n{b}: CANCELLED already"), "2 cancelled"),
            (
                format!("{a}: CANCELLED\n{b}: not cancelled, it is PENDING\n{c}: not cancelled, it is PENDING"),
                "1 of 3 cancelled, 2 claimed meanwhile",
            ),
            (format!("{a}: not cancelled, no payment has this id"), "0 of 1 cancelled, 1 no payment has this id"),
        ] {
            let word = if want.starts_with("0 of") { "Not done" } else { "Done" };
            assert_eq!(ended("cancel", &result), (word, want.to_owned()));
        }
    }

    #[test]
    fn arguments_are_said_in_words() {
        let arguments = "endpoint: shop\nurl: https://shop.example.com/x\ndescription: The shop\ntypes: payment.failed payment.processed\n\
                         accounts: a b\nenabled: false\ncursor: 7.1.0\nversion: 9\nfrom: 2026-12-25\nreason: see 00000000-0000-5000-8000-000000000001”, to x";
        let intent = AuditIntent {
            name: payments_model::ActionName {
                previewed_at: payments_model::UtcSecond::MIN,
                id: IDS[0].parse().unwrap(),
            },
            at: payments_model::UtcSecond::MIN,
            by: "o:eve".to_owned(),
            subject: None,
            request: String::new(),
            action: "put-endpoint".to_owned(),
            arguments: arguments.to_owned(),
            first: None,
        };
        let said = action(&intent).into_string();
        let want = "to https://shop.example.com/x, “The shop”, only payment.failed, payment.processed, only of a, b, switched off, \
                    from the place 7.1.0 on, from Fri 25 Dec, “see 00000000-0000-5000-8000-000000000001', to x”";
        assert!(said.contains(want) && !said.contains("1 payment "), "{said}");
    }

    #[test]
    fn other_outcomes_are_sentences() {
        assert_eq!(ended("test-endpoint", "shop: a test is sent"), ("Done", "a test is sent".to_owned()));
        assert_eq!(ended("start-sweep", "refused: paused"), ("Refused", "paused".to_owned()));
        assert_eq!(outcome("cancel", None).word, "Outcome unknown");
    }

    #[test]
    fn payments_are_found_in_any_arguments() {
        let [a, b, _] = IDS;
        let found = payments(&format!("payments: {a}@3 {b} {a}\nnote: 00000000"));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [a, b]);
    }

    #[test]
    fn an_answer_is_said_in_words() {
        for (kind, status, want) in [
            ("accepted", None, "accepted"),
            ("refused", Some(503), "refused, 503"),
            ("timed-out", None, "no answer in time"),
            ("<b>", None, "<b>"),
        ] {
            assert_eq!(answer(&DeliveryEnd { kind: kind.to_owned(), status }), want);
        }
    }

    #[test]
    fn a_duration_has_one_unit() {
        for (ms, want) in [(0, "0 ms"), (999, "999 ms"), (4_199, "4.1 s"), (10_900, "10 s")] {
            assert_eq!(took(ms), want);
        }
    }
}
