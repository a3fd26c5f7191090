//! The payment that an event names.

use anyhow::Result;
use payments_model::DuePayment;

/// Parses the payment of an event.
pub(crate) fn named(account: &str, payment: &str, due_at: &str) -> Result<DuePayment> {
    Ok(DuePayment { account: account.parse()?, payment_id: payment.parse()?, due_at: due_at.parse()? })
}
