//! The sender of webhooks, with the master secret and the clock for its signatures.

use std::sync::Arc;

use payments_boot::{Clock, WebhookMaster};

use crate::webhook::Sender;

/// The sender of webhooks, with the master secret and the clock for its signatures.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// The sender, which signs each webhook and sends it to its endpoint.
    pub sender: Arc<Sender>,
    /// The master secret, from which the signing secrets of all endpoints are derived.
    pub master: WebhookMaster,
    /// The clock that gives signatures their time, if it is not the bank's clock. A sandbox moves the
    /// bank's clock, and receivers compare a signature's time with their own clock.
    pub clock: Option<Clock>,
}

#[cfg(feature = "aws")]
impl Webhooks {
    /// Creates the sender of a deployed function. The master secret is read from Secrets Manager only
    /// when something is sent.
    ///
    /// # Errors
    /// An error if the configuration holds the secret itself and the secret is invalid, or if the
    /// machine's certificates cannot be read.
    pub async fn configured(config: &crate::config::Config) -> Result<Self, lambda_runtime::Error> {
        let master = WebhookMaster::configured(&config.webhook_secret).await?;
        Ok(Self { sender: Arc::new(Sender::internet()?), master, clock: None })
    }
}
