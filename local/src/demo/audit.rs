//! Reads every payment of the day through the API, and counts those that are not as they should be.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_model::{PaymentId, Settlement, Status};
use scheduled_payments::{AccountFilter, Bank, DueFilter, Payment, PaymentOrder, TrailEntry};

use super::script::{Order, Script};

/// The most payments of a page.
const PAGE: u16 = 1_000;

/// The state of the payments.
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
    /// Payments that differ from the request that created them, or amended them.
    pub(super) altered: u64,
    /// One of the transaction ids.
    pub(super) a_transaction: Option<String>,
}

/// Returns how many payments of the day are neither processed nor failed.
pub(super) async fn unsettled(bank: &Bank, script: &Script) -> Result<u64> {
    use scheduled_payments::Status::{Pending, Scheduled};
    let filter = DueFilter { status: vec![Scheduled, Pending], page_size: PAGE, ..DueFilter::default() };
    let unsettled = bank.due(script.day().as_chrono(), &filter).all().await?;
    Ok(unsettled.len().try_into()?)
}

/// Reads all payments of the day: the list of the date for their status, the lists of the accounts for everything else.
/// `acknowledged` are the payments that were created. `show` is told how many are read.
pub(super) async fn audit(
    bank: &Bank,
    script: &Script,
    acknowledged: &HashSet<String>,
    service: &TransactionServiceSettings,
    show: impl Fn(u64),
) -> Result<Audit> {
    let mut audit = Audit { by_status: Status::ALL.map(|status| (status.as_str(), 0)).into(), ..Audit::default() };
    let mut listed: HashMap<String, String> = HashMap::with_capacity(acknowledged.len());
    let day = script.day().as_chrono();
    let mut payments = bank.due(day, &DueFilter { page_size: PAGE, ..DueFilter::default() });
    while let Some(payment) = payments.try_next().await? {
        let (id, status) = (&payment.payment_id, payment.status.as_str());
        if let Some(count) = audit.by_status.get_mut(status) {
            *count += 1;
        }
        let again = listed.insert(id.clone(), status.to_owned()).is_some();
        audit.misplaced += u64::from(again || !acknowledged.contains(id));
    }

    let mut transactions: HashSet<String> = HashSet::new();
    let numbers = script.numbers()?;
    let mut read = 0;
    for account in script.accounts() {
        let filter = AccountFilter { from: Some(day), with_data: true, page_size: PAGE, ..AccountFilter::default() };
        let mut payments = bank.list(&account, &filter)?;
        while let Some(payment) = payments.try_next().await? {
            audit.check(&payment, &mut listed, &mut transactions, service);
            let order = numbers.get(&payment.payment_id).map(|number| script.last_order(*number));
            let agrees = |order: Order| payment.account_id == order.account && ordered(&payment) == order.payment;
            audit.altered += u64::from(!order.is_some_and(agrees));
            read += 1;
        }
        show(read);
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
        payment: &Payment,
        listed: &mut HashMap<String, String>,
        transactions: &mut HashSet<String>,
        service: &TransactionServiceSettings,
    ) {
        let (id, status) = (payment.payment_id.as_str(), payment.status.as_str());
        self.misplaced += u64::from(listed.remove(id).as_deref() != Some(status));
        let is_settlement = |step: &&TrailEntry| matches!(step.status.as_str(), "PROCESSED" | "FAILED");
        self.second_settlements += u64::from(payment.trail.iter().filter(is_settlement).count() > 1);
        let decided = id.parse::<PaymentId>().map(|id| service.settlement_of(id));
        let agrees = match &decided {
            Ok(Settlement::Processed(id)) => {
                status == "PROCESSED" && payment.transaction_id.as_deref() == Some(id.as_str())
            }
            Ok(Settlement::Failed(failure)) => {
                status == "FAILED"
                    && payment.failure_code.as_deref() == Some(failure.code().as_str())
                    && payment.failure_reason.as_deref() == Some(failure.reason())
            }
            Err(_) => false,
        };
        self.other_settlements += u64::from(!agrees);
        if let Some(id) = &payment.transaction_id {
            self.shared_transaction_ids += u64::from(!transactions.insert(id.clone()));
        }
        if let Some(reason) = &payment.failure_reason {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
    }

    /// Returns how many payments have a status.
    pub(super) fn with_status(&self, status: Status) -> u64 {
        self.by_status.get(status.as_str()).copied().unwrap_or(0)
    }
}

/// Returns the order that a payment says it is.
fn ordered(payment: &Payment) -> PaymentOrder {
    let Payment { payee_account_id, amount_minor, currency, scheduled_for, date_rule, reference, data, .. } =
        payment.clone();
    PaymentOrder { payee_account_id, amount_minor, currency, scheduled_for, date_rule, reference, data }
}
