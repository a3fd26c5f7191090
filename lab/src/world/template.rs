//! The template, whose alarms a month evaluates.

use std::sync::OnceLock;

use anyhow::Result;
use payments_alarms::{Alarm, Resources};
use serde_json::Value;

/// Returns the template as JSON, in which `!Ref Name` is `{"!Ref": "Name"}`.
pub(crate) fn template() -> Result<&'static Value> {
    static READ: OnceLock<Value> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read);
    }
    let read = payments_machine::yaml::from_str(payments_machine::template::OURS)?;
    Ok(READ.get_or_init(|| read))
}

/// Returns the logical ids of functions and mappings.
pub(crate) fn resources() -> Result<Resources> {
    Resources::parse(template()?)
}

/// Returns the alarms of the template.
pub(crate) fn alarms() -> Result<Vec<Alarm>> {
    Alarm::all(template()?)
}
