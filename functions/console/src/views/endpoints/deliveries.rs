//! The last deliveries to an endpoint, and their answers in words.

use maud::{Markup, html};
use payments_store::{Delivery, DeliveryEnd};

use crate::html::grouped;
use crate::panel::cards;
use crate::times::Times;

/// The last deliveries, folded unless the endpoint is disabled.
pub(super) fn deliveries(deliveries: &[Delivery], is_open: bool, times: Times) -> Markup {
    if deliveries.is_empty() {
        return html! { p class="empty quiet" { b { "Nothing was sent yet." } } };
    }
    let columns = [("At", ""), ("Answer", ""), ("Sent", "num")];
    let rows = html! { @for delivery in deliveries { tr {
        td { (times.at(delivery.at)) }
        td class="end" { (answer(&delivery.outcome)) }
        td class="num all" data-l="Sent" { span { (sent(delivery.events)) } }
    } } };
    html! { details class="fold" open[is_open] { summary { "Last deliveries" } (cards("Last deliveries", &columns, &rows)) } }
}

fn sent(events: u32) -> String {
    if events == 1 { "1 event".to_owned() } else { format!("{} events", grouped(events.into())) }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
