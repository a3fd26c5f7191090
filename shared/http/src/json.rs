//! JSON bodies: strict reading, with a problem that says what is wrong.

use serde::Deserialize;
use serde_json::error::Category;

use crate::echo::echoed;
use crate::problem::{Problem, ProblemKind};

/// The detail for a body, or an entry of one, that is not an object.
const NO_OBJECT: &str = "The JSON is not an object; send an object.";

/// Reads a whole body, a JSON object, as `T`. `T` itself rejects unknown and repeated fields
/// (`deny_unknown_fields`).
///
/// # Errors
/// [`ProblemKind::NotJson`], or [`ProblemKind::InvalidShape`], which names the field.
pub fn read<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| explain(error.inner(), Some(&error.path().to_string())))?;
    deserializer.end().map_err(|error| explain(&error, None))?;
    // Serde also accepts an array that lists an object's fields in order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Problem::new(ProblemKind::InvalidShape, NO_OBJECT));
    }
    Ok(value)
}

fn explain(error: &serde_json::Error, path: Option<&str>) -> Problem {
    match error.classify() {
        Category::Data => misshapen(error, path),
        Category::Eof if error.line() <= 1 && error.column() == 0 => {
            Problem::new(ProblemKind::NotJson, "The request has no body; send a JSON object.")
        }
        Category::Io | Category::Syntax | Category::Eof => {
            Problem::new(ProblemKind::NotJson, format!("The body is not valid JSON: {error}."))
        }
    }
}

/// A problem for JSON of the wrong shape, in the API's words instead of serde's.
fn misshapen(error: &serde_json::Error, path: Option<&str>) -> Problem {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    let problem = |detail: String| Problem::new(ProblemKind::InvalidShape, detail);
    if let Some(field) = unknown_field(message) {
        return problem(format!("The field \"{}\" is unknown; remove it.", echoed(field))).at(field);
    }
    if let Some(field) = message.strip_prefix("duplicate field `").and_then(|rest| rest.strip_suffix('`')) {
        return problem(format!("The field \"{}\" is repeated; send it once.", echoed(field))).at(field);
    }
    let Some(path) = path.filter(|path| named(path)) else { return problem(NO_OBJECT.to_owned()) };
    // The value can be a text that says "expected" too, but it comes first.
    let wanted = message.rsplit_once("expected ").map_or("another type", |(_, wanted)| wanted);
    let wanted = if wanted == "a sequence" { "a list" } else { wanted };
    problem(format!("The field \"{}\" has the wrong type; send {wanted}.", echoed(path))).at(path)
}

/// The name in serde's message about an unknown field. Only names of our own fields follow it, so it ends at the
/// last text that can end it.
fn unknown_field(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("unknown field `")?;
    rest.strip_suffix("`, there are no fields").or_else(|| rest.rsplit_once("`, expected ").map(|(name, _)| name))
}

/// Whether a path names a field: "." is the body itself, "?" an unnamed place, "[0]" an element of a body that
/// is a list.
fn named(path: &str) -> bool {
    !path.starts_with(['.', '?', '['])
}

/// The value of a required field.
///
/// # Errors
/// [`ProblemKind::InvalidShape`], which names the field.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Problem> {
    value.ok_or_else(|| {
        Problem::new(ProblemKind::InvalidShape, format!("The field \"{field}\" is missing or null; give it a value."))
            .at(field)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Body {
        #[expect(dead_code, reason = "only parsed")]
        some_text: Option<String>,
        #[expect(dead_code, reason = "only parsed")]
        some_list: Option<Vec<u8>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[test]
    fn a_problem_names_the_field_and_repeats_no_more() {
        let long = "n".repeat(10_000);
        let cut = format!("{}…", "n".repeat(61));
        let unknown = |name: &str| format!("The field \"{name}\" is unknown; remove it.");
        for (body, detail, field) in [
            (json!({ "extra": 1 }), unknown("extra"), "extra"),
            (json!({ "a`b` at line 1": 1 }), unknown("a`b` at line 1"), "a`b` at line 1"),
            (json!({ "x`, expected `y": 1 }), unknown("x`, expected `y"), "x`, expected `y"),
            (json!({ ".": 1 }), unknown("."), "."),
            (json!({ "": 1 }), unknown(""), ""),
            (json!({ long.as_str(): 1 }), unknown(&cut), cut.as_str()),
            (json!({ "someText": 1 }), "The field \"someText\" has the wrong type; send a string.".into(), "someText"),
            (
                json!({ "someList": format!("expected {long}") }),
                "The field \"someList\" has the wrong type; send a list.".into(),
                "someList",
            ),
        ] {
            let problem = read::<Body>(body.to_string().as_bytes()).map_err(|problem| json!(problem));
            let Err(problem) = problem else { panic!("{body} was read") };
            assert_eq!((problem["detail"].as_str(), problem["field"].as_str()), (Some(detail.as_str()), Some(field)));
        }
        let Err(problem) = read::<Empty>(br#"{"x`, expected `y":1}"#) else { panic!("a field was read") };
        assert_eq!(json!(problem)["field"], "x`, expected `y");
        let Err(problem) = read::<Body>(br#"{"someText":"a","someText":"b"}"#) else { panic!("a repetition was read") };
        assert_eq!(json!(problem)["detail"], "The field \"someText\" is repeated; send it once.");
    }
}
