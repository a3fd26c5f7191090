//! JSON bodies: strict reading, with a problem that says what is wrong.

use serde::Deserialize;
use serde_json::error::Category;

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
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let quoted = message.split('`').nth(1);
    let path = path.filter(|path| named(path));
    let problem = |detail: String| Problem::new(ProblemKind::InvalidShape, detail);
    match (quoted, path) {
        (Some(field), path) if message.starts_with("unknown field") => {
            problem(format!("The field \"{field}\" is unknown; remove it.")).at(path.unwrap_or(field))
        }
        (Some(field), _) if message.starts_with("duplicate field") => {
            problem(format!("The field \"{field}\" is repeated; send it once.")).at(field)
        }
        (_, Some(path)) => {
            let wanted = message.split("expected ").nth(1).unwrap_or("another type");
            let wanted = if wanted == "a sequence" { "a list" } else { wanted };
            problem(format!("The field \"{path}\" has the wrong type; send {wanted}.")).at(path)
        }
        (_, None) => problem(NO_OBJECT.to_owned()),
    }
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
