//! The template, whose alarms a month evaluates.

use std::sync::OnceLock;

use anyhow::Result;
use payments_alarms::{Alarm, Resources};
use serde_json::Value;

const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Returns the template as JSON, in which `!Ref Name` is `{"!Ref": "Name"}`.
pub(crate) fn template() -> Result<&'static Value> {
    static READ: OnceLock<Value> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read);
    }
    let read: serde_yaml_ng::Value = serde_yaml_ng::from_str(TEMPLATE)?;
    let read = serde_json::to_value(read)?;
    Ok(READ.get_or_init(|| read))
}

/// Returns the logical ids of functions and mappings.
pub(crate) fn resources() -> Result<Resources> {
    Resources::of(template()?)
}

/// Returns the alarms of the template.
pub(crate) fn alarms() -> Result<Vec<Alarm>> {
    Alarm::all(template()?)
}
