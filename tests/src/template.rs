//! The template, as tests read it.

use anyhow::{Context as _, Result, anyhow};
use payments_boot::Lookup;
use payments_machine::Template;
use payments_machine::yaml::from_str;
use serde_json::Value;

/// Returns the template as JSON, in which `!Ref Name` is `{"!Ref": "Name"}`. `PAYMENTS_TEMPLATE` may name another
/// template, to try one with a fault.
pub fn template() -> Result<Value> {
    let (path, yaml) = written()?;
    from_str(&yaml).map_err(|error| anyhow!("{path}, {error}"))
}

/// Returns the same template as one machine reads it.
pub fn deployed() -> Result<Template> {
    let (path, yaml) = written()?;
    Template::read(&yaml).map_err(|error| anyhow!("{path}, {error}"))
}

fn written() -> Result<(String, String)> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
    let path = Lookup::environment().text("PAYMENTS_TEMPLATE").unwrap_or_else(|| ours.to_owned());
    let yaml = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    Ok((path, yaml))
}
