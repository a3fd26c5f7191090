//! Sends the request of a pending payment again, as a redrive or an operator asks: one conditional write.
//!
//! Both raise the dispatch attempt, which makes `dispatch` send the request, and note the time. Both require the attempt that
//! their caller has read, so exactly one of two racing ones happens.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use payments_model::redrive::SENT_AGAIN_AFTER;
use payments_model::{HeadKey, Status, UtcSecond};

use crate::conditional::conditional;
use crate::error::StoreError;
use crate::item::{number, text};
use crate::payment::head_item::{decode_head, head_key};
use crate::payment::transition::Moved;
use crate::store::Store;

impl Store {
    /// Raises the dispatch attempt of a payment that is pending at `attempt` to `next`: 1 write unit. Returns whether the payment
    /// was pending at `attempt`.
    pub async fn redrive(&self, key: &HeadKey, attempt: u32, next: u32, now: UtcSecond) -> Result<bool, StoreError> {
        let update = self
            .next_attempt(key, attempt, next, now)
            .condition_expression("#status = :pending AND dispatchAttempt = :attempt");
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }

    /// Raises the dispatch attempt of a payment that is pending at `attempt` by one, unless its request was sent again less than
    /// [`SENT_AGAIN_AFTER`] ago: 1 write unit. Returns the head after it, or the unchanged head, if the hot table has one.
    ///
    /// A call whose reply was lost, or another call at the same second, has done the same.
    pub async fn send_again(&self, key: &HeadKey, attempt: u32, now: UtcSecond) -> Result<Moved, StoreError> {
        let next = attempt.saturating_add(1);
        let update = self
            .next_attempt(key, attempt, next, now)
            .condition_expression(
                "#status = :pending AND dispatchAttempt = :attempt \
                 AND (attribute_not_exists(sentAgainAt) OR sentAgainAt <= :latest)",
            )
            .expression_attribute_values(":latest", text(now.saturating_add(-SENT_AGAIN_AFTER)))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let decode = |item| decode_head(&self.tables.payments, item).map(Box::new);
        match conditional("UpdateItem", update.send().await)? {
            Ok(sent) => decode(sent.attributes.unwrap_or_default()).map(Moved::Done),
            Err(found) => Ok(match found.map(decode).transpose()? {
                Some(head) if head.dispatch_attempt == Some(next) && head.sent_again_at == Some(now) => {
                    Moved::Done(head)
                }
                found => Moved::Elsewhere(found),
            }),
        }
    }

    /// The update that raises a dispatch attempt, without its condition.
    fn next_attempt(&self, key: &HeadKey, attempt: u32, next: u32, now: UtcSecond) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            .update_expression("SET dispatchAttempt = :next, sentAgainAt = :now")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":pending", AttributeValue::S(Status::Pending.to_string()))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":next", number(next))
            .expression_attribute_values(":now", text(now))
    }
}
