//! A text as one zstd frame with a checksum, and back.
//!
//! The fuzzer in `fuzz` reads this file alone, so it uses nothing else of this crate.

use std::cell::RefCell;
use std::error::Error;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{find_frame_compressed_size, get_error_name};

thread_local! {
    /// A new compressor takes half as long as a compression.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses a text at a level of zstd's; `None` if zstd fails.
pub(crate) fn compressed(text: &str, level: i32) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = match kept.take() {
            Some(compressor) => compressor,
            None => {
                let mut new = Compressor::new(level).ok()?;
                // Without it, damage could turn one text into another.
                new.include_checksum(true).ok()?;
                new
            }
        };
        let frame = compressor.set_compression_level(level).and_then(|()| compressor.compress(text.as_bytes()));
        *kept = Some(compressor);
        frame.ok()
    })
}

/// Decompresses the frame of a text of exactly this many bytes. The text never takes more.
pub(crate) fn text_of(frame: &[u8], bytes: usize) -> Result<String, Box<dyn Error + Send + Sync>> {
    let whole = find_frame_compressed_size(frame).map_err(|code| format!("the frame: {}", get_error_name(code)))?;
    if whole != frame.len() {
        return Err("something follows the frame".into());
    }
    // The text never grows: zstd writes into its capacity, and fails if the frame has more.
    let mut text = Vec::with_capacity(bytes);
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(frame, &mut text).map_err(|error| format!("the frame: {error}"))?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    })?;
    if text.len() != bytes {
        return Err(format!("the frame has {} bytes of text, and dataBytes is {bytes}", text.len()).into());
    }
    Ok(String::from_utf8(text)?)
}
