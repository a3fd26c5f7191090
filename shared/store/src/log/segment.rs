//! A segment: the events of one commit, one line each, compressed if that is smaller.
//!
//! | `codec` | `text` | `frame` | `bytes` | |
//! |---|---|---|---|---|
//! | `raw` | the lines | | | as they came |
//! | `zstd` | | a zstd frame with a checksum | the length of the text | compressed |

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use payments_model::{Epoch, UtcSecond};

use crate::frame;
use crate::item::{Fault, Item, item_key, number, text_of};
use crate::key::log_partition;
use crate::schema::EXPIRES_AT;

/// The most bytes of a segment's events, with a line break after each: an item has at most 400 KB, and not every event can be
/// compressed.
pub const MAX_SEGMENT_BYTES: usize = 390 * 1024;

/// Time after which a segment expires, so that DynamoDB deletes it within days. One day more,
/// because the clocks of writers and readers differ.
const EXPIRES_AFTER: TimeDelta = TimeDelta::days(37);

/// The level of compression. Events differ in digits, and repeat long texts: level 1 looks for long repetitions only. Its frames are an eighth
/// smaller than those of level 3, and it takes half as long.
const LEVEL: i32 = 1;

const CODEC: &str = "codec";
const TEXT: &str = "text";
const FRAME: &str = "frame";
const BYTES: &str = "bytes";
const EVENTS: &str = "events";
const AT: &str = "at";

const RAW: &str = "raw";
const ZSTD: &str = "zstd";

/// Encodes a segment: the item that the log has for these events.
#[must_use]
pub fn segment_of(epoch: Epoch, place: u64, events: &[String], now: UtcSecond) -> Item {
    let text = events.join("\n");
    let expires = now.as_chrono() + EXPIRES_AFTER;
    let mut item = segment_key(epoch, place);
    item.extend([
        (EVENTS.to_owned(), number(events.len())),
        (AT.to_owned(), AttributeValue::S(now.to_string())),
        (EXPIRES_AT.to_owned(), number(expires.timestamp())),
    ]);
    item.extend(match frame::compressed(&text, LEVEL).filter(|frame| frame.len() < text.len()) {
        Some(frame) => vec![
            (CODEC.to_owned(), AttributeValue::S(ZSTD.to_owned())),
            (BYTES.to_owned(), number(text.len())),
            (FRAME.to_owned(), AttributeValue::B(Blob::new(frame))),
        ],
        None => vec![(CODEC.to_owned(), AttributeValue::S(RAW.to_owned())), (TEXT.to_owned(), AttributeValue::S(text))],
    });
    item
}

/// Decodes the events of a segment.
pub(super) fn events_of(item: &Item) -> Result<Vec<String>, Fault> {
    let text = match (text_of(item, CODEC), item.get(TEXT), item.get(FRAME), item.get(BYTES)) {
        (RAW, Some(AttributeValue::S(text)), None, None) => text.clone(),
        (ZSTD, None, Some(AttributeValue::B(frame)), Some(AttributeValue::N(bytes))) => {
            let bytes = bytes.parse().ok().filter(|bytes| (1..=MAX_SEGMENT_BYTES).contains(bytes));
            let bytes = bytes.ok_or_else(|| format!("bytes is not from 1 to {MAX_SEGMENT_BYTES}"))?;
            frame::text_of(frame.as_ref(), bytes)?
        }
        _ => return Err("codec, text, frame and bytes disagree".into()),
    };
    let events: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let counted = item.get(EVENTS).and_then(|events| events.as_n().ok()).and_then(|events| events.parse().ok());
    if counted == Some(events.len()) { Ok(events) } else { Err("events is not the number of lines".into()) }
}

pub(super) fn segment_key(epoch: Epoch, number: u64) -> Item {
    item_key(log_partition(epoch), segment_sort(number))
}

pub(super) fn segment_sort(number: u64) -> String {
    format!("{number:012}")
}
