//! A host of the tests: the addresses of its name, and the server at each address.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::webhook::network::{Network, Stream};

/// An address that is global.
pub(super) const GLOBAL: &str = "93.184.216.34";

/// The reply of a host to a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Writes this, and keeps the connection.
    Text(String),
    /// Writes this, and ends the connection.
    Last(String),
    /// Writes this, and nothing after it.
    Stalled(String),
}

/// A host, and a record of what it saw.
#[derive(Clone, Default)]
pub(super) struct Site {
    /// The results of resolving its name, one after the other. The last one stays.
    names: Arc<Mutex<VecDeque<io::Result<Vec<IpAddr>>>>>,
    /// Its replies, one after the other. The last one stays.
    replies: Arc<Mutex<VecDeque<Reply>>>,
    /// Whether its name server does not answer.
    is_nameless: bool,
    /// Addresses that do not answer, and those that reject.
    silent: Vec<SocketAddr>,
    rejecting: Vec<SocketAddr>,
    /// The target of connections instead, if there is a real server.
    server: Option<SocketAddr>,
    tls: Option<TlsAcceptor>,
    seen: Arc<Mutex<Seen>>,
}

/// A record of what a host saw.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    pub(super) resolved: Vec<String>,
    pub(super) connected: Vec<SocketAddr>,
    pub(super) requests: Vec<String>,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// A response with a status and headers, each with its end of line.
pub(super) fn response(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

impl Site {
    /// A host that answers 204, whose name has a global address.
    pub(super) fn new() -> Self {
        Self::default()
            .with_names(&[&[GLOBAL]])
            .with_replies([Reply::Text("HTTP/1.1 204 No Content\r\n\r\n".to_owned())])
    }

    pub(super) fn with_names(mut self, names: &[&[&str]]) -> Self {
        let parse = |name: &&[&str]| Ok(name.iter().map(|text| text.parse().unwrap()).collect());
        self.names = Arc::new(Mutex::new(names.iter().map(parse).collect()));
        self
    }

    /// A host whose name cannot be resolved.
    pub(super) fn unknown() -> Self {
        Self { names: Arc::new(Mutex::new([Err(io::ErrorKind::NotFound.into())].into())), ..Self::new() }
    }

    /// A host whose name server does not answer.
    pub(super) fn nameless() -> Self {
        Self { is_nameless: true, ..Self::new() }
    }

    pub(super) fn with_replies(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        self
    }

    pub(super) fn with_tls(self, tls: TlsAcceptor) -> Self {
        Self { tls: Some(tls), ..self }
    }

    pub(super) fn with_silent(self, silent: &[&str]) -> Self {
        Self { silent: silent.iter().map(|text| text.parse().unwrap()).collect(), ..self }
    }

    pub(super) fn with_rejecting(self, rejecting: &[&str]) -> Self {
        Self { rejecting: rejecting.iter().map(|text| text.parse().unwrap()).collect(), ..self }
    }

    /// Connects to a real server, whatever the address is.
    pub(super) fn with_server(self, server: SocketAddr) -> Self {
        Self { server: Some(server), ..self }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Answers the requests of a connection.
    async fn serve(self, stream: impl Stream + 'static) {
        match self.tls.clone() {
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => self.answer(stream).await,
                Err(_) => return,
            },
            None => self.answer(stream).await,
        }
        .unwrap_or_default();
    }

    async fn answer(self, mut stream: impl Stream) -> io::Result<()> {
        while let Some(request) = read_request(&mut stream).await? {
            self.seen.lock().unwrap().requests.push(request);
            match next(&self.replies).unwrap() {
                Reply::Text(text) => stream.write_all(text.as_bytes()).await?,
                Reply::Last(text) => {
                    stream.write_all(text.as_bytes()).await?;
                    return stream.shutdown().await;
                }
                Reply::Stalled(text) => {
                    stream.write_all(text.as_bytes()).await?;
                    std::future::pending::<()>().await;
                }
            }
        }
        Ok(())
    }
}

/// Takes the first, or leaves it if it is the only one.
fn next<T: Clone>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    let mut queue = queue.lock().unwrap();
    if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() }
}

/// Reads a request whose body has a `content-length`, as a text; `None` at the connection's end.
async fn read_request(stream: &mut impl Stream) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() == length.parse::<usize>().unwrap() {
                return Ok(Some(whole));
            }
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await? {
            0 => return Ok(None),
            // A TLS handshake, where none is expected.
            _ if more[0] == 0x16 => return Ok(Some("not HTTP".to_owned())),
            count => text.extend_from_slice(&more[..count]),
        }
    }
}

#[async_trait]
impl Network for Site {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.seen.lock().unwrap().resolved.push(host.to_owned());
        if self.is_nameless {
            std::future::pending::<()>().await;
        }
        let mut names = self.names.lock().unwrap();
        let resolved = names.pop_front().unwrap();
        if names.is_empty() {
            names.push_back(match &resolved {
                Ok(found) => Ok(found.clone()),
                Err(error) => Err(error.kind().into()),
            });
        }
        resolved
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.seen.lock().unwrap().connected.push(address);
        if self.silent.contains(&address) {
            std::future::pending::<()>().await;
        }
        if self.rejecting.contains(&address) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if let Some(server) = self.server {
            return Ok(Box::new(TcpStream::connect(server).await?));
        }
        let (ours, theirs) = duplex(64 * 1024);
        tokio::spawn(self.clone().serve(theirs));
        Ok(Box::new(ours))
    }
}
