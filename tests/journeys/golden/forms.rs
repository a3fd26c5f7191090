//! The kinds of golden files, their forms, and their paths.

use payments_tests::prelude::*;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use payments_files::FileKind;
use payments_http::CursorKind;
use payments_model::{EventKind, PaymentId};
use payments_queue::MessageKind;
use payments_store::ItemKind;
use payments_tests::tables::{item_of, json_of_item};

/// A kind of stored or sent data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Item(ItemKind),
    Cursor(CursorKind),
    /// A place of the log, which is the cursor of its events.
    Place,
    Event(EventKind),
    Message(MessageKind),
    File(FileKind),
}

impl Kind {
    pub(super) fn all() -> Vec<Self> {
        let items = ItemKind::ALL.iter().copied().map(Self::Item);
        let cursors = CursorKind::ALL.iter().copied().map(Self::Cursor).chain([Self::Place]);
        let events = EventKind::ALL.iter().copied().map(Self::Event);
        let messages = MessageKind::ALL.iter().copied().map(Self::Message);
        let files = FileKind::ALL.iter().copied().map(Self::File);
        items.chain(cursors).chain(events).chain(messages).chain(files).collect()
    }

    /// The name of its golden file, without the ending.
    pub(super) fn name(self) -> String {
        match self {
            Self::Item(kind) => format!("item.{kind}"),
            Self::Cursor(kind) => format!("cursor.{kind}"),
            Self::Place => "cursor.log".to_owned(),
            Self::Event(kind) => format!("event.{kind}"),
            Self::Message(kind) => format!("message.{kind}"),
            Self::File(kind) => format!("file.{kind}"),
        }
    }
}

/// The golden forms of each kind, by its name.
pub(super) type Goldens = BTreeMap<String, Vec<Value>>;

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The golden forms of a kind, as its file has them.
pub(super) fn golden(kind: Kind) -> Result<Vec<Value>> {
    let path = folder().join(format!("{}.json", kind.name()));
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// The golden items of a kind that one case has, with the names of their tables.
pub(crate) fn golden_items(kind: ItemKind, case: &str) -> Result<Vec<(String, Item)>> {
    let golden = golden(Kind::Item(kind))?.into_iter().filter(|form| form["case"] == case);
    golden.map(|form| Ok((form["table"].as_str().context("no table")?.to_owned(), item_of(&form["item"])?))).collect()
}

/// The golden first details of a payment.
pub(crate) fn golden_details(account: &str, key: &str) -> Result<Item> {
    let partition = format!("PAY#{}", PaymentId::derive(&account.parse()?, &key.parse()?));
    let mut all = golden_items(ItemKind::FirstDetails, "payments")?.into_iter().map(|(_, item)| item);
    all.find(|item| item["pk"].as_s() == Ok(&partition)).with_context(|| key.to_owned())
}

pub(super) fn item_form(case: &str, table: &str, item: &Item) -> Value {
    json!({ "case": case, "table": table, "item": json_of_item(item) })
}

pub(super) fn text_form(case: &str, text: &str) -> Value {
    json!({ "case": case, "text": text })
}

pub(super) fn file_form(case: &str, name: &str, bytes: &[u8]) -> Value {
    json!({ "case": case, "name": name, "bytes": STANDARD.encode(bytes) })
}

/// The bytes of a file's golden form.
pub(super) fn bytes_of(form: &Value) -> Result<Vec<u8>> {
    Ok(STANDARD.decode(form["bytes"].as_str().context("no bytes")?)?)
}

/// A golden form with its texts in the place of their compressed bytes: another release of a library may compress otherwise, and
/// the form stays the same.
fn unpacked(form: &Value) -> Result<Value> {
    let mut form = form.clone();
    if let Some(frame) = form["item"].as_object_mut().and_then(|item| item.get_mut("frame")) {
        let bytes = STANDARD.decode(frame["B"].as_str().context("a frame is bytes")?)?;
        *frame = String::from_utf8(zstd::decode_all(bytes.as_slice())?)?.into();
    }
    if form["name"].as_str().is_some_and(|name| name.ends_with(".gz")) {
        let bytes = bytes_of(&form)?;
        form["bytes"] = std::io::read_to_string(flate2::read::GzDecoder::new(bytes.as_slice()))?.into();
    }
    if form["name"].as_str().is_some_and(|name| name.ends_with(".parquet")) {
        let (part, rows) = payments_sealed::read_all(&bytes_of(&form)?.into())?;
        let rows = rows.iter().map(|row| format!("{} {:?}", row.payment(), row.versions())).collect::<Vec<_>>();
        form["bytes"] = json!([format!("{:?}", part.name), rows]);
    }
    // The version is that of today's calendar. It changes with the calendar's file and does not belong to the form.
    if let Some(version) = form.pointer_mut("/item/calendarVersion/S").filter(|it| it.as_str().is_some_and(is_version))
    {
        *version = "today's".into();
    }
    Ok(form)
}

/// Whether a text has the form of a calendar's version: a date and 8 hexadecimal digits.
fn is_version(text: &str) -> bool {
    let digits = text.strip_prefix("20").and_then(|rest| rest.rsplit_once('-')).map(|(_, digits)| digits);
    text.len() == 19 && digits.is_some_and(|it| it.len() == 8 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Fails if two lists of forms differ, and says which.
pub(super) fn assert_same(kind: &str, are: &[Value], want: &[Value], how: &str) -> Result<()> {
    let (are, want): (Vec<_>, Vec<_>) =
        (are.iter().map(unpacked).collect::<Result<_>>()?, want.iter().map(unpacked).collect::<Result<_>>()?);
    assert_eq!(are, want, "{kind} {how}");
    Ok(())
}
