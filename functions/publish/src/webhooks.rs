//! The sender of webhooks and its secrets.

use std::sync::Arc;

use payments_boot::{Clock, WebhookMaster};

use crate::webhook::Sender;

/// The sender of webhooks and its secrets.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// The sender.
    pub sender: Arc<Sender>,
    /// The master secret, from which the secrets of endpoints are derived.
    pub master: WebhookMaster,
    /// The clock of the receivers, if it is not the bank's: a sandbox moves the bank's clock.
    pub clock: Option<Clock>,
}

#[cfg(feature = "aws")]
impl Webhooks {
    /// The sender of a deployed function, and the master secret, which is read when something is sent.
    ///
    /// # Errors
    /// The machine's certificates cannot be read.
    pub async fn configured(config: &crate::config::Config) -> Result<Self, lambda_runtime::Error> {
        let master = WebhookMaster::configured(&config.webhook_secret).await?;
        Ok(Self { sender: Arc::new(Sender::internet()?), master, clock: None })
    }
}
