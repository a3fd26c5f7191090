//! Parts that several views show: amounts, times, statuses and links.

use form_urlencoded::Serializer;
use maud::{Markup, html};
use payments_model::{BusinessDate, BusinessDays, Currency, HeadKey, MoveReason, PaymentId, Status, UtcSecond};

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

/// A payment's id, which leads to the payment even if its first details are lost: the link has the key of its head.
pub(crate) fn head_link(head: &HeadKey) -> Markup {
    let (id, at) = (head.slot.payment_id.to_string(), head.slot.at.to_string());
    let arguments = [("id", id.as_str()), ("account", head.account.as_str()), ("at", &at)];
    html! { a class="id" href=(link("payment", &arguments)) { (id) } }
}

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

/// An amount in major units with its currency, from minor units.
pub(crate) fn money(minor: i128, currency: Currency) -> Markup {
    html! { span class="number" { (major(minor, currency.decimals())) } " " (currency) }
}

/// A number of minor units in major units.
fn major(minor: i128, decimals: usize) -> String {
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

/// The reason why calendars are closed on a date; none if all are open or do not cover the date.
pub(crate) fn closed(days: &BusinessDays, date: BusinessDate) -> Option<String> {
    let calendars = days.calendars();
    let closed: Vec<_> =
        calendars.values().map(|(rail, _)| rail.calendar).filter(|calendar| calendar.is_closed(date)).collect();
    // All calendars are closed on weekends.
    if closed.first()?.closed_for(date) == Some(MoveReason::Weekend) {
        return Some("closed: weekend".to_owned());
    }
    let holidays = closed.iter().filter_map(|calendar| {
        let holiday = calendar.closed().iter().find(|closed| closed.date == date)?;
        Some(format!("{} closed: {}", calendar.id(), holiday.name))
    });
    Some(holidays.collect::<Vec<_>>().join(", "))
}

/// A whole number with thin spaces between thousands, so that it breaks nowhere.
pub(crate) fn grouped(number: i128) -> String {
    let text = thousands(&number.unsigned_abs().to_string());
    if number < 0 { format!("\u{2212}{text}") } else { text }
}

/// The digits with thin spaces between thousands.
fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
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
    fn amounts_have_the_decimals_of_their_currency() {
        for (minor, decimals, want) in [
            (1_735_253, 2, "17\u{202f}352.53"),
            (5, 2, "0.05"),
            (0, 2, "0.00"),
            (-5, 2, "\u{2212}0.05"),
            (-123_456, 2, "\u{2212}1\u{202f}234.56"),
            (1_832_162, 0, "1\u{202f}832\u{202f}162"),
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
