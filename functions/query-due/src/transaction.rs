//! The payments of a transaction id: one, unless the transaction service gave the id to several.

use payments_http::{PaymentView, Problem};
use payments_model::TransactionId;
use payments_store::StoreError;

use crate::function::QueryDue;
use crate::page::Page;

impl QueryDue {
    /// Finds payments in the index, and returns their heads in one page.
    pub(crate) async fn list_transaction(&self, id: &TransactionId) -> Result<Page<PaymentView>, Problem> {
        let mut page = Page::new();
        for key in self.store.payments_of_transaction(id).await? {
            match self.store.head(&key).await {
                // The index lags, so the head decides.
                Ok(head) => {
                    let head = head.filter(|head| head.transaction_id() == Some(id));
                    page.payments.extend(head.as_ref().map(PaymentView::new));
                }
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(%error, "a payment cannot be read and is left out of the list");
                    page.unreadable.add(Some(key.slot.payment_id));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(page)
    }
}
