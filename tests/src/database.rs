//! A world's database on an engine that many worlds share.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The time that the engine has to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A database of the engine of `.ci/test-second-engine.sh`, which has one for each access key. When it is dropped, the
/// engine drops it too. Only the world knows when that is: a test may work for seconds without a call.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) endpoint: String,
    pub(crate) access_key: String,
}

impl Database {
    fn end(&self) -> Result<()> {
        let host = self.endpoint.strip_prefix("http://").context("a URL")?.trim_end_matches('/');
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let credential = format!("Credential={}/", self.access_key);
        write!(
            stream,
            "DELETE / HTTP/1.1\r\nHost: {host}\r\nAuthorization: {credential}\r\nConnection: close\r\n\r\n"
        )?;
        stream.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("the database of {} stays: {error}", self.access_key);
        }
    }
}
