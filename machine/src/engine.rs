//! The embedded DynamoDB: the DynamoDB API over HTTP on the loopback interface.
//!
//! The AWS CLI and the SDKs reach it as they reach DynamoDB, and so do the tests. The functions can skip the socket: see
//! [`Direct`].

mod api;
mod direct;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dynoxide::Database;
use dynoxide::storage::Storage;
use dynoxide::storage_backend::SystemClock;
use payments_boot::Clock;
use tempfile::TempDir;

pub use direct::Direct;
pub(crate) use direct::respond;

use crate::server::{Limits, Server, listen};

/// Indexes on the sequence number of the engine's stream table. Without them each write scans the whole stream for the
/// last number. They depend on the engine's private schema, so its version is pinned.
const STREAM_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS stream_by_sequence
        ON _stream_records(table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS stream_by_shard_and_sequence
        ON _stream_records(table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// The file of the database in the folder that the user names.
const FILE_NAME: &str = "payments.sqlite";

/// The file beside it that a running engine locks. The operating system unlocks it however the process ends.
const LOCK_NAME: &str = "payments.lock";

/// The longest time that calls of others may still take at the end. A half-sent call does not delay it for longer.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The URL of an engine that nothing serves.
const UNSERVED: &str = "http://127.0.0.1:9";

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    direct: Direct,
    server: Option<Server>,
    /// Resources that are released with the engine.
    _held: Held,
}

/// Resources of an engine: the lock of its folder, and the folder itself if it is temporary.
#[derive(Debug, Default)]
struct Held {
    _lock: Option<File>,
    _scratch: Option<TempDir>,
}

impl Engine {
    /// Starts an engine on `port` of the loopback interface (0 is any free one). Its data is in the folder `data`, or in
    /// memory.
    pub async fn start(port: u16, data: Option<&Path>) -> Result<Self> {
        let (database, lock) = match data {
            None => (in_memory(SystemClock::arc())?, None),
            Some(folder) => kept_in(folder).map(|(database, lock)| (database, Some(lock)))?,
        };
        Self::over(database, port, Held { _lock: lock, _scratch: None }).await
    }

    /// Starts an engine on any free port for temporary data. It is in a temporary folder, since it may be more than memory
    /// has room for, and a write never waits for the disk.
    pub async fn scratch() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (database, lock) = kept_in(folder.path())?;
        database.enable_bulk_loading()?;
        Self::over(database, 0, Held { _lock: Some(lock), _scratch: Some(folder) }).await
    }

    /// Starts an engine in memory that nothing serves and that reads the time from `clock`.
    pub fn unserved(clock: &Clock) -> Result<Self> {
        let database = in_memory(Arc::new(EngineClock(clock.clone())))?;
        Ok(Self { direct: Direct(database), server: None, _held: Held::default() })
    }

    async fn over(database: Database, port: u16, held: Held) -> Result<Self> {
        let listener = listen(port, "--dynamodb-port").await?;
        let direct = Direct(database);
        let limits = Limits { head: None, end: Some(STOP_TIMEOUT) };
        let server = Server::start(listener, api::router(direct.clone()), limits)?;
        Ok(Self { direct, server: Some(server), _held: held })
    }

    /// Returns the URL of the DynamoDB API. If nothing serves it, a client needs the URL all the same.
    pub fn url(&self) -> String {
        self.server.as_ref().map_or_else(|| UNSERVED.to_owned(), Server::url)
    }

    /// Returns the way to the engine without a socket.
    pub fn direct(&self) -> &Direct {
        &self.direct
    }

    /// Whether it reads the time from the clock of its stack, and not from the machine's.
    pub(crate) fn is_on_time_of_stack(&self) -> bool {
        self.server.is_none()
    }

    /// Stops the engine after the calls that are under way, as far as they are sent.
    pub async fn stop(self) -> Result<()> {
        match self.server {
            Some(server) => server.stop().await,
            None => Ok(()),
        }
    }
}

/// The clock of an engine that nothing serves.
struct EngineClock(Clock);

impl dynoxide::storage_backend::Clock for EngineClock {
    fn now_unix_secs(&self) -> u64 {
        u64::try_from(self.0.instant().timestamp()).unwrap_or(0)
    }

    #[expect(clippy::float_arithmetic, reason = "the engine's interface has a float")]
    fn now_unix_secs_f64(&self) -> f64 {
        self.0.instant().timestamp_millis() as f64 / 1_000.0
    }
}

fn in_memory(clock: Arc<dyn dynoxide::storage_backend::Clock>) -> Result<Database> {
    // An in-memory database gets its schema, with the indexes, from a template file.
    let folder = tempfile::tempdir()?;
    let template = prepared(&folder.path().join(FILE_NAME))?;
    let database = Database::memory_with_clock(clock)?;
    database.restore_from(&template)?;
    Ok(database)
}

fn kept_in(folder: &Path) -> Result<(Database, File)> {
    let explain = || format!("cannot keep data in {}: give --data a writable folder", folder.display());
    std::fs::create_dir_all(folder).with_context(explain)?;
    let lock = File::create(folder.join(LOCK_NAME)).with_context(explain)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            bail!("{} is in use by another process; stop that one, or give --data another folder", folder.display())
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(explain),
    }
    let file = folder.join(FILE_NAME);
    let file = prepared(&file).with_context(|| {
        format!(
            "cannot open the database {}: it is damaged, is of another program, or may not be written; put a copy of it \
             in its place, or give --data another folder",
            file.display()
        )
    })?;
    let database = Database::new(&file)?;
    // Despite its name this is "synchronous = NORMAL": nothing is lost when the process dies, and a commit does not wait
    // for the disk.
    database.disable_bulk_loading()?;
    Ok((database, lock))
}

fn prepared(file: &Path) -> Result<String> {
    let file = file.to_str().context("the path is not UTF-8")?.to_owned();
    let storage = Storage::new(&file)?;
    // Otherwise damage shows where it is, some day: what lies elsewhere is answered as if nothing were wrong.
    let damage: String = storage.conn().query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if damage != "ok" {
        bail!("the database is damaged: {damage}");
    }
    storage.conn().execute_batch(STREAM_INDEXES)?;
    Ok(file)
}

/// The bytes of the smallest page of a database.
const SMALLEST: u64 = 512;

/// Whether a folder has no database, or one without a bank's tables. One that cannot be read is damaged, and not new.
pub fn is_new(folder: &Path) -> bool {
    let file = folder.join(FILE_NAME);
    if !std::fs::metadata(&file).is_ok_and(|file| file.len() >= SMALLEST) {
        return true;
    }
    let tables = file.to_str().and_then(|file| Storage::new(file).ok());
    tables.is_some_and(|storage| storage.list_table_names().is_ok_and(|tables| tables.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_tables_is_new() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_new(folder.path()));
        let file = prepared(&folder.path().join(FILE_NAME)).unwrap();
        assert!(is_new(folder.path()));
        let table = r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":
            [{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;
        let database = Database::new(&file).unwrap();
        database.create_table(serde_json::from_str(table).unwrap()).unwrap();
        assert!(!is_new(folder.path()));
    }

    #[test]
    fn a_write_finds_the_last_stream_record_by_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let file = prepared(&folder.path().join(FILE_NAME)).unwrap();
        let engine = Storage::new(&file).unwrap();
        // The engine's queries before each stream write and for each stream read.
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
