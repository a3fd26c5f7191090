//! Decodes any bytes as a stored frame: the first two are the length of the text, the others the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../src/frame.rs"]
mod frame;

/// The most bytes of a text: `MAX_DETAILS_BYTES`.
const MOST: usize = 8_192;

fuzz_target!(|input: &[u8]| {
    let Some((length, stored)) = input.split_first_chunk() else { return };
    let bytes = usize::from(u16::from_le_bytes(*length)).clamp(1, MOST);
    if let Ok(text) = frame::text_of(stored, bytes) {
        assert_eq!((text.len(), text.capacity()), (bytes, bytes));
    }
    // At each level in use, a compressed text decompresses to the same text.
    let text = String::from_utf8_lossy(stored);
    let text = text.get(..text.floor_char_boundary(MOST)).unwrap_or_default();
    if !text.is_empty() {
        for level in [1, 3] {
            let again = frame::compressed(text, level).and_then(|frame| frame::text_of(&frame, text.len()).ok());
            assert_eq!(again.as_deref(), Some(text));
        }
    }
});
