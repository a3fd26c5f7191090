//! Parts that several views show: amounts, times, statuses and links.

use form_urlencoded::Serializer;
use maud::{Markup, PreEscaped, Render, html};
use payments_model::{AccountId, BusinessDate, Currency, DayLimit, HeadKey, Money, PaymentId, Status};

use crate::times::Times;

/// A text that somebody else wrote: a client, the transaction service, a person. Its direction does not reorder the words around it.
pub(crate) fn foreign(text: impl Render) -> Markup {
    html! { bdi class="any" { (text) } }
}

/// A link to another view, or to the same view with other arguments. The script loads it.
pub(crate) fn link(view: &str, arguments: &[(&str, &str)]) -> String {
    if arguments.is_empty() {
        return format!("#{view}");
    }
    let mut query = Serializer::new(String::new());
    for (name, value) in arguments {
        query.append_pair(name, value);
    }
    format!("#{view}?{}", query.finish())
}

/// The first digits of a payment's id, which lead to the payment.
pub(crate) fn payment_link(id: PaymentId) -> Markup {
    let id = id.to_string();
    html! { a class="id" title=(id) href=(link("payment", &[("id", &id)])) { (short(&id)) } }
}

/// The digits of an id that a list shows.
fn short(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// An account, which leads to its payments.
pub(crate) fn account_link(account: &AccountId) -> Markup {
    html! { a href=(link("account", &[("id", account.as_str())])) { (account) } }
}

/// An id as a whole, with a button that copies it.
pub(crate) fn copied(id: &str) -> Markup {
    html! { span class="id any" { (id) } " " button type="button" class="link" data-copy=(id) { "Copy" } }
}

/// A payment's id, which leads to the payment even if its first details are lost: the link has the key of its head.
pub(crate) fn head_link(head: &HeadKey) -> Markup {
    let id = head.slot.payment_id.to_string();
    html! { a class="id" title=(id) href=(payment_address(head)) { (short(&id)) } }
}

/// The address of a payment's view, with the key of its head.
pub(crate) fn payment_address(head: &HeadKey) -> String {
    let (id, at) = (head.slot.payment_id.to_string(), head.slot.at.to_string());
    link("payment", &[("id", id.as_str()), ("account", head.account.as_str()), ("at", &at)])
}

/// A status: its word, with its shape.
pub(crate) fn status(status: Status) -> Markup {
    html! { span class={ "pill dot " (class(status)) } { (word(status)) } }
}

/// The class of a status, by which it has its colour and its shape.
pub(crate) fn class(status: Status) -> String {
    status.as_str().to_ascii_lowercase()
}

/// A status as people write it: `Scheduled`.
pub(crate) fn word(status: Status) -> String {
    let name = status.as_str();
    name.chars().take(1).chain(name.to_ascii_lowercase().chars().skip(1)).collect()
}

/// An amount in major units with its currency, from minor units.
pub(crate) fn money(minor: i128, currency: Currency) -> Markup {
    html! { span class="n" { (major(minor, currency.decimals())) " " abbr { (currency) } } }
}

/// The amount of a head.
pub(crate) fn amount(money: Money) -> Markup {
    self::money(money.amount.get().into(), money.currency)
}

/// A number of minor units in major units.
pub(crate) fn major(minor: i128, decimals: usize) -> String {
    let digits = format!("{:0>1$}", minor.unsigned_abs().to_string(), decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let sign = if minor < 0 { "\u{2212}" } else { "" };
    let point = if decimals > 0 { "." } else { "" };
    format!("{sign}{}{point}{fraction}", thousands(whole))
}

/// A date as people write it, with its weekday.
pub(crate) fn day(date: BusinessDate) -> String {
    date.as_chrono().format("%a %-d %b %Y").to_string()
}

/// A whole number with commas between thousands.
pub(crate) fn grouped(number: i128) -> String {
    let text = thousands(&number.unsigned_abs().to_string());
    if number < 0 { format!("\u{2212}{text}") } else { text }
}

/// The digits with commas between thousands.
fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The name of an actor, without its kind.
pub(crate) fn person_of(by: &str) -> &str {
    by.split_once(':').map_or(by, |(_, name)| name)
}

/// A row of a list of facts.
pub(crate) fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// A view's heading, to which the script moves the reader.
pub(crate) fn heading(text: &str) -> Markup {
    html! { h1 tabindex="-1" { (text) } }
}

/// The top of a view: its heading, and when it was read.
pub(crate) fn top(heading: &Markup, times: Times) -> Markup {
    html! { div class="top" { (heading) p class="row quiet" { (times.read()) } } }
}

/// The top of a view that is read again by itself, until its button is off.
pub(crate) fn live_top(heading: &Markup, times: Times) -> Markup {
    html! { div class="top" { (heading) p class="row quiet" { (times.read()) " " (REFRESH) } } }
}

/// The button that stops the reading of a view. The script knows its state, and keeps it for the next view.
const REFRESH: PreEscaped<&str> =
    PreEscaped(r#"<button type="button" data-refresh aria-pressed="true">Refresh: on</button>"#);

/// The numbers of a limit: `430 payments, 1,666.50 GBP`.
pub(crate) fn limit_in_words(limit: &DayLimit) -> String {
    numbers_in_words(limit.payments(), limit.sums())
}

/// The numbers that a limit names, or has of some payments.
pub(crate) fn numbers_in_words(payments: Option<u64>, sums: impl Iterator<Item = (Currency, i128)>) -> String {
    let payments = payments.map(|payments| format!("{} payments", grouped(payments.into())));
    let sums = sums.map(|(currency, sum)| format!("{} {currency}", major(sum, currency.decimals())));
    payments.into_iter().chain(sums).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, want) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-1_234_567, "\u{2212}1,234,567"),
            (i128::MIN, "\u{2212}170,141,183,460,469,231,731,687,303,715,884,105,728"),
        ] {
            assert_eq!(grouped(number), want);
        }
    }

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        for (minor, decimals, want) in [
            (1_735_253, 2, "17,352.53"),
            (5, 2, "0.05"),
            (0, 2, "0.00"),
            (-5, 2, "\u{2212}0.05"),
            (-123_456, 2, "\u{2212}1,234.56"),
            (1_832_162, 0, "1,832,162"),
            (1_500, 3, "1.500"),
        ] {
            assert_eq!(major(minor, decimals), want);
        }
    }

    #[test]
    fn what_a_link_names_is_encoded() {
        assert_eq!(link("day", &[]), "#day");
        assert_eq!(link("find", &[("text", "a&b=\"<c> #")]), "#find?text=a%26b%3D%22%3Cc%3E+%23");
    }
}
