//! Holds `template.yaml` to the code: what is deployed has the tables, routes and settings that
//! were tested.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use payments_boot::Lookup;
use payments_http::routes::{DEFAULT_FUNCTION, ROUTES};
use payments_store::schema::{self, Index, KeyAttribute, Table};
use serde_json::{Map, Value, json};

pub(crate) const FUNCTION: &str = "AWS::Serverless::Function";
pub(crate) const API: &str = "AWS::Serverless::HttpApi";
const TABLE: &str = "AWS::DynamoDB::Table";

#[test]
fn tables_are_those_of_the_schema() -> Result<()> {
    let template = template()?;
    let tables = resources(&template, TABLE)?;
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["HistoryTable", "PaymentsTable"]);
    for ((name, found), wanted) in tables.iter().zip([&schema::HISTORY, &schema::PAYMENTS]) {
        let wanted = table(wanted);
        let compared = wanted.as_object().context("a table is an object")?.keys();
        let found: Map<_, _> = compared.map(|key| (key.clone(), found["Properties"][key].clone())).collect();
        assert_eq!(Value::Object(found), wanted, "{name}");
    }
    Ok(())
}

#[test]
fn tables_outlive_the_stack() -> Result<()> {
    for (name, table) in resources(&template()?, TABLE)? {
        assert_eq!(table["DeletionPolicy"], "Retain", "{name}");
        assert_eq!(table["UpdateReplacePolicy"], "Retain", "{name}");
    }
    Ok(())
}

#[test]
fn routes_are_those_of_the_table() -> Result<()> {
    let template = template()?;
    let mut found = BTreeSet::new();
    for (_, function) in resources(&template, FUNCTION)? {
        for event in http_events(function) {
            let route = match (&event["Method"], &event["Path"]) {
                (Value::Null, Value::Null) => "$default".to_owned(),
                (method, path) => format!("{} {}", text(method)?, text(path)?),
            };
            ensure!(found.insert((route.clone(), package(function)?)), "{route} is there twice");
        }
    }
    let default = ("$default".to_owned(), DEFAULT_FUNCTION);
    let wanted: BTreeSet<_> = ROUTES.iter().map(|spec| (spec.key(), spec.function)).chain([default]).collect();
    assert_eq!(found, wanted);
    Ok(())
}

#[test]
fn no_route_is_open_to_the_world() -> Result<()> {
    let template = template()?;
    let apis = resources(&template, API)?;
    for (name, api) in &apis {
        let auth = &api["Properties"]["Auth"];
        let default = text(&auth["DefaultAuthorizer"]).with_context(|| format!("{name} has no default"))?;
        let authorizers = auth["Authorizers"].as_object().with_context(|| format!("{name} has no authorizers"))?;
        assert!(authorizers.contains_key(default), "{name}: {default} is none of its authorizers");
        for (authorizer, found) in authorizers {
            let jwt = &found["JwtConfiguration"];
            assert_eq!(found["IdentitySource"], "$request.header.Authorization", "{name}: {authorizer}");
            let names = |what: &str| !matches!(&jwt[what], Value::Null | Value::String(_));
            assert!(names("issuer") && names("audience"), "{name}: {authorizer} takes anybody's tokens: {found}");
        }
    }
    for (name, function) in resources(&template, FUNCTION)? {
        ensure!(function["Properties"]["FunctionUrlConfig"].is_null(), "{name} has a URL of its own");
        for event in http_events(function) {
            let api = text(&event["ApiId"]["!Ref"])?;
            ensure!(apis.iter().any(|(name, _)| *name == api), "{name} has a route of {api:?}, which is not checked");
            ensure!(event["Auth"].is_null(), "{name} has a route with an authorisation of its own: {event}");
        }
    }
    Ok(())
}

#[test]
fn functions_are_built_from_their_own_packages() -> Result<()> {
    for (name, function) in resources(&template()?, FUNCTION)? {
        assert_eq!(function["Metadata"]["BuildMethod"], "rust-cargolambda", "{name}");
        assert_eq!(function["Properties"]["CodeUri"], format!("functions/{}", package(function)?), "{name}");
    }
    Ok(())
}

#[test]
fn functions_can_read_their_configuration() -> Result<()> {
    let template = template()?;
    for (name, function) in resources(&template, FUNCTION)? {
        let variable = |variable: &str| variable_of(&template, function, variable);
        let read = match package(function)? {
            "ingest" => ingest::Config::read(&Lookup::new(&variable)).map(drop),
            "query-account" => query_account::Config::read(&Lookup::new(&variable)).map(drop),
            "query-due" => query_due::Config::read(&Lookup::new(&variable)).map(drop),
            "daily-due-sweeper" => daily_due_sweeper::Config::read(&Lookup::new(&variable)).map(drop),
            "dispatch" => dispatch::Config::read(&Lookup::new(&variable)).map(drop),
            "settle" => settle::Config::read(&Lookup::new(&variable)).map(drop),
            "stream-aggregator" => stream_aggregator::Config::read(&Lookup::new(&variable)).map(drop),
            "recount" => recount::Config::read(&Lookup::new(&variable)).map(drop),
            "archive" => archive::Config::read(&Lookup::new(&variable)).map(drop),
            "report" => report::Config::read(&Lookup::new(&variable)).map(drop),
            other => anyhow::bail!("which configuration does {other} read?"),
        };
        read.with_context(|| format!("{name} would not start"))?;
        // Declared, because `sam local` overrides only what is; empty, because AWS's own is meant.
        assert_eq!(variable("DYNAMODB_ENDPOINT").as_deref(), Some(""), "{name}");
    }
    Ok(())
}

/// The template as JSON, in which `!Ref Name` is `{"!Ref": "Name"}`.
pub(crate) fn template() -> Result<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
    let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(&std::fs::read_to_string(path).context(path)?)?;
    Ok(serde_json::to_value(yaml)?)
}

/// The resources of one type by their logical id, in its order. There has to be one.
pub(crate) fn resources<'t>(template: &'t Value, kind: &str) -> Result<Vec<(&'t str, &'t Value)>> {
    let all = template["Resources"].as_object().context("no resources")?;
    let of_kind: Vec<_> = all.iter().filter(|(_, r)| r["Type"] == kind).map(|(name, r)| (name.as_str(), r)).collect();
    ensure!(!of_kind.is_empty(), "no {kind}");
    Ok(of_kind)
}

/// The properties of a function's HTTP API events.
pub(crate) fn http_events(function: &Value) -> impl Iterator<Item = &Value> {
    let events = function["Properties"]["Events"].as_object();
    let http = events.into_iter().flat_map(Map::values).filter(|event| event["Type"] == "HttpApi");
    http.map(|event| &event["Properties"])
}

/// The package a function is built from.
pub(crate) fn package(function: &Value) -> Result<&str> {
    text(&function["Metadata"]["BuildProperties"]["Binary"])
}

pub(crate) fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("not a text: {value}"))
}

/// The value of a function's environment variable, in a stack whose parameters are the defaults.
fn variable_of(template: &Value, function: &Value, name: &str) -> Option<String> {
    let own = &function["Properties"]["Environment"]["Variables"][name];
    let global = &template["Globals"]["Function"]["Environment"]["Variables"][name];
    let value = if own.is_null() { global } else { own };
    if let Some(pattern) = value["!Sub"].as_str() {
        // The name of a resource stands for its value.
        return Some(pattern.replace("${ReportsBucket}", "reports-bucket"));
    }
    let parameter = value["!Ref"].as_str().map(|id| &template["Parameters"][id]["Default"]);
    match parameter.unwrap_or(value) {
        Value::Null => value["!Ref"].as_str().map(str::to_owned),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A table of the schema as CloudFormation writes it.
fn table(table: &Table) -> Value {
    let attributes: Vec<Value> = schema::attribute_definitions(table)
        .iter()
        .map(|it| json!({"AttributeName": it.attribute_name(), "AttributeType": it.attribute_type().as_str()}))
        .collect();
    json!({
        "KeySchema": key_schema(schema::PARTITION, Some(schema::SORT)),
        "AttributeDefinitions": attributes,
        "GlobalSecondaryIndexes": table.indexes.iter().map(index).collect::<Vec<_>>(),
        "LocalSecondaryIndexes": null,
        "StreamSpecification": table.stream.then(|| json!({"StreamViewType": "NEW_AND_OLD_IMAGES"})),
        "TimeToLiveSpecification": table.time_to_live.map(|name| json!({"AttributeName": name, "Enabled": true})),
    })
}

fn index(index: &Index) -> Value {
    let projection = match index.includes {
        [] => json!({"ProjectionType": "KEYS_ONLY"}),
        includes => json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": includes}),
    };
    let key_schema = key_schema(index.partition, index.sort);
    json!({"IndexName": index.name, "KeySchema": key_schema, "Projection": projection})
}

fn key_schema(partition: KeyAttribute, sort: Option<KeyAttribute>) -> Value {
    let partition = json!({"AttributeName": partition.name(), "KeyType": "HASH"});
    let sort = sort.map(|sort| json!({"AttributeName": sort.name(), "KeyType": "RANGE"}));
    [partition].into_iter().chain(sort).collect()
}
