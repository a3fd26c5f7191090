//! An interceptor that applies DynamoDB's limits to an engine, on a virtual clock, and rejects what exceeds them.
//!
//! The engine reports the cost of a call, for table and indexes separately. The item before and after the call says
//! which partition keys to charge. Calls are sent one by one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payments_machine::interceptor::{Answer, Next, respond};
use payments_machine::{Call, Interceptor, Recorder};
use payments_store::schema::KeyAttribute;
use serde_json::{Value, json};

use crate::buckets::{Buckets, Name, UnitKind};
use crate::design::Indexes;

/// Half units that a partition key was charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) place: String,
    pub(crate) key: String,
    pub(crate) kind: UnitKind,
    pub(crate) half_units: u64,
}

/// The partition keys of one item or call: (`table` or `table/index`, key).
type Places = Vec<(String, String)>;

/// What a call costs: (`table` or `table/index`, half units).
type Costs = Vec<(String, u64)>;

/// What is known of a stored item.
#[derive(Debug, Clone, Default)]
struct Stored {
    places: Places,
    /// What its last write cost the table: as much as a write whose condition it fails.
    half_units: u64,
}

/// The throttle. Clones share its state.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    recorder: Recorder,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    indexes: Vec<Indexes>,
    /// The items, by table, partition and sort key.
    items: HashMap<[String; 3], Stored>,
    buckets: Buckets,
    second: u64,
    charges: Vec<Charge>,
    rejected_by: Option<Name>,
}

impl Throttle {
    pub(crate) fn new(indexes: impl Into<Vec<Indexes>>, buckets: Buckets) -> Self {
        let (indexes, items, charges) = (indexes.into(), HashMap::new(), Vec::new());
        let state = State { indexes, items, buckets, second: 0, charges, rejected_by: None };
        Self { recorder: Recorder::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the virtual clock.
    pub(crate) fn set_second(&self, second: u64) {
        self.state().second = second;
    }

    /// Returns what was charged since the last time.
    pub(crate) fn take_charges(&self) -> Vec<Charge> {
        std::mem::take(&mut self.state().charges)
    }

    /// Returns the empty bucket that rejected a call since the last time.
    pub(crate) fn take_rejection(&self) -> Option<Name> {
        self.state().rejected_by.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the HTTP client for an SDK client.
    pub(crate) fn interceptor(&self) -> Interceptor {
        let throttle = self.clone();
        Interceptor::over(self.recorder.clone(), move |call, next| throttle.clone().send(call, next))
    }

    async fn send(self, mut call: Call, next: Next) -> Answer {
        let (operation, mut input) = (call.operation.clone(), call.input().clone());
        let Some(kind) = kind_of(&operation) else { return next.send(call).await };
        let empty = self.state().empty_bucket(kind, &input);
        if let Some(name) = empty {
            let response = throttled(&name);
            self.state().rejected_by = Some(name);
            return response;
        }
        if operation == "UpdateItem" {
            // Only the new item says which keys it has. The caller ignores the additional attributes.
            input["ReturnValues"] = json!("ALL_NEW");
            call.set_input(input.clone());
        }
        drop(self.recorder.take_capacity_use());
        let response = next.send(call).await?;
        let answer: Value = serde_json::from_slice(response.body().bytes().unwrap_or_default()).unwrap_or_default();
        let mut costs: Costs =
            self.recorder.take_capacity_use().into_iter().map(|((_, place), cost)| (place, cost)).collect();
        let mut state = self.state();
        let charged_to = match operation.as_str() {
            _ if is_failed_condition(&answer) => {
                // The engine reports nothing here. DynamoDB charges for the item that is there.
                costs = state.cost_of_failure(&input);
                state.places(&input)
            }
            _ if !response.status().is_success() => state.places(&input),
            "PutItem" => state.moved(&input, &input["Item"], &costs),
            "UpdateItem" => state.moved(&input, &answer["Attributes"], &costs),
            "DeleteItem" => state.moved(&input, &Value::Null, &costs),
            _ => state.places(&input),
        };
        state.charge(kind, &charged_to, &costs);
        drop(state);
        Ok(response)
    }
}

impl State {
    /// Returns the first empty bucket of those that a call is known to be charged to before it is sent.
    fn empty_bucket(&mut self, kind: UnitKind, input: &Value) -> Option<Name> {
        for (place, key) in self.places(input) {
            let number = self.buckets.number(Name { place, key, kind });
            if self.buckets.is_empty(number, self.second) {
                return Some(self.buckets.name(number).clone());
            }
        }
        None
    }

    /// Returns the partition keys of a call before it is sent: those of the stored item and of the new one.
    fn places(&self, input: &Value) -> Places {
        if let Some(tables) = input["RequestItems"].as_object() {
            let keys = tables.iter().flat_map(|(table, asked)| {
                let keys = asked["Keys"].as_array().into_iter().flatten();
                keys.map(move |key| (table.clone(), plain(&key["pk"])))
            });
            return keys.collect();
        }
        let table = input["TableName"].as_str().unwrap_or_default();
        if let Some(condition) = input["KeyConditionExpression"].as_str() {
            let place = match input["IndexName"].as_str() {
                Some(index) => format!("{table}/{index}"),
                None => table.to_owned(),
            };
            return vec![(place, partition_of(condition, input))];
        }
        let item = if input["Item"].is_object() { &input["Item"] } else { &input["Key"] };
        let mut places = self.items.get(&id_of(table, item)).cloned().unwrap_or_default().places;
        for place in self.places_of(table, item) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Returns the places of an item: its table, and each index whose key attributes it has.
    fn places_of(&self, table: &str, item: &Value) -> Places {
        let mut places = vec![(table.to_owned(), plain(&item["pk"]))];
        let indexes = self.indexes.iter().filter(|(name, _)| name == table).flat_map(|(_, indexes)| indexes);
        for index in indexes {
            let (partition, sort) = (index.partition.name(), index.sort.map(KeyAttribute::name));
            if item[partition].is_object() && sort.is_none_or(|sort| item[sort].is_object()) {
                places.push((format!("{table}/{}", index.name), plain(&item[partition])));
            }
        }
        places
    }

    /// Returns the partition keys of a write that left `new`, with those of the item before it, and remembers the new ones.
    fn moved(&mut self, input: &Value, new: &Value, costs: &Costs) -> Places {
        let table = input["TableName"].as_str().unwrap_or_default().to_owned();
        let key = if input["Item"].is_object() { &input["Item"] } else { &input["Key"] };
        let id = id_of(&table, key);
        let mut places = self.items.remove(&id).unwrap_or_default().places;
        let now = if new.is_object() { self.places_of(&table, new) } else { Vec::new() };
        places.extend(now.iter().filter(|place| !places.contains(place)).cloned().collect::<Vec<_>>());
        if !now.is_empty() {
            let half_units = costs.iter().find(|(place, _)| *place == table).map_or(0, |(_, cost)| *cost);
            self.items.insert(id, Stored { places: now, half_units });
        }
        places
    }

    /// Returns the cost of a write whose condition failed.
    fn cost_of_failure(&self, input: &Value) -> Costs {
        let table = input["TableName"].as_str().unwrap_or_default();
        let item = if input["Item"].is_object() { &input["Item"] } else { &input["Key"] };
        let stored = self.items.get(&id_of(table, item));
        vec![(table.to_owned(), stored.map_or(2, |stored| stored.half_units))]
    }

    /// Charges what a call cost. If several keys of a place share the cost, because an index entry moved, each is charged
    /// an equal part.
    fn charge(&mut self, kind: UnitKind, charged_to: &Places, costs: &Costs) {
        for (place, half_units) in costs {
            let keys: Vec<&String> = charged_to.iter().filter(|(at, _)| at == place).map(|(_, key)| key).collect();
            let share = half_units.div_ceil(u64::try_from(keys.len()).unwrap_or(1).max(1));
            for key in keys.iter().filter(|_| share > 0) {
                let (place, key) = (place.clone(), (*key).clone());
                let number = self.buckets.number(Name { place: place.clone(), key: key.clone(), kind });
                self.buckets.charge(number, share);
                self.charges.push(Charge { place, key, kind, half_units: share });
            }
        }
    }
}

/// Whether a response says that a condition failed.
fn is_failed_condition(answer: &Value) -> bool {
    answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException"))
}

/// Returns whether an operation reads or writes, or nothing if it costs nothing.
fn kind_of(operation: &str) -> Option<UnitKind> {
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => Some(UnitKind::Write),
        "GetItem" | "BatchGetItem" | "Query" => Some(UnitKind::Read),
        _ => None,
    }
}

/// Returns the value of a key of any type.
fn plain(value: &Value) -> String {
    let value = value["S"].as_str().or(value["N"].as_str());
    value.unwrap_or_default().to_owned()
}

fn id_of(table: &str, item: &Value) -> [String; 3] {
    [table.to_owned(), plain(&item["pk"]), plain(&item["sk"])]
}

/// Returns the partition key of a query. Every condition here begins with `name = :value`.
fn partition_of(condition: &str, input: &Value) -> String {
    let value =
        condition.split(" AND ").next().and_then(|first| first.split_once(" = ")).map_or("", |(_, value)| value);
    plain(&input["ExpressionAttributeValues"][value.trim()])
}

/// Returns DynamoDB's response if a partition has no capacity left.
fn throttled(name: &Name) -> Answer {
    let of = if name.place.contains('/') { "Index" } else { "Table" };
    let reason = format!("{of}{:?}KeyRangeThroughputExceeded", name.kind);
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "message": format!("{name} has no capacity left"),
        "throttlingReasons": [{ "reason": reason, "resource": name.place }],
    });
    respond(400, body.to_string())
}
