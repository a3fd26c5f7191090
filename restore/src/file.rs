//! Files of the restore's folder: each is written as a whole, or not at all.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Writes a file beside the old one, and puts it in its place: no cut leaves a part of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let written = std::fs::File::create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    });
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// The text of a file. Null if it cannot be read.
pub(crate) fn text(path: &Path) -> Value {
    std::fs::read_to_string(path).map_or(Value::Null, Value::String)
}

/// The JSON of a file, or its text if it has none.
pub(crate) fn json(path: &Path) -> Value {
    let text = text(path);
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(text)
}
