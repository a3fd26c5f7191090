//! Golden files of the journal, of the report, of an undo and of a sealed part.

use lambda_runtime::LambdaEvent;
use object_store::ObjectStoreExt as _;
use payments_files::{
    FileKind, JournalObject, PlanReader, PlanRow, PlanWriter, PublishedReport, UndoEnd, claimed_csv, claimed_path,
    decode_part, encode_part, part_path, plan_path,
};
use payments_machine::given::{details, moved};
use payments_model::{Event, Head, Settlement, Status, UndoId};
use payments_sealed::{PartName, SealedRow, encode, read_all};
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
    goldens.extend(undo_of_two()?);
    let sealed = file_form("two payments", "sealed/date=2026-11-20/000001.parquet", &sealed_of_two()?);
    goldens.insert(Kind::File(FileKind::Sealed).name(), vec![sealed]);
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

/// A sealed part with a payment in its first form, and one that was amended.
fn sealed_of_two() -> Result<Vec<u8>> {
    let mut rows = Vec::new();
    for amount in [None, Some("501")] {
        let first = details("k", "2026-11-20", "2026-11-20T09:00:00Z".parse()?)?;
        let mut head = Head::scheduled(&first);
        let mut chain = vec![first];
        if let Some(amount) = amount {
            let mut instruction = chain[0].instruction.clone();
            instruction.money.amount = amount.parse()?;
            let id = payments_model::AmendmentId::derive(head.payment_id, &"change".parse()?);
            let by = payments_model::Actor::client("test");
            chain.push(chain[0].amended(&head, id, instruction, ("2026-11-20T09:01:00Z".parse()?, by)));
            (head.money, head.version) = (chain[1].instruction.money, 2);
        }
        let head =
            moved(&head, &Event::Cancel, "2026-11-20T09:02:00Z".parse()?, payments_model::Actor::operator("ada"))?;
        let last = chain.last().context("details")?;
        let view = serde_json::to_string(&payments_http::PaymentView::new(&head).with_dates(last))?;
        let versions = payments_http::VersionsView::new(&chain, true).ok().context("versions")?;
        let versions = amount.map(|_| serde_json::to_string(&versions)).transpose()?;
        rows.push(SealedRow::new(&view, versions.as_deref())?);
    }
    let name = PartName {
        due_date: "2026-11-20".to_owned(),
        number: 1,
        rows_before: 0,
        sealed_at: "2027-01-10T04:10:00Z".parse()?,
        kept_days: 0,
    };
    Ok(encode(&name, &rows)?)
}

/// A payment that a client scheduled, one whose create was cut off, and their ends.
fn undone() -> Result<(UndoId, [(PlanRow, UndoEnd); 2])> {
    let head = Head::scheduled(&details("one", "2026-12-01", "2026-11-20T09:00:00Z".parse()?)?);
    let row = PlanRow {
        head: head.key(),
        version: head.version,
        payee: head.payee.clone(),
        money: head.money,
        status: Some(Status::Scheduled),
    };
    let cut_off = PlanRow { version: 0, status: None, ..row.clone() };
    Ok(("0123456789abcdef".parse()?, [(row, UndoEnd::Claimed), (cut_off, UndoEnd::Cancelled)]))
}

fn plan_of(id: &UndoId, rows: impl IntoIterator<Item = PlanRow>) -> Result<Vec<u8>> {
    let mut plan = PlanWriter::new(id, 1, &["the log has no head".to_owned()])?;
    rows.into_iter().try_for_each(|row| plan.add(&row))?;
    Ok(plan.finish()?)
}

/// The files of an undo of two payments.
fn undo_of_two() -> Result<Goldens> {
    let (id, ends) = undone()?;
    let plan = plan_of(&id, ends.iter().map(|(row, _)| row.clone()))?;
    let files = [
        (FileKind::UndoPlan, plan_path(&id, 1), plan),
        (FileKind::UndoPart, part_path(&id, 1, 0), encode_part(&ends)?),
        (FileKind::UndoClaimed, claimed_path(&id, 1), claimed_csv(&ends, true)?),
    ];
    let form = |(kind, path, bytes): (FileKind, object_store::path::Path, Vec<u8>)| {
        (Kind::File(kind).name(), vec![file_form("two payments", path.as_ref(), &bytes)])
    };
    Ok(files.map(form).into())
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
        FileKind::UndoPlan => {
            let (id, _) = undone()?;
            let again = plan_of(&id, PlanReader::new(&id, 1, &bytes)?.next_rows(3)?)?;
            let again = file_form("two payments", name, &again);
            assert_same(
                name,
                &[again],
                std::slice::from_ref(form),
                "is written again, and differs from what was read",
            )?;
        }
        FileKind::UndoPart => {
            let again = file_form("two payments", name, &encode_part(&decode_part(&bytes)?)?);
            assert_same(
                name,
                &[again],
                std::slice::from_ref(form),
                "is written again, and differs from what was read",
            )?;
        }
        FileKind::Sealed => {
            let (part, rows) = read_all(&bytes.into())?;
            let again = file_form("two payments", name, &encode(&part.name, &rows)?);
            assert_same(
                name,
                &[again],
                std::slice::from_ref(form),
                "is written again, and differs from what was read",
            )?;
        }
        FileKind::UndoClaimed => ensure!(String::from_utf8(bytes)?.lines().count() == 2, "{name}"),
        FileKind::Summary => {
            let read: Value = serde_json::from_slice(&bytes)?;
            ensure!(read["rows"] == 2, "{read}");
        }
    }
    Ok(())
}
