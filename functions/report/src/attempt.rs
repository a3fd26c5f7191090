//! The files of a run while they are written: CSV, compressed and uploaded in parts. Only sums stay in memory.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use object_store::ObjectStore;
use payments_files::{FileKind, SettledHead, csv_of};
use payments_model::UtcSecond;
use payments_store::{ReportFile, ReportRun};

use crate::error::ReportError;
use crate::summary::{Summary, SummaryFile};
use crate::upload::Upload;

/// The most characters of a request id in a name. Lambda's are UUIDs, of 36.
const MAX_REQUEST_ID: usize = 64;

/// The folder of one attempt at a run. No other attempt writes there.
#[derive(Debug, Clone)]
pub(crate) struct AttemptFolder(String);

impl AttemptFolder {
    /// Names the folder of an attempt at run `number`, started at `instant` by the invocation `request_id`.
    pub(crate) fn new(number: u64, instant: DateTime<Utc>, request_id: &str) -> Self {
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let request_id: String = request_id.chars().filter(plain).take(MAX_REQUEST_ID).collect();
        Self(format!("{number:06}-{}-{request_id}", instant.format("%Y%m%dT%H%M%S%.6fZ")))
    }
}

impl fmt::Display for AttemptFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The files of a run that is not committed yet.
#[derive(Debug)]
pub(crate) struct Attempt {
    files: Arc<dyn ObjectStore>,
    folder: AttemptFolder,
    number: u64,
    gzip: GzEncoder<Vec<u8>>,
    csv: Upload,
    rows: u64,
    span: Option<(UtcSecond, UtcSecond)>,
    summary: Summary,
}

impl Attempt {
    /// Starts an attempt at run `number`. Nothing is stored before the first part is full.
    pub(crate) fn begin(files: &Arc<dyn ObjectStore>, folder: AttemptFolder, number: u64) -> Result<Self, ReportError> {
        let csv = Upload::begin(files, format!("{folder}/report.csv.gz"))?;
        Ok(Self {
            files: Arc::clone(files),
            folder,
            number,
            // Without a time, the same settlements always compress to the same bytes.
            gzip: GzBuilder::new().mtime(0).write(Vec::new(), Compression::default()),
            csv,
            rows: 0,
            span: None,
            summary: Summary::default(),
        })
    }

    /// The number of settlements.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the next settlements, in order.
    pub(crate) async fn write(&mut self, settlements: &[SettledHead]) -> Result<(), ReportError> {
        let (Some(first), Some(last)) = (settlements.first(), settlements.last()) else { return Ok(()) };
        let begun = self.span.map_or(first.settled_at, |(begun, _)| begun);
        let csv = csv_of(settlements, self.rows == 0)?;
        for settlement in settlements {
            self.summary.add(settlement)?;
            self.rows += 1;
        }
        self.span = Some((begun, last.settled_at));
        self.gzip.write_all(&csv)?;
        let compressed = std::mem::take(self.gzip.get_mut());
        self.csv.write(compressed).await
    }

    /// Stores the rest and the summary. Returns the run to be committed, or `None` without settlements, when
    /// nothing is stored.
    pub(crate) async fn finish(mut self, now: UtcSecond) -> Result<Option<ReportRun>, ReportError> {
        let Some(span) = self.span else { return Ok(None) };
        match self.store(span, now).await {
            Ok(run) => Ok(Some(run)),
            Err(error) => {
                self.abandon().await;
                Err(error)
            }
        }
    }

    async fn store(&mut self, span: (UtcSecond, UtcSecond), now: UtcSecond) -> Result<ReportRun, ReportError> {
        self.gzip.try_finish()?;
        let rest = std::mem::take(self.gzip.get_mut());
        self.csv.write(rest).await?;
        let name = format!("{}--{}-run-{:06}", compact(span.0), compact(span.1), self.number);
        let csv = self.csv.finish(FileKind::Report.path(&name).to_string()).await?;
        let file = SummaryFile {
            run: self.number,
            report: &csv.published,
            rows: self.rows,
            first_settled_at: span.0.to_string(),
            last_settled_at: span.1.to_string(),
            payees: &[],
        };
        let summary = self.store_summary(&file, FileKind::Summary.path(&name).to_string()).await?;
        Ok(ReportRun {
            number: self.number,
            csv,
            summary,
            rows: self.rows,
            first_settled_at: span.0,
            last_settled_at: span.1,
            committed_at: now,
            finished: false,
        })
    }

    async fn store_summary(&mut self, file: &SummaryFile<'_>, published: String) -> Result<ReportFile, ReportError> {
        let mut upload = Upload::begin(&self.files, format!("{}/summary.json", self.folder))?;
        match self.summary.write(file, &mut upload).await {
            Ok(()) => upload.finish(published).await,
            Err(error) => {
                upload.abandon().await;
                Err(error)
            }
        }
    }

    /// Abandons the attempt and aborts its upload, if possible.
    pub(crate) async fn abandon(&mut self) {
        self.csv.abandon().await;
    }
}

/// Formats an instant without colons, for file names.
fn compact(instant: UtcSecond) -> String {
    instant.to_string().replace(':', "")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use object_store::memory::InMemory;
    use payments_boot::{Clock, Deadline};
    use payments_files::RowReader;
    use payments_machine::given::details;
    use payments_model::{Actor, Failure, Head, MAX_AMOUNT_MINOR, Money, PaymentId, State, Status, TrailEntry};

    use super::*;

    /// A deadline that never comes, in milliseconds since 1970.
    const FAR_AWAY: u64 = 4_000_000_000_000;
    use crate::stored::{Found, Stored};
    use crate::upload::PART;

    /// The nth settlement, of bytes that hardly compress.
    fn settlement(n: usize) -> SettledHead {
        let settled_at: UtcSecond = "2026-11-20T09:20:00Z".parse().unwrap();
        let scheduled = Head::scheduled(&details(&n.to_string(), "2026-11-20", settled_at).unwrap());
        let id = |part| PaymentId::derive(&scheduled.account, &format!("{n}-{part}").parse().unwrap());
        let reason: String = (0..7).map(|part| id(part).to_string()).collect();
        let by = Actor::client("the test");
        let entry = |status| TrailEntry { status, at: settled_at, by: by.clone() };
        let head = Head {
            money: Money { amount: MAX_AMOUNT_MINOR.try_into().unwrap(), ..scheduled.money },
            state: State::Failed(Failure::new(None, &reason)),
            version: 3,
            moved: vec![entry(Status::Pending), entry(Status::Failed)],
            dispatch_attempt: Some(1),
            unreported: true,
            ..scheduled
        };
        SettledHead { head, settled_at }
    }

    fn begin(files: &Arc<dyn ObjectStore>, request_id: &str) -> Attempt {
        Attempt::begin(files, AttemptFolder::new(1, DateTime::UNIX_EPOCH, request_id), 1).unwrap()
    }

    async fn write(attempt: &mut Attempt, count: usize) {
        for some in (0..count).collect::<Vec<_>>().chunks(800) {
            let settlements: Vec<SettledHead> = some.iter().map(|n| settlement(*n)).collect();
            attempt.write(&settlements).await.unwrap();
        }
    }

    /// More settlements than fit into one part.
    const MANY: usize = 65_000;

    #[tokio::test]
    async fn the_same_settlements_are_the_same_bytes() {
        let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut runs = Vec::new();
        for request_id in ["one", "other"] {
            let mut attempt = begin(&files, request_id);
            write(&mut attempt, 10).await;
            runs.push(attempt.finish(UtcSecond::MIN).await.unwrap().unwrap());
        }
        let [one, other] = runs.as_slice() else { unreachable!("two runs") };
        assert_ne!(one.csv.attempt, other.csv.attempt);
        assert_eq!((&one.csv.sha256, &one.summary.sha256), (&other.csv.sha256, &other.summary.sha256));
    }

    #[tokio::test]
    async fn a_file_of_several_parts_is_stored_as_committed() {
        let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut attempt = begin(&files, "large");
        write(&mut attempt, MANY).await;
        let run = attempt.finish(UtcSecond::MIN).await.unwrap().unwrap();
        assert!(run.csv.bytes > u64::try_from(PART).unwrap(), "{} bytes", run.csv.bytes);

        let deadline = Deadline::before(FAR_AWAY, &Clock::system());
        let stored = Stored::check(&files, &run.csv.attempt, &run.csv, &deadline).await.unwrap();
        let Found::Intact(mut stored) = stored else { panic!("{} is not as committed", run.csv.attempt) };
        let mut bytes = Vec::new();
        while let Some(piece) = stored.next().await.unwrap() {
            bytes.extend_from_slice(&piece);
        }
        let mut text = Vec::new();
        let mut reader = RowReader::default();
        let mut rows = 0;
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        let mut input = text.as_slice();
        while let Some(row) = reader.read(&mut input).unwrap() {
            assert_eq!(row.unreported.payment_id, settlement(rows).head.payment_id);
            rows += 1;
        }
        assert_eq!((rows, run.rows), (MANY, u64::try_from(MANY).unwrap()));
    }

    #[tokio::test]
    async fn an_abandoned_attempt_leaves_no_files() {
        for count in [0, 10, MANY] {
            let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let mut attempt = begin(&files, "abandoned");
            write(&mut attempt, count).await;
            attempt.abandon().await;
            attempt.abandon().await;
            assert!(files.list_with_delimiter(None).await.unwrap().common_prefixes.is_empty(), "{count}");
        }
        let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        assert!(begin(&files, "empty").finish(UtcSecond::MIN).await.unwrap().is_none());
        assert!(files.list_with_delimiter(None).await.unwrap().common_prefixes.is_empty());
    }

    #[test]
    fn folder_names_drop_special_characters_of_the_request_id() {
        let folder = AttemptFolder::new(42, DateTime::UNIX_EPOCH, "../a b/8f2c\u{e9}");
        assert_eq!(folder.to_string(), "000042-19700101T000000.000000Z-ab8f2c");
    }
}
