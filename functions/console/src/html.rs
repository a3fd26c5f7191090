//! Parts that several views show: amounts, times, statuses and links.

use form_urlencoded::Serializer;
use maud::{Markup, html};
use payments_model::{Currency, HeadKey, PaymentId, Status, UtcSecond};

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

/// A payment's id, which leads to the payment.
pub(crate) fn payment_link(id: PaymentId) -> Markup {
    let id = id.to_string();
    html! { a class="id" href=(link("payment", &[("id", &id)])) { (id) } }
}

/// A payment's id, which leads to the payment even if its first details are lost: the link has the
/// key of its head.
pub(crate) fn head_link(head: &HeadKey) -> Markup {
    let (id, at) = (head.slot.payment_id.to_string(), head.slot.at.to_string());
    let arguments = [("id", id.as_str()), ("account", head.account.as_str()), ("at", &at)];
    html! { a class="id" href=(link("payment", &arguments)) { (id) } }
}

/// The heading of amounts, which are in minor units everywhere in the API.
pub(crate) const AMOUNT: &str = "Amount in minor units";

/// An instant, as UTC.
pub(crate) fn instant(at: UtcSecond) -> Markup {
    let text = at.to_string();
    html! { time datetime=(text) { (text) } }
}

/// A status.
pub(crate) fn status(status: Status) -> Markup {
    let name = status.as_str();
    html! { span class={ "status " (name.to_ascii_lowercase()) } { (name) } }
}

/// An amount in minor units with its currency.
pub(crate) fn minor(amount: i128, currency: Currency) -> Markup {
    html! { span class="number" { (grouped(amount)) } " " (currency) }
}

/// A whole number with thin spaces between thousands, so that it breaks nowhere.
pub(crate) fn grouped(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if number < 0 { format!("\u{2212}{text}") } else { text }
}

/// A row of a list of facts.
pub(crate) fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// A view's heading, to which the script moves the reader.
pub(crate) fn heading(text: &str) -> Markup {
    html! { h1 tabindex="-1" { (text) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, want) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (-1_234_567, "\u{2212}1\u{202f}234\u{202f}567"),
            (
                i128::MIN,
                "\u{2212}170\u{202f}141\u{202f}183\u{202f}460\u{202f}469\u{202f}231\u{202f}731\u{202f}687\u{202f}303\u{202f}715\u{202f}884\u{202f}105\u{202f}728",
            ),
        ] {
            assert_eq!(grouped(number), want);
        }
    }

    #[test]
    fn what_a_link_names_is_encoded() {
        assert_eq!(link("day", &[]), "#day");
        assert_eq!(link("find", &[("text", "a&b=\"<c> #")]), "#find?text=a%26b%3D%22%3Cc%3E+%23");
    }
}
