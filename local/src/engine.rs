//! The embedded DynamoDB: a real DynamoDB API over HTTP on the loopback interface, so that the
//! functions, the AWS CLI and NoSQL Workbench all reach it through their ordinary clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, Result};
use dynoxide::Database;
use dynoxide::storage::Storage;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The engine's stream table has no index on the sequence number, so that each write looks through
/// the whole stream for the last one. With these two it does not. They reach into the engine's
/// private schema, which is why its version is pinned.
const STREAM_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS stream_by_sequence
        ON _stream_records(table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS stream_by_shard_and_sequence
        ON _stream_records(table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// The file of a kept database, inside the folder that the user names.
const FILE_NAME: &str = "payments.sqlite";

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), String>>,
    /// The folder of a [scratch](Self::scratch) engine.
    _scratch: Option<TempDir>,
}

impl Engine {
    /// Starts an engine on `port` of the loopback interface (0 for any free one), in memory or
    /// kept in the folder `data`.
    ///
    /// # Errors
    /// Where the port is taken or the folder cannot be used; the message says what to do.
    pub async fn start(port: u16, data: Option<&Path>) -> Result<Self> {
        let database = match data {
            None => in_memory()?,
            Some(folder) => kept_in(folder)?,
        };
        Self::over(database, port, None).await
    }

    /// Starts an engine on any free port for data that nobody wants afterwards: in a temporary folder, so that
    /// there may be more of it than memory has room for, and without ever waiting for the disk.
    ///
    /// # Errors
    /// Where there is no place for temporary folders.
    pub async fn scratch() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let database = kept_in(folder.path())?;
        database.enable_bulk_loading()?;
        Self::over(database, 0, Some(folder)).await
    }

    async fn over(database: Database, port: u16, scratch: Option<TempDir>) -> Result<Self> {
        let listener = listen(port, "--dynamodb-port").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let server = tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, stopped));
        Ok(Self { address, stop, server, _scratch: scratch })
    }

    /// The URL of the DynamoDB API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the engine after the calls that are under way.
    ///
    /// # Errors
    /// Where the engine had failed before.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        self.server.await?.map_err(anyhow::Error::msg)
    }
}

/// Takes a port of the loopback interface.
///
/// # Errors
/// Where it is taken; the message names `flag`, which chooses another.
pub(crate) async fn listen(port: u16, flag: &str) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await;
    listener
        .with_context(|| format!("cannot listen on {address}; choose another port with {flag}, or 0 for any free one"))
}

fn in_memory() -> Result<Database> {
    // A memory database takes its schema, indexes included, from a template file.
    let folder = tempfile::tempdir()?;
    let template = prepared(&folder.path().join(FILE_NAME))?;
    let database = Database::memory()?;
    database.restore_from(&template)?;
    Ok(database)
}

fn kept_in(folder: &Path) -> Result<Database> {
    let explain = || format!("cannot keep data in {}; give --data a folder that can be written", folder.display());
    std::fs::create_dir_all(folder).with_context(explain)?;
    let file = prepared(&folder.join(FILE_NAME)).with_context(explain)?;
    let database = Database::new(&file)?;
    // Despite its name this is "synchronous = NORMAL": nothing is lost when the process dies, and
    // the disk is not waited for at each of thousands of commits.
    database.disable_bulk_loading()?;
    Ok(database)
}

fn prepared(file: &Path) -> Result<String> {
    let file = file.to_str().context("the path is not UTF-8")?.to_owned();
    Storage::new(&file)?.conn().execute_batch(STREAM_INDEXES)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_finds_the_last_stream_record_by_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let file = prepared(&folder.path().join(FILE_NAME)).unwrap();
        let engine = Storage::new(&file).unwrap();
        // The engine's own queries, before each stream write and for each read of the stream.
        for (query, index) in [
            (
                "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = 'a'",
                "stream_by_sequence",
            ),
            (
                "SELECT MIN(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = 'a' AND shard_id = 'b'",
                "stream_by_shard_and_sequence",
            ),
        ] {
            let plan: String =
                engine.conn().query_row(&format!("EXPLAIN QUERY PLAN {query}"), [], |row| row.get(3)).unwrap();
            assert!(plan.contains(&format!("INDEX {index} ")), "{plan}");
        }
    }
}
