//! A payment's data in its details item: the text as it came, or one compressed frame.
//!
//! | `data` | `codec` | `frame` | `dataBytes` | |
//! |---|---|---|---|---|
//! | | | | | no data |
//! | JSON | | | | the text as it came |
//! | | `zstd` | a zstd frame with a checksum | the length of the text | compressed |
//!
//! A later codec has another name. Stored data is decoded for ever.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::JsonText;

use crate::frame;
use crate::item::{Fault, Item};
use crate::size::{MAX_DETAILS_BYTES, number_bytes};

const DATA: &str = "data";
const CODEC: &str = "codec";
const FRAME: &str = "frame";
const DATA_BYTES: &str = "dataBytes";

/// The attributes that hold data.
pub(crate) const ATTRIBUTES: [&str; 4] = [DATA, CODEC, FRAME, DATA_BYTES];

/// The codec of a compressed text.
const ZSTD: &str = "zstd";

/// The level of compression. For 8 KB, higher levels take longer and save hardly any more bytes.
const LEVEL: i32 = 3;

/// The attributes of data as it came.
pub(crate) fn raw(data: &JsonText) -> (String, AttributeValue) {
    (DATA.to_owned(), AttributeValue::S(data.as_str().to_owned()))
}

/// Compresses an item's data, if that makes the item smaller.
pub fn compress(item: &mut Item) {
    let Some(AttributeValue::S(text)) = item.get(DATA) else { return };
    let bytes = text.len().to_string();
    let beside = CODEC.len() + ZSTD.len() + FRAME.len() + DATA_BYTES.len() + number_bytes(&bytes);
    let Some(most) = (DATA.len() + text.len()).checked_sub(beside + 1) else { return };
    let Some(frame) = frame::compressed(text, LEVEL).filter(|frame| frame.len() <= most) else { return };
    item.remove(DATA);
    item.insert(CODEC.to_owned(), AttributeValue::S(ZSTD.to_owned()));
    item.insert(FRAME.to_owned(), AttributeValue::B(Blob::new(frame)));
    item.insert(DATA_BYTES.to_owned(), AttributeValue::N(bytes));
}

/// Takes the data out of an item.
pub(crate) fn take(item: &mut Item) -> Result<Option<JsonText>, Fault> {
    let text = match ATTRIBUTES.map(|name| item.remove(name)) {
        [None, None, None, None] => return Ok(None),
        [Some(AttributeValue::S(text)), None, None, None] => text,
        [None, Some(AttributeValue::S(codec)), Some(AttributeValue::B(frame)), Some(AttributeValue::N(bytes))] => {
            if codec != ZSTD {
                return Err("the codec of its data is unknown".into());
            }
            let bytes = bytes.parse().ok().filter(|bytes| (1..=MAX_DETAILS_BYTES).contains(bytes));
            let bytes = bytes.ok_or_else(|| format!("dataBytes is not from 1 to {MAX_DETAILS_BYTES}"))?;
            frame::text_of(frame.as_ref(), bytes)?
        }
        _ => return Err("data, codec, frame and dataBytes disagree".into()),
    };
    Ok(Some(JsonText::from_stored(text)?))
}

#[cfg(test)]
mod tests;
