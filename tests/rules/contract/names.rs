//! Names of the API: one word for one thing in `openapi.yaml`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_model::settlement::MAX_FAILURE_REASON_BYTES;
use payments_model::{Actor, FailureCode, PublicActor};
use payments_tests::Contract;
use serde_json::Value;

use crate::tree::read;

/// The schemas of the places at which a client reads on.
const CURSORS: [&str; 3] =
    ["#/components/schemas/LogCursor", "#/components/schemas/LogStart", "#/components/schemas/NextCursor"];

/// The schemas with lists of values that no release adds to: clients send them.
const CLOSED: [&str; 2] = ["DateRule", "WebhookEndpointOrder"];

/// A request sends a `cursor`; an answer has `nextCursor`, and any other one says in its name that it is one.
#[test]
fn a_place_to_read_on_is_called_a_cursor() -> Result<()> {
    let mut names = Vec::new();
    collect(Contract::get()?.document(), &mut names);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["cursor", "endCursor", "nextCursor", "oldestCursor"]);
    Ok(())
}

/// The names of all members and parameters that are cursors.
fn collect<'d>(node: &'d Value, names: &mut Vec<&'d str>) {
    match node {
        Value::Object(members) => {
            if let (Some(name), true) =
                (members.get("name").and_then(Value::as_str), members.get("schema").is_some_and(is_cursor))
            {
                names.push(name);
            }
            let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
            names.extend(properties.filter(|(_, schema)| is_cursor(schema)).map(|(name, _)| name.as_str()));
            members.values().for_each(|member| collect(member, names));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, names)),
        _ => {}
    }
}

fn is_cursor(schema: &Value) -> bool {
    schema["$ref"].as_str().is_some_and(|reference| CURSORS.contains(&reference))
}

/// Whoever reads an answer knows which values may grow: the description says it in words, and each list of values by a mark, which the
/// clients are generated from.
#[test]
fn a_list_of_values_in_an_answer_says_that_it_may_grow() -> Result<()> {
    let document = Contract::get()?.document();
    let schemas = document["components"]["schemas"].as_object().context("no schemas")?;
    for (name, schema) in schemas {
        let mut lists = Vec::new();
        collect_lists(schema, &mut lists);
        for list in lists {
            assert_ne!(list["x-may-grow"] == true, CLOSED.contains(&name.as_str()), "{name}: {list}");
        }
    }
    let text = document["info"]["description"].as_str().context("no description")?;
    for kind in ["statuses", "types of events and of problems", "codes"] {
        assert!(text.contains(kind), "{kind}");
    }
    Ok(())
}

/// The schemas with several values.
fn collect_lists<'d>(node: &'d Value, lists: &mut Vec<&'d Value>) {
    match node {
        Value::Object(members) => {
            if members.get("enum").and_then(Value::as_array).is_some_and(|values| values.len() > 1) {
                lists.push(node);
            }
            members.values().for_each(|member| collect_lists(member, lists));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_lists(element, lists)),
        _ => {}
    }
}

/// The description lists each code that a failure can have, with its name in ISO 20022, and says how long a reason is.
#[test]
fn the_description_lists_the_codes_of_failures() -> Result<()> {
    let schemas = &Contract::get()?.document()["components"]["schemas"];
    let code = &schemas["FailureCode"];
    let listed: Vec<&str> = code["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(listed, FailureCode::LISTED);
    let rows = code["description"].as_str().context("no description")?.lines();
    let described: Vec<&str> =
        rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` | ").map(|(code, _)| code)).collect();
    assert_eq!(described, FailureCode::LISTED);
    for schema in ["Payment", "Event"] {
        assert_eq!(schemas[schema]["properties"]["failureReason"]["maxLength"], MAX_FAILURE_REASON_BYTES, "{schema}");
    }
    Ok(())
}

/// Whoever writes a retry anew, with other spaces in its `data`, sends another payment.
#[test]
fn whoever_retries_reads_that_data_is_compared_by_its_bytes() -> Result<()> {
    let document = Contract::get()?.document();
    for place in [
        "/info/description",
        "/components/parameters/IdempotencyKeyParameter/description",
        "/components/schemas/Data/description",
    ] {
        let text = document.pointer(place).and_then(Value::as_str).context(place)?;
        assert!(text.contains("compared byte for byte"), "{place}: {text}");
    }
    for file in ["README.md", "docs/integrate.md"] {
        assert!(read(file)?.contains("`data` is compared byte for byte"), "{file}");
    }
    Ok(())
}

/// The kinds of actors are examples, because a list of values would make one of them a Go constant `Client`.
#[test]
fn the_description_lists_the_kinds_of_actors() -> Result<()> {
    let stored = ('a'..='z').filter_map(|kind| format!("{kind}:x").parse::<Actor>().ok());
    let kinds = stored.map(|actor| serde_json::to_value(PublicActor::from(&actor)));
    let kinds: BTreeSet<String> = kinds.map(|kind| Ok(kind?["kind"].to_string())).collect::<Result<_>>()?;
    let listed = Contract::get()?.document().pointer("/components/schemas/Actor/properties/kind/examples");
    let listed = listed.and_then(Value::as_array).context("no examples")?;
    assert_eq!(listed.iter().map(Value::to_string).collect::<BTreeSet<_>>(), kinds);
    Ok(())
}
