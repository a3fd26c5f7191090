//! A connector in front of the engine that holds every partition key of tables and indexes to what
//! DynamoDB takes per second of a virtual clock, and refuses the rest as DynamoDB does.
//!
//! What a call costs, the engine says, table and indexes apart; whose partition key it is charged to
//! follows from the item before and after it. Calls go through one by one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payments_local::interceptor::{Answer, Next, respond};
use payments_local::{Call, Interceptor, Recorder};
use serde_json::{Value, json};

use crate::buckets::{Buckets, Kind, Name, Warmth};
use crate::design::Keys;

/// What was charged to a partition key, in half units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) place: String,
    pub(crate) key: String,
    pub(crate) kind: Kind,
    pub(crate) half_units: u64,
}

/// The partition keys of one item or call: (`table` or `table/index`, key).
type Places = Vec<(String, String)>;

/// The connector. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    wire: Recorder,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    keys: Vec<Keys>,
    /// Where each item is, by table, partition and sort key.
    items: HashMap<[String; 3], Places>,
    buckets: Buckets,
    second: u64,
    charges: Vec<Charge>,
    refused_by: Option<Name>,
}

impl Meter {
    pub(crate) fn new(keys: impl Into<Vec<Keys>>, warmth: Warmth) -> Self {
        let (items, buckets) = (HashMap::new(), Buckets::new(warmth));
        let state = State { keys: keys.into(), items, buckets, second: 0, charges: Vec::new(), refused_by: None };
        Self { wire: Recorder::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the virtual clock.
    pub(crate) fn set_second(&self, second: u64) {
        self.state().second = second;
    }

    /// What was charged since the last time.
    pub(crate) fn take_charges(&self) -> Vec<Charge> {
        std::mem::take(&mut self.state().charges)
    }

    /// Which bucket was empty when a call was last refused, if one was since the last time.
    pub(crate) fn take_refusal(&self) -> Option<Name> {
        self.state().refused_by.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The HTTP client for an SDK client.
    pub(crate) fn interceptor(&self) -> Interceptor {
        let meter = self.clone();
        Interceptor::over(self.wire.clone(), move |call, next| meter.clone().carry(call, next))
    }

    async fn carry(self, mut call: Call, next: Next) -> Answer {
        let (operation, mut input) = (call.operation.clone(), call.input().clone());
        let Some(kind) = kind_of(&operation) else { return next.send(call).await };
        let refused = self.state().refuses(kind, &input);
        if let Some(name) = refused {
            let answer = refusal(&name);
            self.state().refused_by = Some(name);
            return answer;
        }
        if operation == "UpdateItem" {
            // Where it is then, only the item as it is then can tell. Who did not ask for it does not look.
            input["ReturnValues"] = json!("ALL_NEW");
            call.set_input(input.clone());
        }
        drop(self.wire.take_capacity_use());
        let response = next.send(call).await?;
        let answer: Value = serde_json::from_slice(response.body().bytes().unwrap_or_default()).unwrap_or_default();
        let costs: Vec<_> = self.wire.take_capacity_use().into_iter().map(|((_, place), cost)| (place, cost)).collect();
        let mut state = self.state();
        let charged_to = match operation.as_str() {
            _ if !response.status().is_success() => state.places(&input),
            "PutItem" => state.moved(&input, &input["Item"]),
            "UpdateItem" => state.moved(&input, &answer["Attributes"]),
            "DeleteItem" => state.moved(&input, &Value::Null),
            _ => state.places(&input),
        };
        state.charge(kind, &charged_to, &costs);
        drop(state);
        Ok(response)
    }
}

impl State {
    /// The first empty bucket of those that a call would be charged to, as far as they are known before.
    fn refuses(&mut self, kind: Kind, input: &Value) -> Option<Name> {
        for (place, key) in self.places(input) {
            for name in names(&place, &key, kind) {
                let number = self.buckets.number(&name);
                if self.buckets.is_empty(number, self.second) {
                    return Some(name);
                }
            }
        }
        None
    }

    /// The partition keys of a call, before it: those of the item as it is, and of the one it puts.
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
        let mut places = self.items.get(&id_of(table, item)).cloned().unwrap_or_default();
        for place in self.places_of(table, item) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Where an item is: in its table, and in each index whose attributes it has.
    fn places_of(&self, table: &str, item: &Value) -> Places {
        let mut places = vec![(table.to_owned(), plain(&item["pk"]))];
        let indexes = self.keys.iter().filter(|(name, _)| name == table).flat_map(|(_, indexes)| indexes);
        for index in indexes {
            let has_sort = index.sort.is_none_or(|sort| item[sort].is_object());
            if has_sort && item[index.partition].is_object() {
                places.push((format!("{table}/{}", index.name), plain(&item[index.partition])));
            }
        }
        places
    }

    /// The same of a write that was done and left `new`. What it was before is charged too.
    fn moved(&mut self, input: &Value, new: &Value) -> Places {
        let table = input["TableName"].as_str().unwrap_or_default().to_owned();
        let key = if input["Item"].is_object() { &input["Item"] } else { &input["Key"] };
        let id = id_of(&table, key);
        let mut places = self.items.remove(&id).unwrap_or_default();
        let now = if new.is_object() { self.places_of(&table, new) } else { Vec::new() };
        places.extend(now.iter().filter(|place| !places.contains(place)).cloned().collect::<Vec<_>>());
        if !now.is_empty() {
            self.items.insert(id, now);
        }
        places
    }

    /// Charges what a call cost. A cost that several keys of a place share, as where an index entry
    /// moved from one to another, is divided evenly.
    fn charge(&mut self, kind: Kind, charged_to: &Places, costs: &[(String, u64)]) {
        for (place, half_units) in costs {
            let keys: Vec<&String> = charged_to.iter().filter(|(at, _)| at == place).map(|(_, key)| key).collect();
            let share = half_units.div_ceil(u64::try_from(keys.len()).unwrap_or(1).max(1));
            for key in keys.iter().filter(|_| share > 0) {
                for name in names(place, key, kind) {
                    let number = self.buckets.number(&name);
                    self.buckets.charge(number, share);
                }
                let (place, key) = (place.clone(), (*key).clone());
                self.charges.push(Charge { place, key, kind, half_units: share });
            }
        }
    }
}

/// The buckets of a partition key: its own, and that of the place as a whole.
fn names(place: &str, key: &str, kind: Kind) -> [Name; 2] {
    let name = |key| Name { place: place.to_owned(), key, kind };
    [name(Some(key.to_owned())), name(None)]
}

/// Whether an operation is a read or a write; nothing for those that cost nothing.
fn kind_of(operation: &str) -> Option<Kind> {
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => Some(Kind::Write),
        "GetItem" | "BatchGetItem" | "Query" => Some(Kind::Read),
        _ => None,
    }
}

/// A key's value, whatever its type.
fn plain(value: &Value) -> String {
    let value = value["S"].as_str().or(value["N"].as_str());
    value.unwrap_or_default().to_owned()
}

fn id_of(table: &str, item: &Value) -> [String; 3] {
    [table.to_owned(), plain(&item["pk"]), plain(&item["sk"])]
}

/// The partition key of a query: every one of ours begins with `name = :value`.
fn partition_of(condition: &str, input: &Value) -> String {
    let value =
        condition.split(" AND ").next().and_then(|first| first.split_once(" = ")).map_or("", |(_, value)| value);
    plain(&input["ExpressionAttributeValues"][value.trim()])
}

/// DynamoDB's answer where a key or a table has no capacity left.
fn refusal(name: &Name) -> Answer {
    let of = if name.place.contains('/') { "Index" } else { "Table" };
    let reason = format!("{of}{:?}KeyRangeThroughputExceeded", name.kind);
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "message": format!("{name} has no capacity left"),
        "throttlingReasons": [{ "reason": reason, "resource": name.place }],
    });
    respond(400, body.to_string())
}
