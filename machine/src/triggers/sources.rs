//! The template's event source mappings, with the queues of one machine.

use anyhow::{Context as _, Result, bail};
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{Destination, StreamSettings};
use payments_queue::Queue;

use crate::template::{DeployedFunction, Template};

/// Returns the template's mapping from a stream to a function, which reports discarded batches to `failures`.
///
/// # Errors
/// If the template has no such mapping, or reports to no queue although there is one, or the other way round.
pub fn stream_settings(package: &str, failures: Option<&Queue>) -> Result<StreamSettings> {
    let function = Template::ours()?.function(package)?;
    let [source] = function.streams.as_slice() else { bail!("{package} does not read one stream") };
    if source.destination_config.is_some() != failures.is_some() {
        bail!("{package} reports discarded batches to a queue in the template, or here, but not in both");
    }
    Ok(StreamSettings { on_failure: failures.cloned(), ..source.clone() })
}

/// Returns the template's mapping from a queue to a function.
///
/// # Errors
/// If the template has no such mapping.
pub fn queue_settings(package: &str) -> Result<QueueMappingSettings> {
    queue_source(Template::ours()?.function(package)?).cloned().with_context(|| format!("{package} reads no queue"))
}

/// Returns the stream that a function reads while its mapping is enabled.
pub(super) fn stream_source(function: &DeployedFunction) -> Option<&StreamSettings> {
    function.streams.iter().find(|source| source.enabled)
}

/// Returns the queue that a function reads while its mapping is enabled.
pub(super) fn queue_source(function: &DeployedFunction) -> Option<&QueueMappingSettings> {
    function.queues.iter().find(|source| source.enabled)
}

/// Returns the queue of a mapping's discarded batches, as an attribute.
pub(super) fn failures(settings: &StreamSettings) -> Option<&str> {
    let Destination::Queue(queue) = &settings.destination_config.as_ref()?.on_failure;
    Some(queue)
}
