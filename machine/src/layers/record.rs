//! The layer that records the operations and the capacity that they use on each table and index.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::{HttpClient, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::Value;

use super::call::{Answer, Call, Fate, Layer, Layers, Next, WRITES};
use super::fault::Fault;

/// The capacity that operations used, in half units, by operation and place. A place is a table's name or
/// `table/index`; the items of last runs and figures are a place of their own, `table#RUNS`, because they cost the same
/// however many payments there are. Reads can use half a unit; writes use whole ones.
pub type CapacityUse = BTreeMap<(String, String), u64>;

/// The end of a place with the items of last runs and figures, and the beginning of their partition keys.
const OF_RUNS: [&str; 2] = ["#RUNS", "RUNS#"];

/// An HTTP client for the SDK that records what its calls use. Clones share the record.
#[derive(Debug, Clone)]
pub struct Recorder {
    layers: Layers,
    record: Record,
}

/// The layer, and what it has recorded. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Record(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
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
        Self::over(Builder::new().build_http())
    }

    /// Creates a recorder over another HTTP client.
    pub fn over(inner: impl HttpClient + 'static) -> Self {
        Self::with_fate_over(inner, |_| Fate::Pass)
    }

    /// Creates a recorder over plain HTTP that gives each try the fate that `decide` returns.
    pub fn with_fate(decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) -> Self {
        Self::with_fate_over(Builder::new().build_http(), decide)
    }

    fn with_fate_over(
        inner: impl HttpClient + 'static,
        decide: impl Fn(&Call) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let record = Record::default();
        let tries = record.clone();
        let note = move |call: Call, next: Next| {
            tries.lock().operations.push(call.operation.clone());
            async move { next.send(call).await }
        };
        Self { layers: Layers::over(inner).with_fn(note).with(Fault::new(decide)).with(record.clone()), record }
    }

    /// Returns the operations since the last time, in order, and each try by itself.
    pub fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut self.record.lock().operations)
    }

    /// Returns the capacity that was used since the last time.
    pub fn take_capacity_use(&self) -> CapacityUse {
        std::mem::take(&mut self.record.lock().capacity)
    }
}

impl HttpClient for Recorder {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.layers.http_connector(settings, components)
    }
}

/// Returns the write units in a capacity use.
pub fn write_units(capacity: &CapacityUse) -> u64 {
    let writes = capacity.iter().filter(|((operation, _), _)| WRITES.contains(&operation.as_str()));
    writes.map(|(_, half_units)| half_units / 2).sum()
}

/// Whether a place has the items of last runs and figures.
pub fn is_of_runs(place: &str) -> bool {
    place.ends_with(OF_RUNS[0])
}

#[async_trait]
impl Layer for Record {
    async fn carry(&self, mut call: Call, next: Next) -> Answer {
        let operation = call.operation.clone();
        call.ask_for_capacity();
        let partition = || call.input()["Key"]["pk"]["S"].as_str();
        let is_of_runs = operation == "UpdateItem" && partition().is_some_and(|it| it.starts_with(OF_RUNS[1]));
        let reply = next.send(call).await?;
        let mut used = CapacityUse::new();
        add_capacity(&mut used, &operation, reply.json());
        let capacity = &mut self.lock().capacity;
        for ((operation, table), half_units) in used {
            *capacity.entry((operation, if is_of_runs { table + OF_RUNS[0] } else { table })).or_default() +=
                half_units;
        }
        Ok(reply)
    }
}

impl Record {
    /// Returns the capacity that was used so far.
    pub fn capacity_use(&self) -> CapacityUse {
        self.lock().capacity.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
