//! A server of HTTP on the loopback interface: the HTTP API has one, and the embedded engine.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The pause after a connection that could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// The longest times that a server waits for its clients. Without a limit it waits for as long as they take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The longest that a client may take to send a request's head. A connection that is idle for as long is closed.
    pub head: Option<Duration>,
    /// The longest that a connection may last once the server stops.
    pub end: Option<Duration>,
}

impl Server {
    /// Starts a server on a listener: see [`listen`].
    pub fn start(listener: TcpListener, router: Router, limits: Limits) -> Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        Ok(Self { address, stop, serving: tokio::spawn(serve(listener, router, limits, stopped)) })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the server after the requests that are under way.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.serving.await?)
    }
}

/// Listens on a port of the loopback interface (0 is any free one). `flag` is what chooses the port.
pub async fn listen(port: u16, flag: &str) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await;
    listener
        .with_context(|| format!("cannot listen on {address}; choose another port with {flag}, or 0 for any free one"))
}

/// Serves connections until `stopped`, then waits for the requests that are under way.
async fn serve(listener: TcpListener, router: Router, limits: Limits, mut stopped: oneshot::Receiver<()>) {
    let (stop, stopping) = watch::channel(());
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(serve_one(stream, router.clone(), limits, stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop((listener, stopping));
    stop.send_replace(());
    // Each connection has a receiver.
    stop.closed().await;
}

/// Serves one connection. When the server stops, it ends after the request that is under way.
async fn serve_one(stream: TcpStream, router: Router, limits: Limits, mut stopping: watch::Receiver<()>) {
    let mut http = http1::Builder::new();
    // A client may close its side once it has sent its request.
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).half_close(true);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // A connection that fails is its client's affair.
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            match limits.end {
                Some(end) => drop(timeout(end, connection).await),
                None => drop(connection.await),
            }
        }
    }
}
