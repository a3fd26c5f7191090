//! The template's event source mappings as the settings of `machine/delivery`.

use anyhow::{Context as _, Result, bail};
use chrono::TimeDelta;
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{Filter, StreamSettings};
use payments_queue::Queue;

use crate::template::{DeployedFunction, Destination, QueueSource, ResponseType, StreamSource, Template};

/// Returns the template's mapping from a stream to a function, which reports discarded batches to `failures`.
///
/// # Errors
/// If the template has no such mapping, or reports to no queue although there is one, or the other way round.
pub fn stream_settings(package: &str, failures: Option<&Queue>) -> Result<StreamSettings> {
    let function = Template::ours()?.function(package)?;
    let [source] = function.streams.as_slice() else { bail!("{package} does not read one stream") };
    if source.destination.is_some() != failures.is_some() {
        bail!("{package} reports discarded batches to a queue in the template, or here, but not in both");
    }
    Ok(StreamSettings {
        batch_size: source.batch_size,
        maximum_batching_window: source.window,
        filter: Some(Filter::parse(&source.filters.filters[0].pattern)?),
        maximum_retry_attempts: u32::try_from(source.maximum_retry_attempts).ok(),
        bisect_batch_on_function_error: source.bisect_batch_on_function_error,
        report_batch_item_failures: source.responses.contains(&ResponseType::ReportBatchItemFailures),
        tumbling_window: source.tumbling_window.map(TimeDelta::seconds),
        on_failure: failures.cloned(),
        ..StreamSettings::of(package)
    })
}

/// Returns the template's mapping from a queue to a function.
///
/// # Errors
/// If the template has no such mapping.
pub fn queue_settings(package: &str) -> Result<QueueMappingSettings> {
    let source =
        queue_source(Template::ours()?.function(package)?).with_context(|| format!("{package} reads no queue"))?;
    Ok(QueueMappingSettings {
        batch_size: source.batch_size,
        report_batch_item_failures: source.responses.contains(&ResponseType::ReportBatchItemFailures),
    })
}

/// Returns the stream that a function reads while its mapping is enabled.
pub(super) fn stream_source(function: &DeployedFunction) -> Option<&StreamSource> {
    function.streams.iter().find(|source| source.enabled)
}

/// Returns the queue that a function reads while its mapping is enabled.
pub(super) fn queue_source(function: &DeployedFunction) -> Option<&QueueSource> {
    function.queues.iter().find(|source| source.enabled)
}

impl StreamSource {
    /// Returns the queue of discarded batches, as an attribute.
    pub(super) fn failures(&self) -> Option<&str> {
        let destination = self.destination.as_ref()?;
        let Destination::Queue(queue) = &destination.on_failure;
        Some(queue)
    }
}
