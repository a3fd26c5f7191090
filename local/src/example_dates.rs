//! The examples of `openapi.yaml`, moved near today: the page's requests succeed, in the order of a payment's life.
//!
//! The examples tell of one payment, and a few of batches. Each key names the due date, and the id
//! is derived from that key. So moving all dates by the same number of days, and the ids with them,
//! leaves a story that is as true as the written one.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_model::{AccountId, BusinessDate, BusinessZone, IdempotencyKey, PaymentId, UtcSecond};

/// The date on which the story begins, and the due date of its payment.
const BEGINS: &str = "2028-05-20";
const DUE_DATE: &str = "2028-06-15";

/// The due time of the payment, in a bank in London.
const DUE_AT: &str = "2028-06-14T23:00:00Z";

/// The due dates of the payments that batches create.
const IN_BATCHES: [&str; 2] = ["2028-07-15", "2028-09-15"];

/// The year of every written date, and the lengths of its other parts.
const YEAR: &str = "2028-";
const MONTH_AND_DAY: usize = "06-15".len();
const TIME: usize = "T23:00:00Z".len();

/// The account that pays.
const ACCOUNT: &str = "GB29NWBK60161331926819";

/// The days and seconds by which the story is moved.
#[derive(Debug, Clone, Copy)]
struct Move {
    begins: BusinessDate,
    today: BusinessDate,
    seconds: TimeDelta,
}

/// Returns a text with the examples of a bank in `zone`, in which the story begins `today`.
pub(crate) fn near(text: &str, today: BusinessDate, zone: BusinessZone) -> Result<String> {
    let (begins, written): (BusinessDate, BusinessDate) = (BEGINS.parse()?, DUE_DATE.parse()?);
    let mut moved = Move { begins, today, seconds: TimeDelta::zero() };
    let due = moved.date(written)?;
    moved.seconds = zone.start_of(due).as_chrono() - DUE_AT.parse::<UtcSecond>()?.as_chrono();
    let mut text = moved.dates(text)?;
    for date in [DUE_DATE].into_iter().chain(IN_BATCHES) {
        let date: BusinessDate = date.parse()?;
        text = text.replace(&payment_due(date)?, &payment_due(moved.date(date)?)?);
    }
    let in_transaction_id = |date: BusinessDate| date.to_string().replace('-', "");
    Ok(text.replace(&in_transaction_id(written), &in_transaction_id(due)))
}

/// The id of the payment that is due on this date.
fn payment_due(date: BusinessDate) -> Result<String> {
    let key: IdempotencyKey = format!("rent-{date}").parse()?;
    Ok(PaymentId::derive(&ACCOUNT.parse::<AccountId>()?, &key).to_string())
}

impl Move {
    /// Moves every date and every time in UTC.
    fn dates(self, text: &str) -> Result<String> {
        let (mut moved, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, after)) = rest.split_once(YEAR) {
            moved.push_str(before);
            rest = after;
            let Some((day, time)) = after.split_at_checked(MONTH_AND_DAY) else {
                moved.push_str(YEAR);
                continue;
            };
            let written = format!("{YEAR}{day}");
            let utc = time.get(..TIME).filter(|time| time.ends_with('Z'));
            if let Some(Ok(instant)) = utc.map(|time| format!("{written}{time}").parse::<UtcSecond>()) {
                moved.push_str(&instant.saturating_add(self.seconds).to_string());
                rest = time.get(TIME..).unwrap_or_default();
            } else {
                moved.push_str(&self.date(written.parse()?)?.to_string());
                rest = time;
            }
        }
        moved.push_str(rest);
        Ok(moved)
    }

    fn date(self, date: BusinessDate) -> Result<BusinessDate> {
        let days = u32::try_from(date.days_since(self.begins)).with_context(|| format!("{date} is before {BEGINS}"))?;
        Ok(self.today.plus_days(days))
    }
}
