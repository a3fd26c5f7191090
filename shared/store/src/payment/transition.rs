//! Claims and cancels: one conditional write each.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use payments_model::{Head, HeadKey, State, Transition};

use crate::conditional::{conditional, once};
use crate::error::StoreError;
use crate::item::key_of;
use crate::key::due::DueSort;
use crate::payment::head_item::{decode_head, encode_trail_entry, head_key};
use crate::store::Store;

/// The result of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The payment made the transition. The value is the head after it.
    Done(Box<Head>),
    /// The payment is not in the state in which the transition begins. The value is the payment's head, if
    /// the hot table has one.
    Elsewhere(Option<Box<Head>>),
}

/// A head that cannot be read, or not be updated.
#[derive(Debug)]
pub struct Damaged {
    /// The fault: [`StoreError::Unreadable`].
    pub error: StoreError,
    /// Whether the call is known not to have changed it.
    pub is_unmoved: bool,
}

impl Store {
    /// Claims a payment, as [`Store::transition`] does, and tries once: if the payment is elsewhere, this call did not move it.
    pub async fn claim_once(
        &self,
        key: &HeadKey,
        due: DueSort,
        claim: &Transition,
    ) -> Result<Result<Moved, Damaged>, StoreError> {
        let (expression, values) = update_of(due, claim).ok_or_else(not_in_hot_table)?;
        self.try_move(key, (expression, values, &[]), Some(once())).await
    }

    /// Writes a claim or a cancel to the hot table, if the head has the transition's first status and
    /// version, and the due time of `due`: 1 write unit for the head, and 2 for its `due` key. Settlements
    /// are written by [`Store::decide_settlement`].
    pub async fn transition(&self, key: &HeadKey, due: DueSort, transition: &Transition) -> Result<Moved, StoreError> {
        let (expression, values) = update_of(due, transition).ok_or_else(not_in_hot_table)?;
        self.move_head(key, expression, values, &[]).await
    }

    /// Updates a head that has the status `:from`, the version `:fromVersion` and the due key `:fromDue`. DynamoDB reserves
    /// some words, so the expression can write the attributes `named` with a `#`.
    pub(crate) async fn move_head(
        &self,
        key: &HeadKey,
        expression: String,
        values: HashMap<String, AttributeValue>,
        named: &[&str],
    ) -> Result<Moved, StoreError> {
        let moved = self.try_move(key, (expression, values, named), None).await?;
        moved.map_err(|damaged| damaged.error)
    }

    async fn try_move(
        &self,
        key: &HeadKey,
        (expression, values, named): (String, HashMap<String, AttributeValue>, &[&str]),
        settings: Option<aws_sdk_dynamodb::config::Builder>,
    ) -> Result<Result<Moved, Damaged>, StoreError> {
        let is_once = settings.is_some();
        let names = named.iter().chain(&["status"]).map(|name| (format!("#{name}"), (*name).to_owned()));
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(head_key(key)))
            // Test: a_cancel_against_a_sweep
            .condition_expression("#status = :from AND version = :fromVersion AND due = :fromDue")
            .update_expression(expression)
            .set_expression_attribute_names(Some(names.collect()))
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let update = update.customize().config_override(settings.unwrap_or_default()).send().await;
        // The expression is the same for every payment. So if DynamoDB calls it invalid, the item is damaged.
        if let Err(error) = &update
            && error.code() == Some("ValidationException")
        {
            let why = error.message().unwrap_or("it cannot be updated");
            let error = StoreError::unreadable(&self.tables.payments, key_of(&head_key(key)), why);
            return Ok(Err(Damaged { error, is_unmoved: true }));
        }
        let decode = |item| decode_head(&self.tables.payments, item).map(Box::new);
        Ok(match conditional("UpdateItem", update)? {
            Ok(done) => decode(done.attributes.unwrap_or_default())
                .map(Moved::Done)
                .map_err(|error| Damaged { error, is_unmoved: false }),
            Err(found) => {
                // The SDK may have repeated a call that was made.
                let head = found.map(decode).transpose().map(Moved::Elsewhere);
                head.map_err(|error| Damaged { error, is_unmoved: is_once })
            }
        })
    }
}

fn not_in_hot_table() -> StoreError {
    let source = "a settlement is written to the long-term table first".into();
    StoreError::Refused { operation: "UpdateItem", source }
}

/// The update expression of a claim or a cancel, and its values. `None` for a settlement.
fn update_of(due: DueSort, transition: &Transition) -> Option<(String, HashMap<String, AttributeValue>)> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u32| AttributeValue::N(number.to_string());
    let status = transition.to().status();
    let mut values = HashMap::from([
        (":from".to_owned(), text(transition.from().as_str())),
        (":fromVersion".to_owned(), number(transition.version())),
        (":fromDue".to_owned(), text(&due.in_status(transition.from()).to_string())),
        (":status".to_owned(), text(status.as_str())),
        (":version".to_owned(), number(transition.version() + 1)),
        (":due".to_owned(), text(&due.in_status(status).to_string())),
        (":entry".to_owned(), AttributeValue::L(vec![encode_trail_entry(status, transition.at(), transition.by())])),
    ]);
    let more = match transition.to() {
        State::Cancelled => "",
        State::Pending => {
            values.insert(":attempt".to_owned(), number(1));
            ", dispatchAttempt = :attempt"
        }
        State::Scheduled | State::Processed(_) | State::Failed(_) => return None,
    };
    let all = "SET #status = :status, version = :version, due = :due, trail = list_append(trail, :entry)";
    Some((format!("{all}{more}"), values))
}
