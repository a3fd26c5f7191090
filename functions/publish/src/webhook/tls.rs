//! Encryption by rustls, which trusts the machine's certificates.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};
use tokio_rustls::TlsConnector;

use super::network::{Encryption, Stream};

/// TLS 1.2 and 1.3, for HTTP/1.1.
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the machine's certificates.
    ///
    /// # Errors
    /// The machine's certificates cannot be read.
    pub(super) fn with_system_roots() -> io::Result<Self> {
        Ok(Self::new(config()?.with_native_roots()?.with_no_client_auth()))
    }

    pub(super) fn new(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(TlsConnector::from(Arc::new(config)))
    }
}

/// Begins a configuration.
pub(super) fn config() -> io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)
}

#[async_trait]
impl Encryption for Tls {
    async fn encrypt(&self, host: &str, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.0.connect(name, stream).await?))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
