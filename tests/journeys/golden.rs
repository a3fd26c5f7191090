//! Golden files: one of each kind that is stored or sent, in `tests/golden`. The kinds are listed from the code.
//!
//! What the code writes today is what its golden file has, and what the golden file has is read and written again to the same. Until the
//! first release `UPDATE_GOLDEN=1` writes the files anew. From then on they are promises: see CONTRIBUTING.md.

mod bank;
mod files;
mod items;
mod log;
mod payments;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use payments_boot::Lookup;
use payments_files::FileKind;
use payments_http::CursorKind;
use payments_model::{EventKind, PaymentId};
use payments_queue::MessageKind;
use payments_store::{Item, ItemKind};
use payments_tests::tables::{item_of, json_of_item};
use serde_json::{Value, json};

pub(crate) use payments::orders;

/// Set to anything, it writes the files instead of comparing them.
const UPDATE: &str = "UPDATE_GOLDEN";

/// What is stored or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Item(ItemKind),
    Cursor(CursorKind),
    /// A place of the log, which is the cursor of its events.
    Place,
    Event(EventKind),
    Message(MessageKind),
    File(FileKind),
}

impl Kind {
    fn all() -> Vec<Self> {
        let items = ItemKind::ALL.iter().copied().map(Self::Item);
        let cursors = CursorKind::ALL.iter().copied().map(Self::Cursor).chain([Self::Place]);
        let events = EventKind::ALL.iter().copied().map(Self::Event);
        let messages = MessageKind::ALL.iter().copied().map(Self::Message);
        let files = FileKind::ALL.iter().copied().map(Self::File);
        items.chain(cursors).chain(events).chain(messages).chain(files).collect()
    }

    /// The name of its golden file, without the ending.
    fn name(self) -> String {
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
type Goldens = BTreeMap<String, Vec<Value>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The golden forms of a kind, as its file has them.
fn golden(kind: Kind) -> Result<Vec<Value>> {
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

fn item_form(case: &str, table: &str, item: &Item) -> Value {
    json!({ "case": case, "table": table, "item": json_of_item(item) })
}

fn text_form(case: &str, text: &str) -> Value {
    json!({ "case": case, "text": text })
}

fn file_form(case: &str, name: &str, bytes: &[u8]) -> Value {
    json!({ "case": case, "name": name, "bytes": STANDARD.encode(bytes) })
}

/// The bytes of a file's golden form.
fn bytes_of(form: &Value) -> Result<Vec<u8>> {
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
    Ok(form)
}

/// Fails if two lists of forms differ, and says which.
fn assert_same(kind: &str, are: &[Value], want: &[Value], how: &str) -> Result<()> {
    let (are, want): (Vec<_>, Vec<_>) =
        (are.iter().map(unpacked).collect::<Result<_>>()?, want.iter().map(unpacked).collect::<Result<_>>()?);
    assert_eq!(are, want, "{kind} {how}");
    Ok(())
}

/// Whether the files are to be written anew, which ends with the first release.
fn is_update(version: &str, asked: bool) -> Result<bool> {
    ensure!(
        !asked || version.ends_with("-dev"),
        "version {version} is released, so its golden files stay as they are, and {UPDATE} is an error; see CONTRIBUTING.md"
    );
    Ok(asked)
}

/// All that the code writes, by kind.
async fn written() -> Result<Goldens> {
    let mut goldens = items::written().await?;
    goldens.extend(texts::written()?);
    goldens.extend(files::written().await?);
    Ok(goldens)
}

#[tokio::test]
async fn every_kind_has_golden_forms_that_are_read_and_written_again() -> Result<()> {
    let (kinds, written) = (Kind::all(), written().await?);
    if is_update(env!("CARGO_PKG_VERSION"), Lookup::environment().text(UPDATE).is_some())? {
        std::fs::create_dir_all(folder())?;
        for (name, forms) in &written {
            std::fs::write(folder().join(format!("{name}.json")), serde_json::to_string_pretty(forms)? + "\n")?;
        }
    }
    let names: BTreeSet<String> = kinds.iter().map(|kind| format!("{}.json", kind.name())).collect();
    let files = std::fs::read_dir(folder())?.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
    assert_eq!(files.collect::<Result<BTreeSet<_>>>()?, names, "each kind has a file, and each file a kind");
    for kind in &kinds {
        let (name, golden) = (kind.name(), golden(*kind)?);
        assert!(!golden.is_empty(), "{name} has no golden form");
        let today = written.get(&name).with_context(|| format!("nothing writes {name} here"))?;
        assert_same(
            &name,
            today,
            &golden,
            &format!("are written differently; until a release, {UPDATE}=1 writes them"),
        )?;
    }
    for (name, again) in items::again().await? {
        let kind = kinds.iter().find(|kind| kind.name() == name).with_context(|| format!("{name} is no kind"))?;
        assert_same(&name, &again, &golden(*kind)?, "are written again, and differ from what was read")?;
    }
    for kind in kinds {
        for form in golden(kind)? {
            match kind {
                Kind::Item(_) => {}
                Kind::File(kind) => files::read(kind, &form)?,
                _ => texts::read(kind, form["text"].as_str().context("no text")?)?,
            }
        }
    }
    Ok(())
}

#[test]
fn golden_files_change_until_the_release() -> Result<()> {
    assert!(is_update("0.1.0-dev", true)?);
    assert!(!is_update("0.1.0-dev", false)? && !is_update("0.1.0", false)?);
    assert!(is_update("0.1.0", true).is_err());
    Ok(())
}
