//! Moving a payment from one status to the next: one conditional write, whose condition restates
//! what the transition function decided on.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{BusinessDate, Head, HeadKey, State, Status, Transition};

use crate::error::failed;
use crate::item::{decode_head, encode_trail_entry, head_key};
use crate::key::{DueSort, UnreportedSort, head_sort};
use crate::{Store, StoreError};

/// What became of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// It happened; this is the payment now.
    Done(Box<Head>),
    /// The payment is not where the transition begins; this is the payment now, or nothing where
    /// the hot table has none.
    Elsewhere(Option<Box<Head>>),
}

impl Store {
    /// Writes one transition of a payment in the hot table. The condition restates all that the
    /// step takes for granted, `due_date` included. A moved `due` key costs 2 write units
    /// beside the head's 1; a settlement adds 1 for `unreported` and 1 for `transaction`.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or the item cannot be read.
    pub async fn transition(
        &self,
        key: &HeadKey,
        due_date: BusinessDate,
        step: &Transition,
    ) -> Result<Moved, StoreError> {
        use aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException;
        use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure::AllOld};
        let (expression, values) = update_of(key, due_date, step);
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            .condition_expression("#status = :from AND version = :fromVersion AND due = :fromDue")
            .update_expression(expression)
            .expression_attribute_names("#status", "status")
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(AllOld)
            .send()
            .await;
        match update {
            Ok(done) => Ok(Moved::Done(Box::new(decode_head(done.attributes.unwrap_or_default())?))),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(check)) => {
                    Ok(Moved::Elsewhere(check.item.clone().map(decode_head).transpose()?.map(Box::new)))
                }
                // The expression is the same for every payment: if it does not fit, the item is damaged.
                _ if error.code() == Some("ValidationException") => {
                    let why = error.message().unwrap_or("it cannot be updated").to_owned();
                    Err(StoreError::Unreadable { key: format!("{} / {}", key.account, head_sort(key.sort)), why })
                }
                _ => Err(failed("UpdateItem")(error)),
            },
        }
    }
}

impl Store {
    /// Counts one more hand-over of a payment that is still pending at `attempt`: 1 write unit,
    /// and no transition. Says whether it was; if not, the payment has moved on.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn redrive(&self, key: &HeadKey, attempt: u32) -> Result<bool, StoreError> {
        use aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException;
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            .condition_expression("#status = :pending AND dispatchAttempt = :attempt")
            .update_expression("SET dispatchAttempt = :next")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":pending", AttributeValue::S(Status::Pending.to_string()))
            .expression_attribute_values(":attempt", AttributeValue::N(attempt.to_string()))
            .expression_attribute_values(":next", AttributeValue::N((attempt + 1).to_string()))
            .send()
            .await;
        match update {
            Ok(_) => Ok(true),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(_)) => Ok(false),
                _ => Err(failed("UpdateItem")(error)),
            },
        }
    }
}

/// The update expression of a step, and its values.
fn update_of(
    key: &HeadKey,
    due_date: BusinessDate,
    step: &Transition,
) -> (&'static str, HashMap<String, AttributeValue>) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u32| AttributeValue::N(number.to_string());
    let status = step.to().status();
    let due = DueSort { status, due_date, head: key.sort };
    let from_due = DueSort { status: step.from(), ..due };
    let mut values = HashMap::from([
        (":from".to_owned(), text(step.from().as_str())),
        (":fromVersion".to_owned(), number(step.version())),
        (":fromDue".to_owned(), text(&from_due.to_string())),
        (":status".to_owned(), text(status.as_str())),
        (":version".to_owned(), number(step.version() + 1)),
        (":due".to_owned(), text(&due.to_string())),
        (":entry".to_owned(), AttributeValue::L(vec![encode_trail_entry(status, step.at(), step.by())])),
    ]);
    let mut settled = |name: &str, value: &str| {
        let unreported = UnreportedSort { settled_at: step.at(), payment_id: key.sort.payment_id };
        values.insert(name.to_owned(), text(value));
        values.insert(":settledAt".to_owned(), text(&step.at().to_string()));
        values.insert(":unreported".to_owned(), text(&unreported.to_string()));
    };
    let expression = match step.to() {
        State::Scheduled | State::Cancelled => {
            "SET #status = :status, version = :version, due = :due, trail = list_append(trail, :entry)"
        }
        State::Pending => {
            values.insert(":attempt".to_owned(), number(1));
            "SET #status = :status, version = :version, due = :due, trail = list_append(trail, :entry), dispatchAttempt = :attempt"
        }
        State::Processed(id) => {
            settled(":transactionId", id.as_str());
            "SET #status = :status, version = :version, due = :due, trail = list_append(trail, :entry), \
             transactionId = :transactionId, settledAt = :settledAt, unreported = :unreported"
        }
        State::Failed(reason) => {
            settled(":failureReason", reason.as_str());
            "SET #status = :status, version = :version, due = :due, trail = list_append(trail, :entry), \
             failureReason = :failureReason, settledAt = :settledAt, unreported = :unreported"
        }
    };
    (expression, values)
}
