//! The morning after: what the database says became of the payments, read through the API and not
//! from anything that was counted on the way.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use payments_model::{PaymentId, Settlement, Status};
use serde_json::Value;

use super::script::{Order, Script};
use crate::client::Client;
use crate::transaction_service::TransactionServiceSettings;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// Payments by status, as the list of the date has them.
    pub(super) by_status: BTreeMap<&'static str, u64>,
    /// Different transaction ids.
    pub(super) transaction_ids: u64,
    /// Why payments failed, and how many.
    pub(super) reasons: BTreeMap<String, u64>,
    /// Payments whose trail shows more than one outcome.
    pub(super) second_outcomes: u64,
    /// Payments that appear twice, were never put in, or are missing.
    pub(super) misplaced: u64,
    /// Payments whose outcome is not the one that the transaction service decided on.
    pub(super) other_outcomes: u64,
    /// Payments that two payments share a transaction id with.
    pub(super) shared_transaction_ids: u64,
    /// Payments that are not, field by field and data included, what was put in.
    pub(super) altered: u64,
    /// One of the transaction ids.
    pub(super) a_transaction: Option<String>,
}

/// How many payments of the day are neither processed nor failed.
pub(super) async fn unsettled(client: &Client, script: &Script) -> Result<u64> {
    let mut unsettled = 0;
    for status in [Status::Scheduled, Status::Pending] {
        let path = format!("/payments?dueDate={}&status={status}&limit=1000", script.day());
        client.pages(&path, |payments| unsettled += payments.len()).await?;
    }
    Ok(unsettled.try_into()?)
}

/// Reads all payments of the day: the list of the date by status, the lists of the accounts for
/// what only heads have. `acknowledged` are the payments that were put in.
pub(super) async fn audit(
    client: &Client,
    script: &Script,
    acknowledged: &HashSet<String>,
    service: &TransactionServiceSettings,
) -> Result<Audit> {
    let mut audit = Audit { by_status: Status::ALL.map(|status| (status.as_str(), 0)).into(), ..Audit::default() };
    let mut listed: HashMap<String, String> = HashMap::with_capacity(acknowledged.len());
    let path = format!("/payments?dueDate={}&limit=1000", script.day());
    let mut each = |payment: &Value| {
        let (id, status) = (text(payment, "paymentId"), text(payment, "status"));
        if let Some(count) = audit.by_status.get_mut(status) {
            *count += 1;
        }
        let again = listed.insert(id.to_owned(), status.to_owned()).is_some();
        audit.misplaced += u64::from(again || !acknowledged.contains(id));
    };
    client.pages(&path, |payments| payments.iter().for_each(&mut each)).await?;

    let mut transactions: HashSet<String> = HashSet::new();
    let numbers = script.numbers()?;
    for account in script.accounts() {
        let path = format!("/accounts/{account}/payments?from={}&limit=1000&include=data", script.day());
        let mut each = |payment: &Value| {
            audit.look_at(payment, &mut listed, &mut transactions, service);
            let order = numbers.get(text(payment, "paymentId")).map(|number| script.order(*number));
            let agrees = |order: Order| payment["accountId"] == order.account && is_within(&order.body, payment);
            audit.altered += u64::from(!order.is_some_and(agrees));
        };
        client.pages(&path, |payments| payments.iter().for_each(&mut each)).await?;
    }
    audit.a_transaction = transactions.iter().min().cloned();
    audit.transaction_ids = u64::try_from(transactions.len())?;
    // What is left was listed by date and is in no account; what was never listed is missing.
    let found = audit.by_status.values().sum::<u64>();
    audit.misplaced += u64::try_from(listed.len())? + u64::try_from(acknowledged.len())?.abs_diff(found);
    Ok(audit)
}

impl Audit {
    /// Looks at one payment as its account's list shows it, and strikes it off the list of the date.
    fn look_at(
        &mut self,
        payment: &Value,
        listed: &mut HashMap<String, String>,
        transactions: &mut HashSet<String>,
        service: &TransactionServiceSettings,
    ) {
        let (id, status) = (text(payment, "paymentId"), text(payment, "status"));
        self.misplaced += u64::from(listed.remove(id).as_deref() != Some(status));
        let outcomes = payment["trail"].as_array().into_iter().flatten();
        let is_outcome = |step: &&Value| matches!(text(step, "status"), "PROCESSED" | "FAILED");
        self.second_outcomes += u64::from(outcomes.filter(is_outcome).count() > 1);
        let decided = id.parse::<PaymentId>().map(|id| service.outcome_of(id));
        let agrees = match &decided {
            Ok(Settlement::Processed(id)) => status == "PROCESSED" && text(payment, "transactionId") == id.as_str(),
            Ok(Settlement::Failed(why)) => status == "FAILED" && text(payment, "failureReason") == why.as_str(),
            Err(_) => false,
        };
        self.other_outcomes += u64::from(!agrees);
        if let Some(id) = payment["transactionId"].as_str() {
            self.shared_transaction_ids += u64::from(!transactions.insert(id.to_owned()));
        }
        if let Some(reason) = payment["failureReason"].as_str() {
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Payments of a status.
    pub(super) fn of(&self, status: Status) -> u64 {
        self.by_status.get(status.as_str()).copied().unwrap_or(0)
    }
}

/// Whether a payment has every field of what was asked for.
fn is_within(asked: &Value, payment: &Value) -> bool {
    asked.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| payment[name] == *value))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
