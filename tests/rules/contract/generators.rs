//! Needs of client generators in `openapi.yaml`, so that code from any of them compiles and changes no value.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use payments_http::routes::ROUTES;
use payments_tests::Contract;
use serde_json::Value;

/// The components that generators make types of, in one name space.
const TYPES: [&str; 4] = ["schemas", "parameters", "responses", "headers"];

/// The types that oapi-codegen declares, whatever the description says. It keeps constants apart from all others itself.
const OWN_TYPES: [&str; 6] =
    ["client", "clientinterface", "clientoption", "clientwithresponses", "httprequestdoer", "requesteditorfn"];

/// Go names a parameter and a schema alike, whatever their case and their dashes.
#[test]
fn no_two_components_have_one_name() -> Result<()> {
    let mut names = BTreeMap::new();
    for section in TYPES {
        for name in members(Contract::get()?.document(), &format!("/components/{section}"))?.keys() {
            let other = names.insert(plain(name), (section, name));
            assert_eq!(other, None, "{section}/{name} is the same name");
        }
    }
    Ok(())
}

/// One header has one component, or an operation could have two arguments of one name.
#[test]
fn no_two_parameters_have_one_name() -> Result<()> {
    let contract = Contract::get()?;
    let mut names = BTreeSet::new();
    for (component, parameter) in members(contract.document(), "/components/parameters")? {
        let name = parameter["name"].as_str().context("a name")?;
        assert!(names.insert(plain(name)), "{component}: another component has the name {name}");
    }
    for (key, operation) in contract.operations()? {
        let mut names = BTreeSet::new();
        for name in parameters(contract, operation)?.into_iter().map(|(_, name)| name) {
            assert!(names.insert(plain(name)), "{key}: two parameters are called {name}");
        }
    }
    Ok(())
}

/// Generators put the parameters of a path behind those of its operations: two texts would change places.
#[test]
fn parameters_are_in_the_order_of_the_path() -> Result<()> {
    let contract = Contract::get()?;
    for (path, item) in members(contract.document(), "/paths")? {
        assert!(item["parameters"].is_null(), "{path}: give each operation its parameters");
    }
    for spec in &ROUTES {
        let operation = &contract.document()["paths"][spec.path][spec.method.as_str().to_lowercase()];
        let found = parameters(contract, operation)?;
        let wanted = spec.parameters(spec.path).unwrap_or_default().into_iter().map(|(name, _)| ("path", name));
        let wanted: Vec<_> = wanted.collect();
        assert_eq!(found.get(..wanted.len()), Some(&*wanted), "{}", spec.key());
    }
    Ok(())
}

/// Some generators repeat a list's parameter, whatever its style is.
#[test]
fn every_list_in_a_query_has_the_default_style() -> Result<()> {
    each_schema(|at, parameter| {
        let is_default = parameter["style"].is_null() && parameter["explode"].is_null();
        assert!(is_default, "{at}: leave out style and explode, and take repeated parameters");
    })
}

/// An integer that does not say how large it can be has 32 bits in Java and elsewhere.
#[test]
fn every_integer_says_how_large_it_is() -> Result<()> {
    each_schema(|at, schema| {
        if schema["type"] != "integer" {
            return;
        }
        let is_small = |value: &Value| value.as_i64().is_some_and(|value| i32::try_from(value).is_ok());
        let listed = schema["enum"].as_array().is_some_and(|values| values.iter().all(is_small));
        let fits = match schema["format"].as_str() {
            Some("int64") => true,
            Some("int32") => schema["maximum"].is_null() || is_small(&schema["maximum"]),
            _ => listed || is_small(&schema["maximum"]),
        };
        assert!(fits, "{at}: give the integer the format int32 or int64, or a maximum");
    })
}

/// A program that parses what fits first reads a time as a date, and sends back another text.
#[test]
fn a_text_has_one_form() -> Result<()> {
    let contract = Contract::get()?;
    each_schema(|at, schema| {
        for choice in ["anyOf", "oneOf"] {
            for one in schema[choice].as_array().into_iter().flatten() {
                let one = contract.resolved(one).unwrap_or(one);
                assert_eq!(one["type"], "object", "{at}: {choice} of texts; say it with one pattern");
            }
        }
    })
}

/// Java has no enum of booleans, and a set where JSON has an array.
#[test]
fn no_schema_has_a_form_that_a_language_lacks() -> Result<()> {
    each_schema(|at, schema| {
        assert!(schema["type"] != "boolean" || schema["enum"].is_null(), "{at}: a boolean with an enum");
        assert!(schema["uniqueItems"].is_null(), "{at}: uniqueItems");
    })
}

/// Go makes each value a constant of the package.
#[test]
fn no_value_has_the_name_of_a_generated_type() -> Result<()> {
    each_schema(|at, schema| {
        for value in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(!OWN_TYPES.contains(&&*plain(value)), "{at}: generated code has a type {value}, too");
        }
    })
}

/// A name as generators compare it: without case and signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn members<'d>(document: &'d Value, pointer: &str) -> Result<&'d serde_json::Map<String, Value>> {
    document.pointer(pointer).and_then(Value::as_object).with_context(|| pointer.to_owned())
}

/// The place and the name of each parameter of an operation.
fn parameters<'c>(contract: &'c Contract, operation: &'c Value) -> Result<Vec<(&'c str, &'c str)>> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| {
        let parameter = contract.resolved(parameter)?;
        Ok((parameter["in"].as_str().context("a place")?, parameter["name"].as_str().context("a name")?))
    });
    parameters.collect()
}

/// Judges each schema of the description, with its place.
fn each_schema(judge: impl Fn(&str, &Value)) -> Result<()> {
    let document = Contract::get()?.document();
    let mut places = vec![(String::new(), document)];
    let mut seen = 0;
    while let Some((at, place)) = places.pop() {
        if place.is_object() {
            judge(&at, place);
            seen += 1;
        }
        let named = place.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value));
        let numbered = place.as_array().into_iter().flatten().enumerate().map(|(n, value)| (n.to_string(), value));
        // An example is not a schema.
        let inside =
            named.chain(numbered).filter(|(name, _)| !["example", "examples", "value"].contains(&name.as_str()));
        places.extend(inside.map(|(name, value)| (format!("{at}/{name}"), value)));
    }
    assert!(seen > 1_000, "{seen} places");
    Ok(())
}
