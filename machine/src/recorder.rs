//! An interceptor that records the operations and the capacity that they use on each table and index.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::{HttpClient, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::Value;

use crate::interceptor::{Answer, Call, Fate, Interceptor, Next, Process, read_whole, respond};

/// The capacity that operations used, in half units, by operation and place. A place is a table's name or
/// `table/index`. Reads can use half a unit; writes use whole ones.
pub type CapacityUse = BTreeMap<(String, String), u64>;

/// The operations that write.
const WRITES: [&str; 5] = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"];

/// An HTTP client for the SDK that records what its calls use. Clones share the record.
#[derive(Debug, Clone)]
pub struct Recorder {
    interceptor: Interceptor,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    operations: Vec<String>,
    capacity: CapacityUse,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Creates a recorder over plain HTTP.
    pub fn new() -> Self {
        Self::with_fate(|_| Fate::Pass)
    }

    /// Creates a recorder over another HTTP client.
    pub fn over(inner: impl HttpClient + 'static) -> Self {
        Self::with_fate_over(inner, |_| Fate::Pass)
    }

    /// Creates a recorder over plain HTTP that lets each try meet the fate that `decide` returns.
    pub fn with_fate(decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) -> Self {
        Self::with_fate_over(Builder::new().build_http(), decide)
    }

    fn with_fate_over(
        inner: impl HttpClient + 'static,
        decide: impl Fn(&Call) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let (record, process, decide) = (Arc::<Mutex<Record>>::default(), Process::default(), Arc::new(decide));
        let shared = Arc::clone(&record);
        let interceptor = Interceptor::over(inner, move |call, next| {
            let (record, process, decide) = (Arc::clone(&shared), process.clone(), Arc::clone(&decide));
            async move {
                lock(&record).operations.push(call.operation.clone());
                let fate = decide(&call);
                fate.carry_out(call, &process, |call| send(call, next, &record)).await
            }
        });
        Self { interceptor, record }
    }

    /// Returns the operations since the last time, in order, and each try by itself.
    pub fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.record).operations)
    }

    /// Returns the capacity that was used since the last time.
    pub fn take_capacity_use(&self) -> CapacityUse {
        std::mem::take(&mut lock(&self.record).capacity)
    }
}

impl HttpClient for Recorder {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.interceptor.http_connector(settings, components)
    }
}

/// Returns the write units in a capacity use.
pub fn write_units(capacity: &CapacityUse) -> u64 {
    let writes = capacity.iter().filter(|((operation, _), _)| WRITES.contains(&operation.as_str()));
    writes.map(|(_, half_units)| half_units / 2).sum()
}

/// Sends a call and records the capacity that it uses, for table and indexes separately.
async fn send(mut call: Call, next: Next, record: &Mutex<Record>) -> Answer {
    let operation = call.operation.clone();
    call.ask_for_capacity();
    let (status, body) = read_whole(next.send(call).await?).await?;
    let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
    add_capacity(&mut lock(record).capacity, &operation, &answer);
    respond(status, body)
}

/// Adds the capacity that a call used, from its answer.
pub fn add_capacity(capacity: &mut CapacityUse, operation: &str, answer: &Value) {
    let consumed = match answer.get("ConsumedCapacity") {
        Some(Value::Array(several)) => several.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    for consumed in consumed {
        let table = consumed["TableName"].as_str().unwrap_or("?");
        let indexes = consumed["GlobalSecondaryIndexes"].as_object().into_iter().flatten();
        let indexes = indexes.map(|(index, used)| (format!("{table}/{index}"), used));
        for (place, used) in std::iter::once((table.to_owned(), &consumed["Table"])).chain(indexes) {
            *capacity.entry((operation.to_owned(), place)).or_default() += half_units(&used["CapacityUnits"]);
        }
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Doubles a number of units without a float: `10`, `10.0`, `0.5`.
fn half_units(units: &Value) -> u64 {
    let text = units.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    2 * whole.parse::<u64>().unwrap_or(0) + u64::from(fraction.starts_with('5'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units_are_doubled_exactly() {
        for (units, want) in [(json!(10.0), 20), (json!(0.5), 1), (json!(2), 4), (json!(128.5), 257), (Value::Null, 0)]
        {
            assert_eq!(half_units(&units), want, "{units}");
        }
    }

    #[test]
    fn only_writes_use_write_units() {
        let entry = |operation: &str, half_units| ((operation.to_owned(), "payments".to_owned()), half_units);
        let capacity = CapacityUse::from([entry("PutItem", 20), entry("UpdateItem", 6), entry("Query", 7)]);
        assert_eq!(write_units(&capacity), 13);
    }
}
