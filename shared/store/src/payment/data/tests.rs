//! Tests of data in every stored form, damaged in every way.

use payments_model::{Actor, Details, Instruction, Money, PaymentId, UtcSecond};
use proptest::prelude::*;

use super::*;
use crate::error::StoreError;
use crate::item::Item;
use crate::payment::data::{compress, take};
use crate::payment::details_item::{decode_details, encode_details};
use crate::payment::insert::details_excess;
use crate::size::{OWN_DETAILS_BYTES, item_bytes};

/// A text that compresses, with more than ASCII.
fn text() -> String {
    let line = |n: u32| format!(r#"{{"line":{n},"note":"Miete für Büro {}","minor":{}}}"#, n * 7 % 10, n * n * 31);
    format!("[{}]", (0..40).map(line).collect::<Vec<_>>().join(","))
}

fn details(data: Option<&str>) -> Details {
    let instruction = Instruction {
        account: "tenant".parse().unwrap(),
        payee: "landlord".parse().unwrap(),
        money: Money { amount: 5.try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2026-12-01".parse().unwrap(),
        date_rule: None,
        reference: None,
        data: data.map(|data| JsonText::from_stored(data.to_owned()).unwrap().into()),
    };
    let id = PaymentId::derive(&instruction.account, &"k".parse().unwrap());
    let now: UtcSecond = "2026-11-22T09:00:00Z".parse().unwrap();
    Details::accept(id, instruction, "UTC".parse().unwrap(), "10".parse().unwrap(), now, Actor::client("feed"))
}

/// Details with this data, as they came and compressed.
fn written(data: Option<&str>) -> [Item; 2] {
    let raw = encode_details(&details(data)).unwrap();
    let mut compressed = raw.clone();
    compress(&mut compressed);
    [raw, compressed]
}

fn binary(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

fn stored(codec: &str, frame: &[u8], bytes: usize) -> Item {
    let frame = binary(frame);
    let bytes = AttributeValue::N(bytes.to_string());
    [(CODEC, AttributeValue::S(codec.to_owned())), (FRAME, frame), (DATA_BYTES, bytes)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

fn take_text(mut item: Item) -> Result<Option<String>, String> {
    take(&mut item).map(|data| data.map(|data| data.text().unwrap().to_string())).map_err(|fault| fault.to_string())
}

fn frame(text: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
    compressor.include_checksum(true).unwrap();
    compressor.compress(text).unwrap()
}

#[test]
fn details_are_the_same_in_both_forms() {
    let (text, number) = (text(), "1".repeat(60));
    for (data, is_compressed) in [(None, false), (Some("0"), false), (Some(&*number), true), (Some(&*text), true)] {
        let [raw, compressed] = written(data);
        assert_eq!(compressed != raw, is_compressed, "{data:?}");
        assert_eq!(compressed.contains_key(FRAME), is_compressed);
        assert!(item_bytes(&compressed) < item_bytes(&raw) || !is_compressed);
        for item in [raw, compressed] {
            assert_eq!(decode_details("t", item).unwrap(), details(data));
        }
    }
}

#[test]
fn a_sealed_row_is_kept_as_its_place_and_the_hash_of_its_text() {
    let sealed = SealedData { place: "2026-11-20/3/57".parse().unwrap(), hash: DataHash::new("{}") };
    let mut kept = details(None);
    kept.instruction.data = Some(PaymentData::Sealed(sealed.clone()));
    let mut item = encode_details(&kept).unwrap();
    compress(&mut item);
    let read = decode_details("t", item.clone()).unwrap();
    assert_eq!(read.instruction.data.as_ref().map(PaymentData::text), Some(Err(&sealed)));
    assert_eq!(read, kept);
    for (name, value) in [
        (ROW, Some(AttributeValue::S("2026-11-20/0/57".to_owned()))),
        (ROW, None),
        (HASH, Some(binary([7; 31]))),
        (HASH, None),
        (FRAME, Some(binary("{}"))),
        (DATA, Some(AttributeValue::S("{}".to_owned()))),
        (CODEC, Some(AttributeValue::S(ZSTD.to_owned()))),
        (CODEC, None),
    ] {
        let mut damaged = item.clone();
        match value {
            Some(value) => damaged.insert(name.to_owned(), value),
            None => damaged.remove(name),
        };
        assert!(matches!(decode_details("t", damaged), Err(StoreError::Unreadable { .. })), "{name}");
    }
}

#[test]
fn an_item_is_compressed_exactly_if_it_is_smaller() {
    // From texts that hardly compress to texts that do.
    for words in 0..200_usize {
        let text = format!("\"{}\"", (0..words).map(|n| (n * n * 7_919 % 9_973).to_string()).collect::<String>());
        let [raw, compressed] = written(Some(&text));
        let mut always = raw.clone();
        always.remove(DATA);
        always.extend(stored(ZSTD, &frame(text.as_bytes()), text.len()));
        assert_eq!(item_bytes(&compressed), item_bytes(&raw).min(item_bytes(&always)), "{words}");
    }
}

#[test]
fn the_limit_is_that_of_data_as_it_came() {
    let most = 8_192 - OWN_DETAILS_BYTES - "tenant".len() - "landlord".len() - "2026-12-01".len();
    let of = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert_eq!(details_excess(&details(Some(&of(most)))), None);
    assert_eq!(details_excess(&details(Some(&of(most + 1)))), Some(1));
    let [_, compressed] = written(Some(&of(most)));
    assert!(item_bytes(&compressed) < 400, "and all of it is decoded");
    assert_eq!(decode_details("t", compressed).unwrap(), details(Some(&of(most))));
}

/// Frames as zstd 1.5.7 writes them at level 3. `tests/golden` has whole items.
#[test]
fn frames_with_each_kind_of_block_are_decoded() {
    let same = format!("\"{}\"", "a".repeat(300));
    let frames: [(&[u8], &str); 2] = [
        // A raw block.
        (b"\x28\xb5\x2f\xfd\x24\x07\x39\x00\x00[1,2,3]\xf1\xc6\xe1\x83", "[1,2,3]"),
        // A block with a sequence.
        (b"\x28\xb5\x2f\xfd\x64\x2e\x00\x55\x00\x00\x18\x22a\x22\x01\x00\x28\x2a\xc0\x02\xf7\x6c\x3c\x50", &same),
    ];
    for (frame, text) in frames {
        assert_eq!(take_text(stored(ZSTD, frame, text.len())), Ok(Some(text.to_owned())));
    }
}

#[test]
fn what_contradicts_itself_is_unreadable() {
    let text = text();
    let whole = stored(ZSTD, &frame(text.as_bytes()), text.len());
    assert_eq!(take_text(whole.clone()), Ok(Some(text.clone())));
    let s = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let n = |number: &str| Some(AttributeValue::N(number.to_owned()));
    let (other, long) = (text.len() + 1, frame(&vec![b'1'; 9_000]));
    let twice = [frame(text.as_bytes()), frame(text.as_bytes())].concat();
    let (half, rest) = text.as_bytes().split_at(100);
    let halves = [frame(half), frame(rest)].concat();
    let skippable = [b"\x50\x2a\x4d\x18\x02\0\0\0{}".as_slice(), &frame(text.as_bytes())].concat();
    let (no_text, no_json) = (frame(&vec![b'\xff'; text.len()]), frame(&vec![b'a'; text.len()]));
    let range = "dataBytes is not from 1 to 8192";
    for (attribute, value, why) in [
        (CODEC, s("zst"), "the codec of its data is unknown"),
        (CODEC, None, "data, codec, frame, dataBytes, row and hash disagree"),
        (CODEC, Some(binary("zstd")), "data, codec, frame, dataBytes, row and hash disagree"),
        (DATA, s("{}"), "data, codec, frame, dataBytes, row and hash disagree"),
        (FRAME, None, "data, codec, frame, dataBytes, row and hash disagree"),
        (FRAME, s("frame"), "data, codec, frame, dataBytes, row and hash disagree"),
        (FRAME, Some(AttributeValue::Null(true)), "data, codec, frame, dataBytes, row and hash disagree"),
        (FRAME, Some(binary("")), "the frame: Src size is incorrect"),
        (FRAME, Some(binary("not a frame")), "the frame: Unknown frame descriptor"),
        (FRAME, Some(binary(twice)), "something follows the frame"),
        (FRAME, Some(binary(halves)), "something follows the frame"),
        (FRAME, Some(binary(skippable)), "something follows the frame"),
        (FRAME, Some(binary(no_text)), "invalid utf-8 sequence of 1 bytes from index 0"),
        (FRAME, Some(binary(no_json)), "expected value at line 1 column 1"),
        (FRAME, Some(binary(long)), "the frame: Destination buffer is too small"),
        (DATA_BYTES, None, "data, codec, frame, dataBytes, row and hash disagree"),
        (DATA_BYTES, s("2"), "data, codec, frame, dataBytes, row and hash disagree"),
        (DATA_BYTES, n("0"), range),
        (DATA_BYTES, n("-1"), range),
        (DATA_BYTES, n("8193"), range),
        (DATA_BYTES, n("99999999999999999999"), range),
        (DATA_BYTES, n("1.5"), range),
        (DATA_BYTES, n("1"), "the frame: Destination buffer is too small"),
        (DATA_BYTES, n(&other.to_string()), "bytes of text, and dataBytes is"),
    ] {
        let mut item = whole.clone();
        item.remove(attribute);
        item.extend(value.map(|value| (attribute.to_owned(), value)));
        let said = take_text(item).unwrap_err();
        assert!(said.contains(why), "{attribute}: {said}, and not {why}");
    }
}

#[test]
fn a_frame_that_expands_without_end_takes_no_more_than_the_limit() {
    // Without the size of its content in its header, as a stream writes it, and with a window of 128 MB.
    let mut stream = zstd::stream::Encoder::new(Vec::new(), 19).unwrap();
    stream.long_distance_matching(true).unwrap();
    stream.window_log(27).unwrap();
    std::io::Write::write_all(&mut stream, &vec![b'1'; 50_000_000]).unwrap();
    let bomb = stream.finish().unwrap();
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    assert_eq!(take_text(stored(ZSTD, &bomb, 8_192)), Err("the frame: Destination buffer is too small".to_owned()));
}

#[test]
fn a_damaged_frame_is_an_error_or_the_same_text() {
    for text in [text(), "\"short, and so hardly compressed\"".to_owned(), format!("{}", u64::MAX)] {
        let whole = frame(text.as_bytes());
        for length in 0..whole.len() {
            assert!(take_text(stored(ZSTD, &whole[..length], text.len())).is_err(), "{length} of {}", whole.len());
        }
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let read = take_text(stored(ZSTD, &damaged, text.len()));
            // Some bits of a frame's header mean nothing.
            assert!(read.as_ref().is_err() || read == Ok(Some(text.clone())), "bit {bit}: {read:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(
        codec in "zstd|[a-z]{0,6}",
        frame in prop::collection::vec(any::<u8>(), 0..300),
        has_magic in any::<bool>(),
        bytes in 0..10_000_usize,
    ) {
        let frame = if has_magic { [b"\x28\xb5\x2f\xfd".as_slice(), &frame].concat() } else { frame };
        if let Ok(Some(text)) = take_text(stored(&codec, &frame, bytes)) {
            prop_assert_eq!(text.len(), bytes);
        }
    }

    #[test]
    fn several_damages_are_an_error_or_the_same_text(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        bytes in prop::option::of(0..10_000_usize),
    ) {
        let text = text();
        let mut frame = frame(text.as_bytes());
        for (place, byte) in damage {
            let place = place.index(frame.len());
            frame[place] = byte;
        }
        if let Ok(read) = take_text(stored(ZSTD, &frame, bytes.unwrap_or(text.len()))) {
            prop_assert_eq!(read, Some(text));
        }
    }
}

#[test]
fn an_unreadable_item_is_named() {
    let [_, mut item] = written(Some(&text()));
    item.insert(DATA_BYTES.to_owned(), AttributeValue::N("9000".to_owned()));
    let Err(StoreError::Unreadable { table, key, .. }) = decode_details("history", item) else { panic!("it is read") };
    assert_eq!(table, "history");
    assert!(key.starts_with("PAY#") && key.ends_with(" / DETAILS"), "{key}");
}
