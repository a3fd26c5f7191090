//! The content of requests and responses. New fields of a response are ignored.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::errors::Problem;
use crate::values::{Data, DateRule, ScheduledFor, Status, present};

/// A payment to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentOrder {
    /// The account that gets the money.
    pub payee_account_id: String,
    /// The amount in minor units, 1 to 9007199254740991.
    pub amount_minor: i64,
    /// The currency: three capital letters.
    pub currency: String,
    /// The date or time at which it is to be made.
    pub scheduled_for: ScheduledFor,
    /// The rule for a closed date; by default the bank's own rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date_rule: Option<DateRule>,
    /// The text for the payee, at most 35 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Data of yours. JSON's null is data, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

impl PaymentOrder {
    /// Creates an order without a reference and without data. `amount_minor` is in minor units.
    pub fn new(payee: &str, amount_minor: i64, currency: &str, scheduled_for: impl Into<ScheduledFor>) -> Self {
        Self {
            payee_account_id: payee.to_owned(),
            amount_minor,
            currency: currency.to_owned(),
            scheduled_for: scheduled_for.into(),
            date_rule: None,
            reference: None,
            data: None,
        }
    }
}

/// An entry of a batch of any accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchEntry {
    /// The account that pays.
    pub account_id: String,
    /// The key of this payment.
    pub idempotency_key: String,
    /// The payment.
    #[serde(flatten)]
    pub order: PaymentOrder,
}

/// An entry of the batch of one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountBatchEntry {
    /// The key of this payment.
    pub idempotency_key: String,
    /// The payment.
    #[serde(flatten)]
    pub order: PaymentOrder,
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Payment {
    /// Its id, a UUID.
    pub payment_id: String,
    /// The account that pays.
    pub account_id: String,
    /// The account that gets the money.
    pub payee_account_id: String,
    /// The amount in minor units. Of an old payment it can be above 9007199254740991.
    pub amount_minor: i64,
    /// The currency: three capital letters.
    pub currency: String,
    /// The date or time that it was ordered for.
    pub scheduled_for: ScheduledFor,
    /// The rule that it was ordered with. Lists leave it out.
    pub date_rule: Option<DateRule>,
    /// The text for the payee.
    pub reference: Option<String>,
    /// The time at which it is due.
    pub due_at: DateTime<Utc>,
    /// The bank's date on which it is due.
    pub due_date: NaiveDate,
    /// The reason why it is not due when it was ordered for: `weekend`, `holiday` or `cut-off`. Lists leave it out.
    pub move_reason: Option<String>,
    /// The calendar that moved it.
    pub calendar_id: Option<String>,
    /// The version of that calendar's dates.
    pub calendar_version: Option<String>,
    /// Its status.
    pub status: Status,
    /// Its version, which each change of status and each amendment raises.
    pub version: u64,
    /// The time at which it was created.
    pub created_at: DateTime<Utc>,
    /// The time of its last change of status.
    pub updated_at: DateTime<Utc>,
    /// Its statuses, the oldest first.
    pub trail: Vec<TrailEntry>,
    /// The transaction service's id, once it is processed.
    pub transaction_id: Option<String>,
    /// The reason of its failure: a code of ISO 20022. Later releases list more.
    pub failure_code: Option<String>,
    /// The reason of its failure, in the bank's words.
    pub failure_reason: Option<String>,
    /// The time at which it was settled.
    pub settled_at: Option<DateTime<Utc>>,
    /// Its data. `None` if it has none, or if the response includes none.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Data>,
}

/// A change of a payment's status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TrailEntry {
    /// The new status.
    pub status: Status,
    /// The time of the change.
    pub at: DateTime<Utc>,
    /// The actor of the change.
    pub by: Actor,
}

/// The actor of a change of a payment's status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Actor {
    /// `client`, `bank`, `operator`, `transaction-service` or `file`.
    pub kind: String,
    /// The client's name.
    pub name: Option<String>,
}

/// A payment in the list of a date.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DuePayment {
    /// Its id, a UUID.
    pub payment_id: String,
    /// The account that pays.
    pub account_id: String,
    /// The account that gets the money.
    pub payee_account_id: String,
    /// The amount in minor units.
    pub amount_minor: i64,
    /// The currency: three capital letters.
    pub currency: String,
    /// The time at which it is due.
    pub due_at: DateTime<Utc>,
    /// The bank's date on which it is due.
    pub due_date: NaiveDate,
    /// Its status.
    pub status: Status,
    /// The text for the payee.
    pub reference: Option<String>,
    /// Its version, which each change of status and each amendment raises.
    pub version: u64,
    /// The time at which it was settled.
    pub settled_at: Option<DateTime<Utc>>,
    /// The reason of its failure: a code of ISO 20022. Later releases list more.
    pub failure_code: Option<String>,
}

/// A payment that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// The payment.
    pub payment: Payment,
    /// Whether an earlier request created it.
    pub replayed: bool,
}

impl Created {
    pub(crate) fn new(payment: Payment, replayed: bool) -> Self {
        Self { payment, replayed }
    }
}

/// The result of an entry of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Entry")]
#[non_exhaustive]
pub struct EntryResult {
    /// The HTTP status that the entry alone would have had.
    pub status_code: u16,
    /// The account of the entry, if the bank could read it.
    pub account_id: Option<String>,
    /// The key of the entry, if the bank could read it.
    pub idempotency_key: Option<String>,
    /// The payment, or the problem.
    pub outcome: Result<Created, Box<Problem>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    status_code: u16,
    account_id: Option<String>,
    idempotency_key: Option<String>,
    #[serde(default)]
    idempotent_replayed: bool,
    payment: Option<Payment>,
    problem: Option<Box<Problem>>,
}

impl TryFrom<Entry> for EntryResult {
    type Error = &'static str;

    fn try_from(entry: Entry) -> Result<Self, Self::Error> {
        let Entry { status_code, account_id, idempotency_key, idempotent_replayed, payment, problem } = entry;
        let outcome = match (payment, problem) {
            (Some(payment), None) => Ok(Created::new(payment, idempotent_replayed)),
            (None, Some(problem)) => Err(problem),
            _ => return Err("a result has neither a payment nor a problem, or both"),
        };
        Ok(Self { status_code, account_id, idempotency_key, outcome })
    }
}

/// The numbers of payments of a date, and the sums of their amounts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DayCounts {
    /// The date.
    pub date: NaiveDate,
    /// The numbers by status.
    pub by_status: BTreeMap<Status, i64>,
    /// The number of payments.
    pub total: i64,
    /// The number of those that are in the long-term table alone.
    pub archived: i64,
    /// The number of changes that could not be counted.
    pub unparsed: i64,
    /// The exact sums by currency and status, in minor units.
    #[serde(deserialize_with = "sums")]
    pub sums: BTreeMap<String, BTreeMap<Status, i128>>,
}

/// Reads sums, which are texts because they can have 38 digits.
fn sums<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, BTreeMap<Status, i128>>, D::Error> {
    let number = |(status, text): (Status, String)| match text.parse() {
        Ok(sum) => Ok((status, sum)),
        Err(_) => Err(D::Error::custom(format!("{text:?} is not a sum"))),
    };
    let texts = BTreeMap::<String, BTreeMap<Status, String>>::deserialize(deserializer)?;
    let of_currency = |(currency, sums): (String, BTreeMap<Status, String>)| {
        Ok((currency, sums.into_iter().map(number).collect::<Result<_, D::Error>>()?))
    };
    texts.into_iter().map(of_currency).collect()
}

/// The closed dates of a payment rail, and the bank's use of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Calendar {
    /// Its id.
    pub calendar_id: String,
    /// The version of its dates.
    pub calendar_version: String,
    /// The name of its payment rail.
    pub name: String,
    /// The IANA time zone of its cut-off.
    pub time_zone: String,
    /// The currencies whose payments have it.
    pub currencies: Vec<String>,
    /// The bank's rule for payments without one.
    pub date_rule: DateRule,
    /// The first date that it covers.
    pub from: NaiveDate,
    /// The last date that it covers.
    pub to: NaiveDate,
    /// The first date from which closed dates are projected.
    pub projected_from: Option<NaiveDate>,
    /// The time of the day up to which it takes payments, as `hh:mm` by its own clock.
    pub cut_off: Option<String>,
    /// The last time at which a payment can be created and due before the next cut-off.
    pub next_cut_off: Option<DateTime<Utc>>,
    /// The closed dates without weekends; empty in a list.
    #[serde(default)]
    pub closed: Vec<ClosedDate>,
}

/// A date on which a payment rail is closed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ClosedDate {
    /// The date.
    pub date: NaiveDate,
    /// Its name.
    pub name: String,
}

/// The response with calendars.
#[derive(Deserialize)]
pub(crate) struct CalendarList {
    pub(crate) calendars: Vec<Calendar>,
}

/// The response to a batch.
#[derive(Deserialize)]
pub(crate) struct BatchResult {
    pub(crate) results: Vec<EntryResult>,
}

/// The response with counts.
#[derive(Deserialize)]
pub(crate) struct CountsOfDates {
    pub(crate) counts: Vec<DayCounts>,
}
