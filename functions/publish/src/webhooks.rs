//! What signs webhooks and sends them.

use std::sync::Arc;

use payments_boot::{Clock, WebhookMaster};

use crate::webhook::Sender;

/// The sender of webhooks, with what signs them.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// What sends them.
    pub sender: Arc<Sender>,
    /// What signs them.
    pub master: WebhookMaster,
    /// The clock that receivers go by, if it is not the bank's: a sandbox moves that.
    pub clock: Option<Clock>,
}

#[cfg(feature = "aws")]
impl Webhooks {
    /// The sender of a deployed function, and the master secret, which is read when something is sent.
    ///
    /// # Errors
    /// When the machine's certificates cannot be read.
    pub async fn configured(config: &crate::config::Config) -> Result<Self, lambda_runtime::Error> {
        let master = WebhookMaster::configured(&config.webhook_secret).await?;
        Ok(Self { sender: Arc::new(Sender::internet()?), master, clock: None })
    }
}
