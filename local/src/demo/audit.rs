//! Reads every payment of the day through the API, and counts those that are not as they should be.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use payments_model::{PaymentId, Settlement, Status};
use serde_json::Value;

use super::script::{Order, Script};
use crate::client::Client;
use crate::transaction_service::TransactionServiceSettings;

/// What the payments are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// Payments by status, as the list of the date has them.
    pub(super) by_status: BTreeMap<&'static str, u64>,
    /// Different transaction ids.
    pub(super) transaction_ids: u64,
    /// Failed payments by reason.
    pub(super) reasons: BTreeMap<String, u64>,
    /// Payments whose trail has more than one settlement.
    pub(super) second_settlements: u64,
    /// Payments that are listed twice, were never created, or are missing.
    pub(super) misplaced: u64,
    /// Payments whose settlement differs from the transaction service's.
    pub(super) other_settlements: u64,
    /// Payments with the transaction id of another payment.
    pub(super) shared_transaction_ids: u64,
    /// Payments that differ from the request that created them.
    pub(super) altered: u64,
    /// One of the transaction ids.
    pub(super) a_transaction: Option<String>,
}

/// Returns how many payments of the day are neither processed nor failed.
pub(super) async fn unsettled(client: &Client, script: &Script) -> Result<u64> {
    let mut unsettled = 0;
    for status in [Status::Scheduled, Status::Pending] {
        let path = format!("/payments?dueDate={}&status={status}&limit=1000", script.day());
        client.pages(&path, |payments| unsettled += payments.len()).await?;
    }
    Ok(unsettled.try_into()?)
}

/// Reads all payments of the day: the list of the date for their status, the lists of the accounts for everything else.
/// `acknowledged` are the payments that were created.
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
            audit.check(payment, &mut listed, &mut transactions, service);
            let order = numbers.get(text(payment, "paymentId")).map(|number| script.order(*number));
            let agrees = |order: Order| payment["accountId"] == order.account && is_within(&order.body, payment);
            audit.altered += u64::from(!order.is_some_and(agrees));
        };
        client.pages(&path, |payments| payments.iter().for_each(&mut each)).await?;
    }
    audit.a_transaction = transactions.iter().min().cloned();
    audit.transaction_ids = u64::try_from(transactions.len())?;
    // A payment that is left was listed by date and is in no account. One that was never listed is missing.
    let found = audit.by_status.values().sum::<u64>();
    audit.misplaced += u64::try_from(listed.len())? + u64::try_from(acknowledged.len())?.abs_diff(found);
    Ok(audit)
}

impl Audit {
    /// Checks one payment of its account's list, and removes it from the list of the date.
    fn check(
        &mut self,
        payment: &Value,
        listed: &mut HashMap<String, String>,
        transactions: &mut HashSet<String>,
        service: &TransactionServiceSettings,
    ) {
        let (id, status) = (text(payment, "paymentId"), text(payment, "status"));
        self.misplaced += u64::from(listed.remove(id).as_deref() != Some(status));
        let trail = payment["trail"].as_array().into_iter().flatten();
        let is_settlement = |step: &&Value| matches!(text(step, "status"), "PROCESSED" | "FAILED");
        self.second_settlements += u64::from(trail.filter(is_settlement).count() > 1);
        let decided = id.parse::<PaymentId>().map(|id| service.settlement_of(id));
        let agrees = match &decided {
            Ok(Settlement::Processed(id)) => status == "PROCESSED" && text(payment, "transactionId") == id.as_str(),
            Ok(Settlement::Failed(why)) => status == "FAILED" && text(payment, "failureReason") == why.as_str(),
            Err(_) => false,
        };
        self.other_settlements += u64::from(!agrees);
        if let Some(id) = payment["transactionId"].as_str() {
            self.shared_transaction_ids += u64::from(!transactions.insert(id.to_owned()));
        }
        if let Some(reason) = payment["failureReason"].as_str() {
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Returns how many payments have a status.
    pub(super) fn of(&self, status: Status) -> u64 {
        self.by_status.get(status.as_str()).copied().unwrap_or(0)
    }
}

/// Whether a payment has every field of the request.
fn is_within(asked: &Value, payment: &Value) -> bool {
    asked.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| payment[name] == *value))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
