//! JSON bodies: strict on the way in, and clear about what is wrong with them.

use serde::Deserialize;
use serde_json::error::Category;

use crate::{Kind, Problem};

/// Reads a whole body as `T`. Unknown and repeated fields are refused by `T` itself
/// (`deny_unknown_fields`).
///
/// # Errors
/// [`Kind::NotJson`] or [`Kind::InvalidShape`], which names the field.
pub fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let problem = explain(error.inner());
        // "." is the body itself, "?" a place without a name.
        if matches!(path.as_str(), "." | "?") { problem } else { problem.at(path) }
    })?;
    deserializer.end().map_err(|error| explain(&error))?;
    Ok(value)
}

fn explain(error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Data => {
            Problem::new(Kind::InvalidShape, format!("The body does not have the documented shape: {error}."))
        }
        Category::Eof if error.line() <= 1 && error.column() == 0 => {
            Problem::new(Kind::NotJson, "The request has no body; send a JSON object.")
        }
        Category::Io | Category::Syntax | Category::Eof => {
            Problem::new(Kind::NotJson, format!("The body is not JSON: {error}."))
        }
    }
}

/// The value of a field that has to be there.
///
/// # Errors
/// [`Kind::InvalidShape`], which names the field.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Problem> {
    value
        .ok_or_else(|| Problem::new(Kind::InvalidShape, format!("The field \"{field}\" is missing or null.")).at(field))
}
