//! A file of the journal: a line about it, and then an event on each line, compressed by gzip.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object_store::path::Path;
use payments_store::{LogPosition, MAX_SEGMENT_BYTES};
use serde::{Deserialize, Serialize};

use crate::kind::FileKind;

/// The bytes of events after which a file is full. It ends with a segment, so it may have a segment more.
pub const MAX_OBJECT_BYTES: usize = 5 * 1024 * 1024;

/// The most bytes of a file's text. Calls for segments bring some at a time, and one line describes the file.
const MAX_TEXT_BYTES: u64 = (2 * MAX_OBJECT_BYTES + MAX_SEGMENT_BYTES) as u64;

/// The format.
const FORMAT: u32 = 1;

/// The reason why bytes are not a file of the journal.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The bytes are not gzip, too long, or not text.
    #[error("its text cannot be read")]
    Text(#[from] std::io::Error),
    /// A line is malformed.
    #[error("its first line cannot be read")]
    Line(#[from] serde_json::Error),
    /// The first line is of another file, or of a later format.
    #[error("its first line says {0}, which does not agree with its name and its lines")]
    Disagrees(String),
}

/// A file of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalObject {
    /// The place of its first event: the beginning of a segment.
    pub first: LogPosition,
    /// The place after its last event, in the same epoch: the next file of the epoch begins there.
    pub after: LogPosition,
    /// The events, as the log has them.
    pub events: Vec<String>,
}

/// Its first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    journal: u32,
    cursor: String,
    next_cursor: String,
    events: usize,
}

impl JournalObject {
    /// Returns the name of the file that begins at a place: `journal/<epoch>/<segment, 12 digits>.jsonl.gz`.
    #[must_use]
    pub fn path(first: LogPosition) -> Path {
        FileKind::Journal.path(&format!("{}/{:012}", first.epoch, first.number))
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// No error is known: memory takes all bytes.
    pub fn encode(&self) -> std::io::Result<Vec<u8>> {
        let (cursor, next_cursor) = (self.first.to_string(), self.after.to_string());
        let about = About { journal: FORMAT, cursor, next_cursor, events: self.events.len() };
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut file, &about)?;
        for event in &self.events {
            file.write_all(b"\n")?;
            file.write_all(event.as_bytes())?;
        }
        file.write_all(b"\n")?;
        file.finish()
    }

    /// Decodes the file that begins at a place.
    ///
    /// # Errors
    /// [`ObjectError`] if it is damaged, or belongs to another place.
    pub fn decode(first: LogPosition, bytes: &[u8]) -> Result<Self, ObjectError> {
        let mut text = String::new();
        GzDecoder::new(bytes).take(MAX_TEXT_BYTES).read_to_string(&mut text)?;
        let mut lines = text.lines();
        let line = lines.next().unwrap_or_default();
        let about: About = serde_json::from_str(line)?;
        let events: Vec<String> = lines.map(str::to_owned).collect();
        let after = about.next_cursor.parse::<LogPosition>().ok();
        let after = after.filter(|after| after.epoch == first.epoch && *after > first && after.offset == 0);
        match after {
            Some(after)
                if about.journal == FORMAT && about.cursor == first.to_string() && about.events == events.len() =>
            {
                Ok(Self { first, after, events })
            }
            _ => Err(ObjectError::Disagrees(line.chars().take(200).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_was_changed_is_rejected() {
        let at = |text: &str| text.parse::<LogPosition>().unwrap();
        let events = vec![r#"{"id":"7-a-1"}"#.to_owned(), r#"{"id":"7-b-1"}"#.to_owned()];
        let object = JournalObject { first: at("7.3.0"), after: at("7.5.0"), events };
        let bytes = object.encode().unwrap();
        assert_eq!(JournalObject::path(object.first).as_ref(), "journal/7/000000000003.jsonl.gz");
        assert_eq!(JournalObject::decode(object.first, &bytes).unwrap(), object);
        assert!(matches!(JournalObject::decode(at("7.4.0"), &bytes), Err(ObjectError::Disagrees(_))));
        assert!(matches!(JournalObject::decode(object.first, &bytes[..20]), Err(ObjectError::Text(_))));
        let changed =
            [(1, "7.3.0", 2), (1, "8.5.0", 2), (1, "7.5.1", 2), (1, "7.5.0", 1), (1, "no", 2), (2, "7.5.0", 2)];
        for (format, after, lines) in changed {
            let mut file = GzEncoder::new(Vec::new(), Compression::fast());
            writeln!(file, r#"{{"journal":{format},"cursor":"7.3.0","nextCursor":"{after}","events":2}}"#).unwrap();
            (0..lines).for_each(|_| writeln!(file, "{{}}").unwrap());
            let read = JournalObject::decode(object.first, &file.finish().unwrap());
            assert!(matches!(read, Err(ObjectError::Disagrees(_))), "{format} {after} {lines}: {read:?}");
        }
    }
}
