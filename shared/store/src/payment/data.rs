//! A payment's data in its details item: the text as it came, one compressed frame, or the place of a sealed row.
//!
//! | `data` | `codec` | `frame` | `dataBytes` | `row` | `hash` | |
//! |---|---|---|---|---|---|---|
//! | | | | | | | no data |
//! | JSON | | | | | | the text as it came |
//! | | `zstd` | a zstd frame with a checksum | the length of the text | | | compressed |
//! | | `file` | | | such as `2026-11-20/1/57` | the SHA-256 hash of the text | sealed |
//!
//! A later codec has another name. Stored data is decoded for ever.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{DataHash, JsonText, PaymentData, SealedData};

use crate::frame;
use crate::item::{Fault, Item};
use crate::size::{MAX_DETAILS_BYTES, number_bytes};

const DATA: &str = "data";
const CODEC: &str = "codec";
const FRAME: &str = "frame";
const DATA_BYTES: &str = "dataBytes";
const ROW: &str = "row";
const HASH: &str = "hash";

/// The attributes that hold data.
pub(crate) const ATTRIBUTES: [&str; 6] = [DATA, CODEC, FRAME, DATA_BYTES, ROW, HASH];

/// The codec of a compressed text.
const ZSTD: &str = "zstd";

/// The codec of a text that a sealed row has.
const FILE: &str = "file";

/// The level of compression. For 8 KB, higher levels take longer and save hardly any more bytes.
const LEVEL: i32 = 3;

/// The attributes of data: the text as it came, or the sealed row.
pub(crate) fn attributes(data: &PaymentData) -> Vec<(String, AttributeValue)> {
    match data {
        PaymentData::Text(text) => vec![(DATA.to_owned(), AttributeValue::S(text.as_str().to_owned()))],
        PaymentData::Sealed(SealedData { place, hash }) => vec![
            (CODEC.to_owned(), AttributeValue::S(FILE.to_owned())),
            (ROW.to_owned(), AttributeValue::S(place.to_string())),
            (HASH.to_owned(), AttributeValue::B(Blob::new(hash.as_bytes()))),
        ],
    }
}

/// The bytes of an item's stored data. A sealed row's place has none.
pub(crate) fn stored_bytes(item: &Item) -> usize {
    match (item.get(FRAME), item.get(DATA)) {
        (Some(AttributeValue::B(frame)), _) => frame.as_ref().len(),
        (_, Some(AttributeValue::S(text))) => text.len(),
        _ => 0,
    }
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
pub(crate) fn take(item: &mut Item) -> Result<Option<PaymentData>, Fault> {
    use AttributeValue::{B, N, S};
    let text = match ATTRIBUTES.map(|name| item.remove(name)) {
        [None, None, None, None, None, None] => return Ok(None),
        [Some(S(text)), None, None, None, None, None] => text,
        [None, Some(S(codec)), None, None, Some(S(row)), Some(B(hash))] if codec == FILE => {
            let hash = DataHash::from_stored(hash.as_ref()).ok_or("the hash of its data has not 32 bytes")?;
            return Ok(Some(PaymentData::Sealed(SealedData { place: row.parse()?, hash })));
        }
        [None, Some(S(codec)), Some(B(frame)), Some(N(bytes)), None, None] => {
            if codec != ZSTD {
                return Err("the codec of its data is unknown".into());
            }
            let bytes = bytes.parse().ok().filter(|bytes| (1..=MAX_DETAILS_BYTES).contains(bytes));
            let bytes = bytes.ok_or_else(|| format!("dataBytes is not from 1 to {MAX_DETAILS_BYTES}"))?;
            frame::text_of(frame.as_ref(), bytes)?
        }
        _ => return Err("data, codec, frame, dataBytes, row and hash disagree".into()),
    };
    Ok(Some(JsonText::from_stored(text)?.into()))
}

#[cfg(test)]
mod tests;
