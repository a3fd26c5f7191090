//! Golden files of the journal and of the report.

use lambda_runtime::LambdaEvent;
use object_store::ObjectStoreExt as _;
use payments_files::{FileKind, JournalObject, PublishedReport};
use payments_model::{Event, Settlement};
use payments_tests::prelude::*;

use super::forms::{Goldens, Kind, assert_same, bytes_of, file_form, golden};
use super::texts;

/// The first and the end position of the journal's file.
const PLACES: [&str; 2] = ["1.3.0", "1.5.0"];

/// The files that the code writes.
pub(super) async fn written() -> Result<Goldens> {
    let [first, after] = [PLACES[0].parse()?, PLACES[1].parse()?];
    let journal = JournalObject { first, after, events: texts::all_events()? };
    let journal = file_form("every kind of event", JournalObject::path(first).as_ref(), &journal.encode()?);
    let mut goldens = Goldens::from([(Kind::File(FileKind::Journal).name(), vec![journal])]);
    goldens.extend(report_of_two().await?);
    Ok(goldens)
}

/// The files of a report about two payments.
async fn report_of_two() -> Result<Goldens> {
    let world = World::open().await?;
    let order = |reference: &str| {
        json!({
            "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20",
            "reference": reference,
        })
    };
    for (key, end, at) in [("one", "PROCESSED", "2026-11-20T09:10:00Z"), ("two", "FAILED", "2026-11-20T09:11:00Z")] {
        let id = world.create("tenant", key, &order(key)).await?;
        let settlement: Settlement = texts::settlement_of(end)?;
        move_on(&world, id.parse()?, vec![Event::Sweep, Event::Settle(settlement)], at).await?;
    }
    world.set_clock("2026-11-20T10:00:00Z")?;
    let mut context = context(NO_DEADLINE);
    "a-request".clone_into(&mut context.request_id);
    let event = LambdaEvent::new(serde_json::from_value(json!({ "action": "report" }))?, context);
    let outcome = world.functions().report.handle(event).await.map_err(anyhow::Error::msg)?;
    ensure!(outcome.published.len() == 2, "{outcome:?}");
    let mut goldens = Goldens::new();
    for name in outcome.published {
        let bytes = world.outside.reports.get(&name.as_str().into()).await?.bytes().await?;
        let kind = if name.ends_with(FileKind::Report.ending()) { FileKind::Report } else { FileKind::Summary };
        goldens.insert(Kind::File(kind).name(), vec![file_form("two settlements", &name, &bytes)]);
    }
    Ok(goldens)
}

/// Reads a golden file, and writes it again if its reader is also what writes it.
pub(super) fn read(kind: FileKind, form: &Value) -> Result<()> {
    let (name, bytes) = (form["name"].as_str().context("no name")?, bytes_of(form)?);
    match kind {
        FileKind::Journal => {
            let read = JournalObject::decode(PLACES[0].parse()?, &bytes)?;
            ensure!(JournalObject::path(read.first).as_ref() == name, "{name}");
            let again = file_form("every kind of event", name, &read.encode()?);
            assert_same(
                name,
                &[again],
                std::slice::from_ref(form),
                "is written again, and differs from what was read",
            )?;
        }
        FileKind::Report => {
            let summary = bytes_of(golden(Kind::File(FileKind::Summary))?.first().context("no summary")?)?;
            let read = PublishedReport::decode(name, &bytes, &summary).map_err(anyhow::Error::msg)?;
            ensure!((read.run.number, read.run.rows) == (1, 2), "{read:?}");
        }
        FileKind::Summary => {
            let read: Value = serde_json::from_slice(&bytes)?;
            ensure!(read["rows"] == 2, "{read}");
        }
    }
    Ok(())
}
