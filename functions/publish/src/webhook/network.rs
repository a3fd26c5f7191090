//! The parts of a connection: name resolution, TCP, and encryption.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

/// The bytes of a connection, in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The network of a [`Sender`](super::Sender). Every resolved address is checked, and no other is connected to.
#[async_trait]
pub trait Network: Debug + Send + Sync {
    /// Returns the addresses of a host's name.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;
}

/// Encrypts connections. `cargo local`, which sends to its own machine alone, is built without encryption.
#[async_trait]
pub trait Encryption: Debug + Send + Sync {
    /// Encrypts a connection to a host, whose certificate must have this name.
    async fn encrypt(&self, host: &str, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>>;
}

/// The machine's network. It reads no proxy variables.
#[derive(Debug)]
pub(super) struct Machine;

#[async_trait]
impl Network for Machine {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // The call needs a port, which is not used.
        Ok(lookup_host((host, 443)).await?.map(|found| found.ip()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        // A request is written at once, so there is nothing to wait for.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
