//! The master secret of webhooks: given, or read from Secrets Manager when it is first needed.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use payments_model::webhook::MasterSecret;
use payments_model::{Outage, OutageKind};
use tokio::sync::OnceCell;

/// The master secret of webhooks. Each sandbox reads it once, so a changed secret needs a new deployment.
#[derive(Clone)]
pub struct WebhookMaster(Arc<Source>);

/// The prefix of a variable that holds the secret itself: for `sam local`, which has no Secrets Manager.
#[cfg(feature = "aws")]
const GIVEN: &str = "given:";

struct Source {
    read: Box<Read>,
    known: OnceCell<MasterSecret>,
}

type Read = dyn Fn() -> BoxFuture<'static, Result<MasterSecret, WebhookMasterError>> + Send + Sync;

/// The reason why the master secret is unknown.
#[derive(Debug, thiserror::Error)]
pub enum WebhookMasterError {
    /// Secrets Manager rejected the call or did not answer.
    #[error("Secrets Manager did not return the master secret of webhooks")]
    NotRead(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The text is not a valid master secret.
    #[error("the master secret of webhooks cannot be used")]
    Unusable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Outage for WebhookMasterError {
    fn kind(&self) -> OutageKind {
        match self {
            Self::NotRead(_) => OutageKind::Unavailable,
            Self::Unusable(_) => OutageKind::Broken,
        }
    }
}

impl WebhookMaster {
    /// A secret that is given: on one machine, and in tests.
    #[must_use]
    pub fn given(secret: MasterSecret) -> Self {
        Self::read_by(move || {
            let secret = secret.clone();
            async move { Ok(secret) }.boxed()
        })
    }

    /// The secret that `read` returns. Nothing is read yet.
    pub fn read_by(
        read: impl Fn() -> BoxFuture<'static, Result<MasterSecret, WebhookMasterError>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Source { read: Box::new(read), known: OnceCell::new() }))
    }

    /// The secret that a variable names: the id in Secrets Manager, which the function's own role
    /// reads. Nothing is read yet. A variable with `given:` has the secret itself after it.
    ///
    /// # Errors
    /// [`WebhookMasterError`] if the secret itself is invalid.
    #[cfg(feature = "aws")]
    pub async fn configured(id: &str) -> Result<Self, WebhookMasterError> {
        if let Some(secret) = id.strip_prefix(GIVEN) {
            let secret = secret.parse().map_err(|error| WebhookMasterError::Unusable(Box::new(error)))?;
            return Ok(Self::given(secret));
        }
        let (client, id) = (crate::aws::secrets_manager().await, id.to_owned());
        Ok(Self::read_by(move || {
            let call = client.get_secret_value().secret_id(&id);
            async move {
                let value = call.send().await.map_err(|error| WebhookMasterError::NotRead(error.into()))?;
                let text = value.secret_string().unwrap_or_default();
                text.parse().map_err(|error| WebhookMasterError::Unusable(Box::new(error)))
            }
            .boxed()
        }))
    }

    /// Returns the secret, which is read at the first call. A failed read is retried at the next
    /// call: the function's other work continues without it.
    ///
    /// # Errors
    /// [`WebhookMasterError`] if it cannot be read or used.
    pub async fn get_secret(&self) -> Result<MasterSecret, WebhookMasterError> {
        self.0.known.get_or_try_init(|| (self.0.read)()).await.cloned()
    }
}

impl fmt::Debug for WebhookMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookMaster(hidden)")
    }
}
