//! Compares `template.yaml` with the code: the deployed tables, routes and settings are the tested ones.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use payments_bank::read_configuration;
use payments_boot::Lookup;
use payments_http::routes::{self, DEFAULT_FUNCTION};
use payments_machine::Template;
use payments_machine::template::DeployedFunction;
use payments_store::schema::{self, Index, KeyAttribute, Table};
use payments_tests::deployed;
pub(crate) use payments_tests::template;
use serde_json::{Map, Value, json};

use crate::tree::read;

pub(crate) const FUNCTION: &str = "AWS::Serverless::Function";
pub(crate) const API: &str = "AWS::Serverless::HttpApi";
const TABLE: &str = "AWS::DynamoDB::Table";

#[test]
fn tables_are_those_of_the_schema() -> Result<()> {
    let template = template()?;
    let tables = resources(&template, TABLE)?;
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["HistoryTable", "LogTable", "PaymentsTable"]);
    for ((name, found), wanted) in tables.iter().zip([&schema::HISTORY, &schema::LOG, &schema::PAYMENTS]) {
        let wanted = table(wanted);
        let compared = wanted.as_object().context("a table is an object")?.keys();
        let mut found: Map<_, _> = compared.map(|key| (key.clone(), found["Properties"][key].clone())).collect();
        // Warm throughput exists on AWS alone.
        for index in found["GlobalSecondaryIndexes"].as_array_mut().into_iter().flatten() {
            index.as_object_mut().and_then(|index| index.remove("WarmThroughput"));
        }
        assert_eq!(Value::Object(found), wanted, "{name}");
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
            ensure!(found.insert((route.clone(), package(function)?)), "{route} occurs twice");
        }
    }
    let default = ("$default".to_owned(), DEFAULT_FUNCTION.name());
    let wanted: BTreeSet<_> = routes::all().map(|spec| (spec.key(), spec.function.name())).chain([default]).collect();
    assert_eq!(found, wanted);
    Ok(())
}

#[test]
fn who_deploys_knows_how_many_routes_there_are() -> Result<()> {
    let template = template()?;
    let routes: usize = resources(&template, FUNCTION)?.iter().map(|(_, function)| http_events(function).count()).sum();
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/deploy.md"))?;
    ensure!(guide.contains(&format!("this prints {routes}.")), "docs/deploy.md has another number than {routes}");
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
        assert!(authorizers.contains_key(default), "{name}: {default} is not one of its authorizers");
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
            let is_public = match (&event["Method"], &event["Path"]) {
                (Value::String(method), Value::String(path)) => {
                    routes::by_key(&format!("{method} {path}")).is_some_and(|spec| spec.scope.is_none())
                }
                _ => false,
            };
            let wanted = if is_public { json!({ "Authorizer": "NONE" }) } else { Value::Null };
            ensure!(event["Auth"] == wanted, "{name} has a route with an authorisation of its own: {event}");
        }
    }
    Ok(())
}

#[test]
fn functions_are_built_from_their_own_packages() -> Result<()> {
    for (name, function) in resources(&template()?, FUNCTION)? {
        assert_eq!(function["Properties"]["CodeUri"], format!("functions/{}", package(function)?), "{name}");
    }
    Ok(())
}

#[test]
fn functions_can_read_their_configuration() -> Result<()> {
    let (deployed, sam_local) = (deployed()?, sam_local_environment()?);
    for DeployedFunction { id: name, package, .. } in &deployed.functions {
        let declared = |variable: &str| variable_of(&deployed, package, variable);
        read_configuration(package, &Lookup::new(&declared)).with_context(|| format!("{name} would not start"))?;
        // Declared, because `sam local` overrides only declared variables; empty for AWS's own endpoint.
        assert_eq!(declared("DYNAMODB_ENDPOINT").as_deref(), Some(""), "{name}");
        let overridden = |variable: &str| {
            let is_declared = declared(variable).is_some();
            let local = sam_local.get(variable).filter(|_| is_declared).cloned();
            local.or_else(|| declared(variable))
        };
        read_configuration(package, &Lookup::new(&overridden))
            .with_context(|| format!("{name} would not start in sam local"))?;
    }
    Ok(())
}

#[test]
fn parameters_have_descriptions_and_defaults() -> Result<()> {
    let template = template()?;
    for (name, parameter) in template["Parameters"].as_object().context("no parameters")? {
        assert!(parameter["Description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        assert!(!parameter["Default"].is_null(), "{name} has no default");
        let limits = ["AllowedValues", "AllowedPattern", "MaxValue"];
        assert!(limits.iter().any(|limit| !parameter[*limit].is_null()), "{name} has no limits");
    }
    Ok(())
}

#[test]
fn each_function_has_its_log_group() -> Result<()> {
    let template = template()?;
    let groups = resources(&template, "AWS::Logs::LogGroup")?;
    let mut groups: BTreeSet<&str> = groups.into_iter().map(|(name, _)| name).collect();
    for (name, function) in resources(&template, FUNCTION)? {
        let group = text(&function["Properties"]["LoggingConfig"]["LogGroup"]["!Ref"])?;
        assert!(groups.remove(group), "{name} logs into {group}, which is missing or another's");
    }
    for (name, api) in resources(&template, API)? {
        let group = text(&api["Properties"]["AccessLogSettings"]["DestinationArn"]["!GetAtt"])?;
        assert!(group.strip_suffix(".Arn").is_some_and(|group| groups.remove(group)), "{name} logs into {group}");
    }
    assert!(groups.is_empty(), "no function logs into {groups:?}");
    Ok(())
}

/// The variables that `sam local` sets in place of the template's, in each function that declares
/// them: `events/env.json`.
pub(crate) fn sam_local_environment() -> Result<BTreeMap<String, String>> {
    let mut read: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&read("events/env.json")?)?;
    let found = read.remove("Parameters").context("no parameters")?;
    ensure!(read.is_empty(), "one variable has one value in all functions, not one of its own in {read:?}");
    Ok(found)
}

/// The resources of one type by logical id. There must be one.
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

/// The value of a function's environment variable, with default parameters.
pub(crate) fn variable_of(deployed: &Template, package: &str, name: &str) -> Option<String> {
    deployed.variable(package, name, &name_of_bucket).ok().flatten()
}

/// The name of a bucket, which has no capitals.
pub(crate) fn name_of_bucket(id: &str) -> Option<String> {
    id.ends_with("Bucket").then(|| id.to_ascii_lowercase())
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
        // DynamoDB rejects an empty list.
        "GlobalSecondaryIndexes": (!table.indexes.is_empty()).then(|| table.indexes.iter().map(index).collect::<Vec<_>>()),
        "LocalSecondaryIndexes": null,
        "StreamSpecification": table.stream.as_ref().map(|view| json!({"StreamViewType": view.as_str()})),
        "TimeToLiveSpecification": table.time_to_live.map(|name| json!({"AttributeName": name, "Enabled": true})),
    })
}

/// The projection of an index.
pub(crate) fn projection(index: &Index) -> Value {
    match index.includes {
        [] => json!({"ProjectionType": "KEYS_ONLY"}),
        includes => json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": includes}),
    }
}

fn index(index: &Index) -> Value {
    let key_schema = key_schema(index.partition, index.sort);
    json!({"IndexName": index.name, "KeySchema": key_schema, "Projection": projection(index)})
}

fn key_schema(partition: KeyAttribute, sort: Option<KeyAttribute>) -> Value {
    let partition = json!({"AttributeName": partition.name(), "KeyType": "HASH"});
    let sort = sort.map(|sort| json!({"AttributeName": sort.name(), "KeyType": "RANGE"}));
    [partition].into_iter().chain(sort).collect()
}
