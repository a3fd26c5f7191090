//! Amazon EventBridge as an event bus.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::describe_event_bus::DescribeEventBusError;
use aws_sdk_eventbridge::primitives::{DateTime, DateTimeFormat};
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};

use payments_boot::event_bridge;

use crate::bus::{BUS_SOURCE, BusError, BusEvent, EventBus, Put};
use crate::config::Config;

/// An event bus of EventBridge.
#[derive(Debug, Clone)]
pub struct EventBridge {
    client: Client,
    bus: String,
}

impl EventBridge {
    /// The bus with this name.
    #[must_use]
    pub fn new(client: Client, bus: String) -> Self {
        Self { client, bus }
    }

    /// The bus of a deployed function, if its configuration names one.
    pub async fn configured(config: &Config) -> Option<Arc<dyn EventBus>> {
        let bus = config.event_bus.clone()?;
        Some(Arc::new(Self::new(event_bridge().await, bus)))
    }

    fn entry(&self, event: &BusEvent) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(BUS_SOURCE)
            .detail_type(&event.kind)
            .detail(&event.detail)
            // Without a time, EventBridge gives the event the time of the call.
            .set_time(DateTime::from_str(&event.at, DateTimeFormat::DateTime).ok())
            .build()
    }
}

#[async_trait]
impl EventBus for EventBridge {
    fn name(&self) -> &str {
        &self.bus
    }

    async fn check(&self) -> Result<(), BusError> {
        match self.client.describe_event_bus().name(&self.bus).send().await {
            Ok(_) => Ok(()),
            Err(error)
                if error.as_service_error().is_some_and(DescribeEventBusError::is_resource_not_found_exception) =>
            {
                Err(BusError::Missing(self.bus.clone()))
            }
            Err(error) => Err(BusError::Call(error.into())),
        }
    }

    async fn put(&self, events: Vec<BusEvent>) -> Put {
        let entries = events.iter().map(|event| self.entry(event)).collect();
        let answer = match self.client.put_events().set_entries(Some(entries)).send().await {
            Ok(answer) => answer,
            Err(error) => return Put { left: events, why: Some(BusError::Call(error.into())), never: Vec::new() },
        };
        // A call succeeds even if some of its events were not accepted. The answer has a result for each
        // event, in the order of the events.
        if answer.failed_entry_count() == 0 && answer.entries().len() == events.len() {
            return Put::default();
        }
        let mut put = Put::default();
        for (place, event) in events.into_iter().enumerate() {
            let result = answer.entries().get(place);
            match result.map(|result| (result.error_code(), result.event_id())) {
                Some((Some(code), _)) => {
                    put.reject(event, code, result.and_then(PutEventsResultEntry::error_message).unwrap_or_default());
                }
                // EventBridge gave the event an id.
                Some((None, Some(_))) => {}
                Some((None, None)) | None => {
                    let why = BusError::Unmentioned(event.id.clone());
                    put.leave(event, why);
                }
            }
        }
        put
    }
}

#[cfg(test)]
mod tests;
