//! Webhook endpoints: the hosts to which the bank sends its events, and the state of the deliveries.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use crate::bank::{Bank, segment};
use crate::errors::Error;
use crate::model::Actor;

/// An operator's settings for an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct EndpointOrder {
    /// The URL to which messages are sent: `https`, the DNS name of a public host, and port 443.
    pub url: String,
    /// A description for people, at most 200 characters on one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Of the events of status changes, only those of these types; empty for all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub types: BTreeSet<String>,
    /// Of the events that name an account, only those in which one of these pays or is paid; empty for all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub accounts: BTreeSet<String>,
    /// The start of a new endpoint: a cursor of the log. Without one it begins with the next event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether nothing is sent. The endpoint keeps its place, and events expire after 35 days.
    #[serde(rename = "enabled", serialize_with = "enabled")]
    pub disabled: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn enabled<S: serde::Serializer>(disabled: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(!disabled)
}

/// An endpoint, and the state of its deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Endpoint {
    /// Its id.
    pub id: String,
    /// The URL to which messages are sent.
    pub url: String,
    /// The description for people.
    #[serde(default)]
    pub description: String,
    /// The types of events that are sent; empty for all.
    #[serde(default)]
    pub types: BTreeSet<String>,
    /// The accounts whose events are sent; empty for all.
    #[serde(default)]
    pub accounts: BTreeSet<String>,
    /// The time at which it was created.
    pub created_at: DateTime<Utc>,
    /// The time of its last change.
    pub updated_at: DateTime<Utc>,
    /// The generation of the secret that signs.
    pub secret_generation: u32,
    /// The time until which the secret before also signs.
    pub previous_secret_until: Option<DateTime<Utc>>,
    /// `enabled`, `failing` or `disabled`.
    pub status: String,
    /// The reason why nothing is sent: `operator`, `gone` or `failing`.
    pub disabled_by: Option<String>,
    /// The time since which nothing is sent.
    pub disabled_at: Option<DateTime<Utc>>,
    /// The place in the log up to which everything is delivered.
    pub cursor: String,
    /// The number of parts of the log after the cursor, of up to a thousand events each.
    pub segments_behind: u64,
    /// The time at which a test was asked for that is not sent yet.
    pub test_asked_at: Option<DateTime<Utc>>,
    /// The reason why the events after the cursor are not delivered.
    pub failing: Option<Failing>,
    /// The last error.
    pub last_error: Option<DeliveryError>,
    /// The last deliveries, the newest first.
    pub deliveries: Vec<Delivery>,
    /// The last events that were skipped, the newest first.
    #[serde(default)]
    pub skipped: Vec<SkippedEvent>,
    /// Events that the log no longer had when it was their turn.
    pub missed: Option<MissedEvents>,
}

/// The reason why events are not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failing {
    /// The time since which nothing was accepted.
    pub since: DateTime<Utc>,
    /// The tries since then.
    pub failures: u32,
    /// The time of the next one.
    pub next_try_at: DateTime<Utc>,
    /// The event that was not accepted.
    pub event_id: Option<String>,
}

/// An error of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct DeliveryError {
    /// The time of the error.
    pub at: DateTime<Utc>,
    /// `refused` or `gone`, or the missing part of the connection.
    pub kind: String,
    /// The HTTP status, if the receiver answered.
    pub status: Option<u16>,
}

/// Messages that were sent at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delivery {
    /// The time at which they were sent.
    pub at: DateTime<Utc>,
    /// The id of the first message, or of the first that was not accepted.
    pub message_id: String,
    /// The number of messages.
    pub bodies: u32,
    /// The number of their events. A test has none.
    pub events: u32,
    /// `accepted`, or the kind of the error.
    pub outcome: String,
    /// The HTTP status, if the receiver answered.
    pub status: Option<u16>,
}

/// An event that an operator skipped.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkippedEvent {
    /// The time at which it was skipped.
    pub at: DateTime<Utc>,
    /// Its id.
    pub event_id: String,
    /// The actor that asked for it.
    pub by: Actor,
}

/// A part of the log that had expired.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissedEvents {
    /// The time at which that was found.
    pub at: DateTime<Utc>,
    /// The cursor before them.
    pub cursor: String,
    /// The cursor after them.
    pub end_cursor: String,
}

/// A secret that signs messages. Its text is not shown in logs.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct EndpointSecret {
    /// Its generation.
    pub generation: u32,
    /// The secret, as libraries for Standard Webhooks take it.
    pub secret: String,
    /// The time until which it signs; absent for the newest.
    pub until: Option<DateTime<Utc>>,
}

impl std::fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointSecret").field("generation", &self.generation).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Endpoints {
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Secrets {
    secrets: Vec<EndpointSecret>,
}

#[derive(Serialize)]
struct Replay<'r> {
    cursor: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Skip<'s> {
    event_id: &'s str,
}

#[derive(Serialize)]
struct Rotation {
    generation: u32,
}

/// The response to the deletion of an endpoint, which may be its id alone.
#[derive(Deserialize)]
struct Deleted {}

impl Bank {
    /// Returns all webhook endpoints, at most 20, in the order of their ids.
    ///
    /// # Errors
    /// If the bank sends no webhooks, or does not respond.
    pub async fn webhook_endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        Ok(self.read::<Endpoints>("/webhook-endpoints").await?.endpoints)
    }

    /// Returns an endpoint.
    ///
    /// # Errors
    /// If there is no endpoint with this id, or the bank does not respond.
    pub async fn webhook_endpoint(&self, id: &str) -> Result<Endpoint, Error> {
        self.read(&endpoint_path(id, "")?).await
    }

    /// Creates an endpoint, or changes it: `cursor` counts for a new one alone. Returns it, and whether it is new. Repeating it is safe.
    ///
    /// # Errors
    /// If the bank rejects the order, or does not respond.
    pub async fn put_webhook_endpoint(&self, id: &str, order: &EndpointOrder) -> Result<(Endpoint, bool), Error> {
        let (endpoint, response) = self.write(Method::PUT, &endpoint_path(id, "")?, None, Some(order)).await?;
        Ok((endpoint, response.status() == StatusCode::CREATED))
    }

    /// Deletes an endpoint.
    ///
    /// # Errors
    /// If there is no endpoint with this id, as after a lost response, or the bank does not
    /// respond.
    pub async fn delete_webhook_endpoint(&self, id: &str) -> Result<(), Error> {
        self.write::<Deleted>(Method::DELETE, &endpoint_path(id, "")?, None, None::<&()>).await?;
        Ok(())
    }

    /// Returns the secrets that sign an endpoint's messages now, the newest first.
    ///
    /// # Errors
    /// If there is no such endpoint, or the bank does not respond.
    pub async fn webhook_secrets(&self, id: &str) -> Result<Vec<EndpointSecret>, Error> {
        Ok(self.read::<Secrets>(&endpoint_path(id, "/secret")?).await?.secrets)
    }

    /// Asks for a test: a message with one event of the type `webhook.test`, within a minute.
    ///
    /// # Errors
    /// If there is no such endpoint, or the bank does not respond.
    pub async fn test_webhook_endpoint(&self, id: &str) -> Result<Endpoint, Error> {
        self.operate(id, "/test", None::<&()>).await
    }

    /// Moves an endpoint to a cursor of the log: the events after it are delivered again.
    ///
    /// # Errors
    /// If there is no such endpoint, the log no longer has the place, or the bank does not respond.
    pub async fn replay_webhook_events(&self, id: &str, cursor: &str) -> Result<Endpoint, Error> {
        self.operate(id, "/replay", Some(&Replay { cursor })).await
    }

    /// Skips the event that an endpoint does not accept. Repeating it is safe.
    ///
    /// # Errors
    /// If there is no such endpoint, it does not wait with this event, or the bank does not
    /// respond.
    pub async fn skip_webhook_event(&self, id: &str, event_id: &str) -> Result<Endpoint, Error> {
        self.operate(id, "/skip", Some(&Skip { event_id })).await
    }

    /// Begins a new secret, of the next generation. The one before also signs for a day. Repeating it is safe.
    ///
    /// # Errors
    /// If there is no such endpoint, `generation` is not the next one, or the bank does not
    /// respond.
    pub async fn rotate_webhook_secret(&self, id: &str, generation: u32) -> Result<Endpoint, Error> {
        self.operate(id, "/rotate", Some(&Rotation { generation })).await
    }

    async fn operate(&self, id: &str, what: &str, body: Option<&impl Serialize>) -> Result<Endpoint, Error> {
        Ok(self.write(Method::POST, &endpoint_path(id, what)?, None, body).await?.0)
    }
}

fn endpoint_path(id: &str, what: &str) -> Result<String, Error> {
    Ok(format!("/webhook-endpoints/{}{what}", segment(id)?))
}
