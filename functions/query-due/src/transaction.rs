//! The payments of a transaction id: one, unless the transaction service gave the id to several.

use payments_http::{LeftOut, PaymentView, Problem};
use payments_model::TransactionId;
use payments_store::StoreError;
use serde::Serialize;

use crate::QueryDue;

/// The list's JSON. It is one page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionPage {
    payments: Vec<PaymentView>,
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    left_out: LeftOut,
}

impl QueryDue {
    /// Finds payments in the index, and returns their heads.
    pub(crate) async fn list_transaction(&self, id: &TransactionId) -> Result<TransactionPage, Problem> {
        let mut page = TransactionPage { payments: Vec::new(), next_cursor: None, left_out: LeftOut::default() };
        for key in self.store.payments_of_transaction(id).await? {
            match self.store.head(&key).await {
                // The index lags, so the head decides.
                Ok(head) => {
                    let head = head.filter(|head| head.transaction_id() == Some(id));
                    page.payments.extend(head.as_ref().map(PaymentView::of));
                }
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(%error, "a payment cannot be read and is left out of the list");
                    page.left_out.add(Some(key.sort.payment_id));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.count(&page.left_out);
        Ok(page)
    }
}
