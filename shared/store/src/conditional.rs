//! Conditional writes: a failed condition is a result, and any other failure is an error.

use std::collections::HashMap;
use std::error::Error;

use aws_sdk_dynamodb::config::{self, retry::RetryConfig};
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use crate::error::{StoreError, failed, incomplete};
use crate::item::Item;
use crate::store::Store;

/// The error of a write that can have a condition.
pub(crate) trait ConditionalError: ProvideErrorMetadata + Error + Send + Sync + 'static {
    /// The failed condition, if that is the error.
    fn failed_condition(&self) -> Option<&ConditionalCheckFailedException>;
}

macro_rules! conditional_error {
    ($($error:ident),*) => {$(
        impl ConditionalError for $error {
            fn failed_condition(&self) -> Option<&ConditionalCheckFailedException> {
                if let Self::ConditionalCheckFailedException(failed) = self { Some(failed) } else { None }
            }
        }
    )*};
}

conditional_error!(PutItemError, UpdateItemError, DeleteItemError);

/// The result of a conditional write, or of its failed condition: then the item in its place, if
/// there is one and the write asked for it.
pub(crate) type Conditional<T> = Result<T, Option<Item>>;

/// The settings of a write that the SDK does not repeat: its failed condition says that it was not made.
pub(crate) fn once() -> config::Builder {
    config::Builder::new().retry_config(RetryConfig::disabled())
}

/// Tells a failed condition from other failures of `operation`.
pub(crate) fn conditional<T, E: ConditionalError>(
    operation: &'static str,
    written: Result<T, SdkError<E>>,
) -> Result<Conditional<T>, StoreError> {
    match written {
        Ok(written) => Ok(Ok(written)),
        Err(error) => match error.as_service_error().and_then(E::failed_condition) {
            Some(check) => Ok(Err(check.item.clone())),
            None => Err(failed(operation)(error)),
        },
    }
}

impl Store {
    /// Writes all actions or none. If conditions failed, returns the place of the first such action. A failed condition
    /// counts for more than a conflict, because repeating does not change it.
    pub(crate) async fn transact(
        &self,
        actions: Result<Vec<TransactWriteItem>, BuildError>,
    ) -> Result<Result<(), usize>, StoreError> {
        const OPERATION: &str = "TransactWriteItems";
        let actions = actions.map_err(incomplete(OPERATION))?;
        let Err(error) = self.client.transact_write_items().set_transact_items(Some(actions)).send().await else {
            return Ok(Ok(()));
        };
        let has = |codes: &[&str]| cancellation_codes(&error).any(|code| codes.contains(&code));
        if let Some(place) = cancellation_codes(&error).position(|code| code == "ConditionalCheckFailed") {
            Ok(Err(place))
        } else if has(&["ValidationError", "ItemCollectionSizeLimitExceeded"]) {
            Err(failed(OPERATION)(error))
        } else if has(&["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]) {
            // Another write was at one of the items, or a key was throttled.
            Err(StoreError::Throttled { operation: OPERATION, source: Box::new(error) })
        } else {
            Err(failed(OPERATION)(error))
        }
    }
}

/// `#0 = :0`, `#1 = :1` and so on for all attributes of an item except its key, with their names and values: conditions
/// or assignments, depending on the separator. They are in the order of the names.
pub(crate) fn equations(
    item: &Item,
    between: &str,
) -> (String, HashMap<String, String>, HashMap<String, AttributeValue>) {
    let mut terms = Vec::new();
    let mut names = HashMap::new();
    let mut values = HashMap::new();
    let mut attributes: Vec<_> = item.iter().filter(|(name, _)| !["pk", "sk"].contains(&name.as_str())).collect();
    attributes.sort_by_key(|(name, _)| *name);
    for (place, (name, value)) in attributes.into_iter().enumerate() {
        terms.push(format!("#{place} = :{place}"));
        names.insert(format!("#{place}"), name.clone());
        values.insert(format!(":{place}"), value.clone());
    }
    (terms.join(between), names, values)
}

/// Whether a transaction was cancelled only because another one writes the items that its actions
/// from `first` on write.
pub(crate) fn is_conflict_from(error: &StoreError, first: usize) -> bool {
    let StoreError::Throttled { source, .. } = error else { return false };
    let cancelled = source.downcast_ref::<SdkError<TransactWriteItemsError>>();
    let codes = cancelled.into_iter().flat_map(cancellation_codes).enumerate();
    let mut reasons = codes.filter(|(_, code)| *code != "None").peekable();
    reasons.peek().is_some() && reasons.all(|(place, code)| place >= first && code == "TransactionConflict")
}

/// The reasons why DynamoDB cancelled a transaction, if it did: a code for each action.
fn cancellation_codes(error: &SdkError<TransactWriteItemsError>) -> impl Iterator<Item = &str> {
    let reasons = match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => cancelled.cancellation_reasons(),
        _ => &[],
    };
    reasons.iter().map(|reason| reason.code().unwrap_or_default())
}
