//! The calls of the bare side. The store makes them, over a client that keeps each call instead of sending it, so that
//! no expression is written twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept};
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::put_item::PutItemInput;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_smithy_runtime_api::box_error::BoxError;
use futures::future::LocalBoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_store::{Store, StoreError, TableNames};

/// Prepared work: what its future does is measured.
pub(crate) type Work<'f> = LocalBoxFuture<'f, Result<()>>;

/// The requests or calls in flight, on either side.
pub(crate) const AT_ONCE: usize = 32;

/// A call that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Get(GetItemInput),
    Put(PutItemInput),
    Update(UpdateItemInput),
    Query(QueryInput),
}

/// The store over a client that keeps calls.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    store: Store,
    kept: Kept,
}

#[derive(Debug, Clone, Default)]
struct Kept {
    calls: Arc<Mutex<Vec<Call>>>,
    /// How many calls are sent before one is not.
    sent: Arc<AtomicUsize>,
}

impl Intercept for Kept {
    fn name(&self) -> &'static str {
        "kept"
    }

    fn read_before_execution(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input();
        let put = input.downcast_ref::<PutItemInput>().cloned().map(Call::Put);
        let update = || input.downcast_ref::<UpdateItemInput>().cloned().map(Call::Update);
        let query = || input.downcast_ref::<QueryInput>().cloned().map(Call::Query);
        let get = || input.downcast_ref::<GetItemInput>().cloned().map(Call::Get);
        let call = put.or_else(update).or_else(query).or_else(get);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).extend(call);
        let left = self.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| "kept, and not sent".into())
    }
}

impl Collector {
    pub(crate) fn over(client: &Client, tables: &TableNames) -> Self {
        let kept = Kept::default();
        let config = client.config().to_builder().interceptor(kept.clone()).build();
        Self { store: Store::new(Client::from_conf(config), tables.clone()), kept }
    }

    /// Returns the call that the store makes for `ask`. The call fails, so the store makes no other.
    pub(crate) async fn call<T>(&self, ask: impl AsyncFnOnce(&Store) -> Result<T, StoreError>) -> Result<Call> {
        let [call] = self.calls(ask).await?;
        Ok(call)
    }

    /// Returns the calls that the store makes for `ask`, one after the other. The last one fails, so the store makes no other.
    pub(crate) async fn calls<const N: usize, T>(
        &self,
        ask: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<[Call; N]> {
        self.kept.sent.store(N.saturating_sub(1), Ordering::Relaxed);
        drop(ask(&self.store).await);
        let calls = std::mem::take(&mut *self.kept.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let made = calls.len();
        calls.try_into().map_err(|_| anyhow!("the store made {made} calls, not {N}"))
    }
}

impl Call {
    /// Sends the call and reads the response into the SDK's type.
    async fn send(self, client: &Client) -> Result<()> {
        match self {
            Self::Get(input) => {
                let get = client
                    .get_item()
                    .set_table_name(input.table_name)
                    .set_key(input.key)
                    .set_consistent_read(input.consistent_read);
                get.send().await?;
            }
            Self::Put(input) => {
                let put = client
                    .put_item()
                    .set_table_name(input.table_name)
                    .set_item(input.item)
                    .set_condition_expression(input.condition_expression)
                    .set_return_values_on_condition_check_failure(input.return_values_on_condition_check_failure);
                put.send().await?;
            }
            Self::Update(input) => {
                let update = client
                    .update_item()
                    .set_table_name(input.table_name)
                    .set_key(input.key)
                    .set_condition_expression(input.condition_expression)
                    .set_update_expression(input.update_expression)
                    .set_expression_attribute_names(input.expression_attribute_names)
                    .set_expression_attribute_values(input.expression_attribute_values)
                    .set_return_values(input.return_values)
                    .set_return_values_on_condition_check_failure(input.return_values_on_condition_check_failure);
                update.send().await?;
            }
            Self::Query(input) => {
                let query = client
                    .query()
                    .set_table_name(input.table_name)
                    .set_index_name(input.index_name)
                    .set_key_condition_expression(input.key_condition_expression)
                    .set_expression_attribute_names(input.expression_attribute_names)
                    .set_expression_attribute_values(input.expression_attribute_values)
                    .set_consistent_read(input.consistent_read)
                    .set_scan_index_forward(input.scan_index_forward)
                    .set_limit(input.limit);
                query.send().await?;
            }
        }
        Ok(())
    }
}

/// Sends calls one after another.
pub(crate) async fn send_in_turn(client: &Client, calls: impl IntoIterator<Item = Call>) -> Result<()> {
    for call in calls {
        call.send(client).await?;
    }
    Ok(())
}

/// Sends groups of calls, `at_once` groups concurrently, and the calls of a group one after another.
pub(crate) async fn send_groups<const N: usize>(client: &Client, groups: Vec<[Call; N]>, at_once: usize) -> Result<()> {
    let sent = futures::stream::iter(groups).map(|group| send_in_turn(client, group));
    sent.buffer_unordered(at_once).try_collect().await
}
