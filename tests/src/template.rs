//! The template, as tests read it.

use anyhow::{Context as _, Result, bail};
use payments_boot::Lookup;
use serde_json::Value;

/// Returns the template as JSON, in which `!Ref Name` is `{"!Ref": "Name"}`. `PAYMENTS_TEMPLATE` may name another
/// template, to try one with a fault.
pub fn template() -> Result<Value> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
    let path = Lookup::environment().text("PAYMENTS_TEMPLATE").unwrap_or_else(|| ours.to_owned());
    let yaml = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    template_of(&yaml).with_context(|| path)
}

/// Returns the template of a text as JSON.
pub fn template_of(yaml: &str) -> Result<Value> {
    let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(yaml)?;
    Ok(serde_json::to_value(yaml)?)
}

/// Lets a package read its configuration.
pub fn read_configuration(package: &str, lookup: &Lookup<'_>) -> Result<()> {
    match package {
        "ingest" => ingest::Config::read(lookup).map(drop),
        "query-account" => query_account::Config::read(lookup).map(drop),
        "query-due" => query_due::Config::read(lookup).map(drop),
        "daily-due-sweeper" => daily_due_sweeper::Config::read(lookup).map(drop),
        "dispatch" => dispatch::Config::read(lookup).map(drop),
        "settle" => settle::Config::read(lookup).map(drop),
        "stream-aggregator" => stream_aggregator::Config::read(lookup).map(drop),
        "recount" => recount::Config::read(lookup).map(drop),
        "redate" => redate::Config::read(lookup).map(drop),
        "archive" => archive::Config::read(lookup).map(drop),
        "webhooks" => webhooks::Config::read(lookup).map(drop),
        "publish" => publish::Config::read(lookup).map(drop),
        "console" => console::Config::read(lookup).map(drop),
        "report" => report::Config::read(lookup).map(drop),
        other => bail!("which configuration does {other} read?"),
    }?;
    Ok(())
}
