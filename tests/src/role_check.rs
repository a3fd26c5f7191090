//! IAM between a function and the engine: a call that the function's role does not allow is denied as DynamoDB would.
//! So every journey also tests the policies. A write of an item of no kind is denied, too: each kind has golden items.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::Client;
use payments_machine::Layers;
use payments_machine::layers::{Reply, client_over};
use payments_store::{ItemKind, TableNames};
use serde_json::Value;

use crate::role::Role;
use crate::template::template;

/// The roles of the template, by package.
static ROLES: LazyLock<Result<BTreeMap<String, Role>, String>> =
    LazyLock::new(|| template().and_then(|template| Role::all(&template)).map_err(|error| format!("{error:#}")));

/// Returns the same client with the role of a function.
pub fn with_role(client: &Client, function: &'static str, tables: &TableNames) -> Result<Client> {
    let roles = ROLES.as_ref().map_err(|error| anyhow!("{error}"))?;
    let role = roles.get(function).with_context(|| format!("the template has no {function}"))?;
    let inner = client.config().http_client().context("the client has no HTTP client")?;
    let tables = Arc::new(tables.clone());
    let layers = Layers::over(inner).with_fn(move |call, next| {
        let of_no_kind = written_key_of_no_kind(&call.operation, call.input());
        let mut needs = needs(&call.operation, call.input(), &tables).into_iter();
        let denied = needs.find(|Need { actions, place, partitions }| {
            let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
            !role.allows_together(&actions, place, partitions)
        });
        async move {
            if let Some(key) = of_no_kind {
                let why = format!("{function} writes {key}, which is of no kind: see payments_store::ItemKind");
                return Ok(Reply::refusal(400, "AccessDeniedException", &why));
            }
            let Some(Need { actions, place, partitions }) = denied else { return next.send(call).await };
            let actions = Vec::from_iter(actions).join(", ");
            let why = format!("the role of {function} does not allow {actions} on {place} for {partitions:?}");
            Ok(Reply::refusal(400, "AccessDeniedException", &why))
        }
    });
    Ok(client_over(client, layers))
}

/// Requirements of a call for one statement: actions on a table or index, for these partition keys.
struct Need {
    actions: BTreeSet<String>,
    place: String,
    partitions: Vec<String>,
}

/// The requirements of a call. The actions of a transaction on one table count together, for the
/// keys of its actions on every table, because the documentation does not say whether a condition
/// compares the keys of one action or those of the whole request.
fn needs(operation: &str, input: &Value, tables: &TableNames) -> Vec<Need> {
    let place = |table: &str| {
        let names = [(&tables.payments, "PaymentsTable"), (&tables.history, "HistoryTable"), (&tables.log, "LogTable")];
        names.iter().find(|(name, _)| *name == table).map_or(table, |(_, id)| id).to_owned()
    };
    let table = place(input["TableName"].as_str().unwrap_or_default());
    let pk = |key: &Value| key["pk"]["S"].as_str().map(str::to_owned);
    let one = |action: &str, place: String, partitions: Vec<String>| {
        let actions = BTreeSet::from([format!("dynamodb:{action}")]);
        Need { actions, place, partitions }
    };
    match operation {
        "Query" => {
            let (place, keys) = match input["IndexName"].as_str() {
                Some(index) => (format!("{table}/index/{index}"), None),
                None => (table, queried(input)),
            };
            vec![one("Query", place, keys.into_iter().collect())]
        }
        "BatchGetItem" => {
            let tables = input["RequestItems"].as_object().into_iter().flatten();
            let keys = |asked: &Value| asked["Keys"].as_array().into_iter().flatten().filter_map(pk).collect();
            tables.map(|(table, asked)| one("BatchGetItem", place(table), keys(asked))).collect()
        }
        "TransactWriteItems" => {
            let (mut needs, mut partitions) = (BTreeMap::<String, BTreeSet<String>>::new(), Vec::new());
            let actions =
                input["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
            for (kind, action) in actions {
                let item = if kind == "ConditionCheck" { "ConditionCheckItem" } else { &format!("{kind}Item") };
                let place = place(action["TableName"].as_str().unwrap_or_default());
                needs.entry(place).or_default().insert(format!("dynamodb:{item}"));
                partitions.extend(pk(&action["Key"]).or_else(|| pk(&action["Item"])));
            }
            let need = |(place, actions)| Need { actions, place, partitions: partitions.clone() };
            needs.into_iter().map(need).collect()
        }
        _ => {
            let partition = pk(&input["Key"]).or_else(|| pk(&input["Item"]));
            vec![one(operation, table, partition.into_iter().collect())]
        }
    }
}

/// The key of an item that a call puts or updates, if no kind of items has such a key.
fn written_key_of_no_kind(operation: &str, input: &Value) -> Option<String> {
    let actions = input["TransactItems"].as_array().into_iter().flatten();
    let of_transaction = actions.flat_map(|action| [&action["Put"]["Item"], &action["Update"]["Key"]]);
    let one = match operation {
        "PutItem" => &input["Item"],
        "UpdateItem" => &input["Key"],
        _ => &Value::Null,
    };
    let keys = of_transaction.chain([one]).filter_map(|key| Some((key["pk"]["S"].as_str()?, key["sk"]["S"].as_str()?)));
    let mut unknown = keys.filter(|(partition, sort)| ItemKind::from_key(partition, sort).is_none());
    unknown.next().map(|(partition, sort)| format!("{partition} / {sort}"))
}

/// The partition key in a query of a table.
fn queried(input: &Value) -> Option<String> {
    let condition = input["KeyConditionExpression"].as_str()?.strip_prefix("pk = ")?;
    let name = condition.split_whitespace().next()?;
    input["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned)
}
