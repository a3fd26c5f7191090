//! Amends a payment, and reads its versions.

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use http::{Request, header};
use serde::Deserialize;

use crate::bank::{Bank, expect, is_replayed, payment_path};
use crate::errors::Error;
use crate::model::{Actor, Payment, PaymentOrder};
use crate::values::{Data, DateRule, ScheduledFor, key_header, present};

/// A payment as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amended {
    /// The payment.
    pub payment: Payment,
    /// Whether an earlier request amended it.
    pub replayed: bool,
}

/// The content of a payment from this version on, until the next one in the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaymentVersion {
    /// The payment's version since then.
    pub version: u64,
    /// The time at which the payment was created or amended.
    pub at: DateTime<Utc>,
    /// The actor that created or amended it.
    pub by: Actor,
    /// The fields that the amendment changed, by the names that the API gives them. Empty for the first version, and if it changed nothing.
    /// `dueAt` alone if the bank moved the payment because its date was closed.
    pub changed_fields: Vec<String>,
    /// The account that gets the money.
    pub payee_account_id: String,
    /// The amount in minor units. Of an old payment it can be above 9007199254740991.
    pub amount_minor: i64,
    /// The currency: three capital letters.
    pub currency: String,
    /// The date or time that it was ordered for.
    pub scheduled_for: ScheduledFor,
    /// The rule that it was ordered with.
    pub date_rule: Option<DateRule>,
    /// The text for the payee.
    pub reference: Option<String>,
    /// The time at which it was due.
    pub due_at: DateTime<Utc>,
    /// The bank's date on which it was due.
    pub due_date: NaiveDate,
    /// The reason why it was not due when it was ordered for: `weekend`, `holiday` or `cut-off`.
    pub move_reason: Option<String>,
    /// The calendar that moved it.
    pub calendar_id: Option<String>,
    /// The version of that calendar's dates.
    pub calendar_version: Option<String>,
    /// Its data. `None` if it had none, or if the response includes none.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Data>,
}

#[derive(Deserialize)]
struct PaymentVersions {
    versions: Vec<PaymentVersion>,
}

impl Bank {
    /// Changes a scheduled payment to the order, if it has this version: that of the payment as you read it.
    ///
    /// Use a new key for each amendment; the same key and order return the payment, whatever version it has by now.
    ///
    /// # Errors
    /// If there is no such payment, it is too late, the payment has another version
    /// ([`Problem::current_version`](crate::Problem::current_version) is its version), the bank
    /// rejects the order, or does not respond.
    pub async fn amend(
        &self,
        account: &str,
        payment_id: &str,
        key: &str,
        order: &PaymentOrder,
        version: u64,
    ) -> Result<Amended, Error> {
        let order = serde_json::to_vec(order).map_err(|error| Error::Invalid(error.to_string()))?;
        let request = Request::put(payment_path(account, payment_id)?)
            .header("idempotency-key", &*key_header(key))
            .header(header::IF_MATCH, format!("\"{version}\""))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(order));
        let response = self.send(request.map_err(|error| Error::Invalid(error.to_string()))?).await?;
        Ok(Amended { payment: expect(&response)?, replayed: is_replayed(&response) })
    }

    /// Returns the content of a payment when it was created, and after each amendment, without its data.
    ///
    /// # Errors
    /// If there is no such payment, or the bank does not respond.
    pub async fn versions(&self, account: &str, payment_id: &str) -> Result<Vec<PaymentVersion>, Error> {
        let path = format!("{}/versions", payment_path(account, payment_id)?);
        Ok(self.read::<PaymentVersions>(&path).await?.versions)
    }

    /// Returns the content of a payment when it was created, and after each amendment, with its data.
    ///
    /// # Errors
    /// If there is no such payment, or the bank does not respond.
    pub async fn versions_with_data(&self, account: &str, payment_id: &str) -> Result<Vec<PaymentVersion>, Error> {
        let path = format!("{}/versions?include=data", payment_path(account, payment_id)?);
        Ok(self.read::<PaymentVersions>(&path).await?.versions)
    }
}
