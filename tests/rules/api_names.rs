//! Names of the API: one word for one thing in `openapi.yaml`.

use anyhow::Result;
use payments_tests::Contract;
use serde_json::Value;

/// The schemas of the places at which a client reads on.
const CURSORS: [&str; 2] = ["#/components/schemas/LogCursor", "#/components/schemas/NextCursor"];

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
    let refers = |schema: &Value| schema["$ref"].as_str().is_some_and(|reference| CURSORS.contains(&reference));
    refers(schema) || schema["anyOf"].as_array().into_iter().flatten().any(refers)
}
