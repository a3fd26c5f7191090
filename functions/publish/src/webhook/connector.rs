//! Connections to endpoints: a name is resolved once, and only addresses that were checked then are connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use payments_model::webhook::{EndpointUrl, is_global};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tower_service::Service;

use super::network::{Encryption, Network, Stream};

/// The time limit for a name's resolution and the connection to one of its addresses: a lost packet
/// of each is sent again after about a second, and round trips take up to half a second.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most addresses of a name that are tried. They share the time that is left.
const MAX_ADDRESSES: usize = 4;

/// The hosts that a connector connects to.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// Global addresses of names, at port 443, encrypted.
    Internet(Arc<dyn Encryption>),
    /// This machine, without encryption.
    Loopback,
}

/// The reason for a missing connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the URL is not permitted")]
    NotPermitted,
    #[error("no address is global")]
    NoGlobalAddress,
    #[error("the connection was not made in time")]
    TimedOut,
    #[error("the name cannot be resolved")]
    Dns(#[source] io::Error),
    #[error("no address accepts a connection")]
    Connect(#[source] io::Error),
    #[error("the connection cannot be encrypted")]
    Tls(#[source] io::Error),
}

/// Makes connections. Unlike hyper-util's connector, it resolves and checks every host that a URL names.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    network: Arc<dyn Network>,
    reach: Reach,
}

impl Connector {
    pub(super) const fn new(network: Arc<dyn Network>, reach: Reach) -> Self {
        Self { network, reach }
    }

    /// Connects to the host of a URL. The URL is checked again here, whatever its origin: HTTP
    /// clients parse URLs in other ways, and take literals for addresses that need no resolution.
    async fn connect(self, uri: Uri) -> Result<TokioIo<Socket>, ConnectError> {
        let stream = match &self.reach {
            Reach::Loopback => {
                let address = loopback_address(&uri).ok_or(ConnectError::NotPermitted)?;
                in_time(self.connect_to_one_of(&[address])).await?
            }
            Reach::Internet(encryption) => {
                let url: EndpointUrl = uri.to_string().parse().map_err(|_| ConnectError::NotPermitted)?;
                let connected = async { self.connect_to_one_of(&self.global_addresses(url.host()).await?).await };
                let stream = in_time(connected).await?;
                encryption.encrypt(url.host(), stream).await.map_err(ConnectError::Tls)?
            }
        };
        Ok(TokioIo::new(Socket(stream)))
    }

    /// Resolves a name, and returns its global addresses. IPv4 comes first: Lambda has no IPv6 outside of a VPC.
    async fn global_addresses(&self, host: &str) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut found = self.network.resolve(host).await.map_err(ConnectError::Dns)?;
        if found.is_empty() {
            return Err(ConnectError::Dns(io::ErrorKind::NotFound.into()));
        }
        found.retain(|&address| is_global(address));
        found.sort_by_key(IpAddr::is_ipv6);
        found.truncate(MAX_ADDRESSES);
        if found.is_empty() {
            return Err(ConnectError::NoGlobalAddress);
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, 443)).collect())
    }

    /// Connects to the first of these addresses that accepts.
    async fn connect_to_one_of(&self, addresses: &[SocketAddr]) -> Result<Box<dyn Stream>, ConnectError> {
        let share = CONNECT_TIMEOUT / u32::try_from(addresses.len()).unwrap_or(1).max(1);
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for &address in addresses {
            match timeout(share, self.network.connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        if last.kind() == io::ErrorKind::TimedOut {
            Err(ConnectError::TimedOut)
        } else {
            Err(ConnectError::Connect(last))
        }
    }
}

/// Waits for a connection until its time limit.
async fn in_time<T>(connected: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    timeout(CONNECT_TIMEOUT, connected).await.map_err(|_| ConnectError::TimedOut)?
}

/// The address of a URL of this machine; `None` for other URLs.
fn loopback_address(uri: &Uri) -> Option<SocketAddr> {
    let is_loopback = uri.scheme() == Some(&Scheme::HTTP) && uri.host() == Some("127.0.0.1");
    Some(SocketAddr::from((Ipv4Addr::LOCALHOST, uri.port_u16().filter(|_| is_loopback)?)))
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection, as hyper-util takes it.
pub(super) struct Socket(Box<dyn Stream>);

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
