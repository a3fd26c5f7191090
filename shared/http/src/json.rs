//! JSON bodies: strict on the way in, and clear about what is wrong with them.

use serde::Deserialize;
use serde_json::error::Category;

use crate::{Kind, Problem};

/// What is said of anything that is no object, be it a body or an entry of one.
const NO_OBJECT: &str = "This is not a JSON object; send one.";

/// Reads a whole body, a JSON object, as `T`. Unknown and repeated fields are refused by `T`
/// itself (`deny_unknown_fields`).
///
/// # Errors
/// [`Kind::NotJson`] or [`Kind::InvalidShape`], which names the field.
pub fn read<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| explain(error.inner(), Some(&error.path().to_string())))?;
    deserializer.end().map_err(|error| explain(&error, None))?;
    // Serde would take an array for an object whose fields it lists in order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Problem::new(Kind::InvalidShape, NO_OBJECT));
    }
    Ok(value)
}

fn explain(error: &serde_json::Error, path: Option<&str>) -> Problem {
    match error.classify() {
        Category::Data => misshapen(error, path),
        Category::Eof if error.line() <= 1 && error.column() == 0 => {
            Problem::new(Kind::NotJson, "The request has no body; send a JSON object.")
        }
        Category::Io | Category::Syntax | Category::Eof => {
            Problem::new(Kind::NotJson, format!("The body is not JSON: {error}."))
        }
    }
}

/// JSON of another shape than the documented one, in the API's words where serde's are Rust's.
fn misshapen(error: &serde_json::Error, path: Option<&str>) -> Problem {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let quoted = said.split('`').nth(1);
    let refuse = |detail: String| Problem::new(Kind::InvalidShape, detail);
    if let (true, Some(field)) = (said.starts_with("unknown field"), quoted) {
        return refuse(format!("There is no field \"{field}\" here."))
            .at(path.filter(|path| named(path)).unwrap_or(field));
    }
    if let (true, Some(field)) = (said.starts_with("duplicate field"), quoted) {
        return refuse(format!("The field \"{field}\" is given twice.")).at(field);
    }
    match path.filter(|path| named(path)) {
        Some(path) => {
            let wanted = said.split("expected ").nth(1).unwrap_or("another");
            let wanted = if wanted == "a sequence" { "a list" } else { wanted };
            refuse(format!("The field \"{path}\" has the wrong type; it has to be {wanted}.")).at(path)
        }
        None => refuse(NO_OBJECT.to_owned()),
    }
}

/// Whether a path names a field: "." is the body itself, "?" a place without a name, "[0]" an
/// element of a body that is a list.
fn named(path: &str) -> bool {
    !path.starts_with(['.', '?', '['])
}

/// The value of a field that has to be there.
///
/// # Errors
/// [`Kind::InvalidShape`], which names the field.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Problem> {
    value
        .ok_or_else(|| Problem::new(Kind::InvalidShape, format!("The field \"{field}\" is missing or null.")).at(field))
}
