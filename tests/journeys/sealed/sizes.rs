//! The sizes of sealed payments, as `docs/performance.md` has them.

use bytes::Bytes;
use fastrand::Rng;
use payments_http::PaymentView;
use payments_machine::given::moved;
use payments_machine::payload::DataKind;
use payments_model::{AccountId, Actor, Details, Event, Head, Instruction, JsonText, Money, PaymentId, Settlement};
use payments_sealed::{MAX_PART_BYTES, MAX_PART_ROWS, Part, PartName, SealedRow, TAIL_BYTES, Tail, encode, read_all};
use payments_tests::prelude::*;

/// A processed payment, whose account has 25 of a million a day.
fn row(number: u32, kind: DataKind, random: &mut Rng) -> Result<SealedRow> {
    let account: AccountId = format!("account-{:05}", number / 25).parse()?;
    let payment_id = PaymentId::derive(&account, &format!("feed-{number}").parse()?);
    let data = JsonText::from_stored(kind.text(random, 7_550))?;
    let instruction = Instruction {
        account,
        payee: "landlord".parse()?,
        money: Money { amount: random.i64(1..1_000_000).try_into()?, currency: "GBP".parse()? },
        scheduled_for: "2026-11-20".parse()?,
        date_rule: None,
        reference: None,
        data: Some(data.into()),
    };
    let at = |seconds: u32| {
        format!("2026-11-20T{:02}:{:02}:{:02}Z", 1 + seconds / 3600, seconds / 60 % 60, seconds % 60).parse()
    };
    let (zone, shards) = ("Europe/London".parse()?, "32".parse()?);
    let details =
        Details::accept(payment_id, instruction, zone, shards, at(number % 1_800)?, Actor::client("the feed"));
    let claimed = 3_600 + random.u32(..1_800);
    let pending = moved(&Head::scheduled(&details), &Event::Sweep, at(claimed)?, Actor::sweep())?;
    let settlement = Settlement::Processed(format!("TX-{}", random.u64(..)).parse()?);
    let settled_at = at(claimed + random.u32(1..60))?;
    let head = moved(&pending, &Event::Settle(settlement), settled_at, Actor::transaction_service())?;
    let view = PaymentView::new(&head).with_dates(&details).with_data(details.instruction.data.as_ref());
    Ok(SealedRow::new(&serde_json::to_string(&view.ok().context("its data is not JSON")?)?, None)?)
}

/// A whole part, and its number of rows.
fn whole(kind: DataKind) -> Result<(Bytes, usize)> {
    let mut random = Rng::with_seed(1);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < MAX_PART_ROWS.try_into()? && bytes < MAX_PART_BYTES {
        let row = row(rows.len().try_into()?, kind, &mut random)?;
        bytes += row.bytes();
        rows.push(row);
    }
    let name = PartName {
        due_date: "2026-11-20".to_owned(),
        number: 1,
        rows_before: 0,
        sealed_at: "2027-01-10T04:10:00Z".parse()?,
        kept_days: 0,
    };
    let file = Bytes::from(encode(&name, &rows)?);
    ensure!(read_all(&file)?.1 == rows, "the part has other rows");
    Ok((file, rows.len()))
}

/// The calls and the bytes of a read of a row, with that of the part's end. Ranges less than `COALESCED` apart are one call.
fn read_of_a_row(file: &Bytes, row: usize) -> Result<(u64, u64)> {
    /// As `object_store` reads ranges.
    const COALESCED: u64 = 1 << 20;
    let len = file.len() as u64;
    let Tail::Part(part) = Part::from_tail(len, &file.slice(file.len().saturating_sub(TAIL_BYTES.try_into()?)..))?
    else {
        bail!("the tail is too short")
    };
    let mut ranges = part.ranges(row)?;
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut calls, mut bytes) = (1, TAIL_BYTES.min(len));
    let mut until = None;
    for range in ranges {
        let gap = until.map(|until| range.start.saturating_sub(until)).filter(|gap| *gap < COALESCED);
        calls += u64::from(gap.is_none());
        bytes += gap.unwrap_or(0) + range.end - range.start;
        until = Some(range.end);
    }
    Ok((calls, bytes))
}

#[test]
fn a_sealed_payment_has_few_bytes() -> Result<()> {
    for (kind, most) in [(DataKind::Structured, 1_100), (DataKind::Small, 100)] {
        let (file, rows) = whole(kind)?;
        let bytes = file.len().div_ceil(rows);
        println!("{}: {bytes} bytes a payment", kind.name());
        assert!(bytes <= most, "{} payments have {bytes} bytes each, of {most}", kind.name());
        for row in [0, rows / 2, rows - 1] {
            let (calls, bytes) = read_of_a_row(&file, row)?;
            println!("{}: {calls} calls and {bytes} bytes for row {row}", kind.name());
            assert!(calls <= 4 && bytes <= 1 << 20, "{calls} calls and {bytes} bytes for row {row}");
        }
    }
    Ok(())
}
