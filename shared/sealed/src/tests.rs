//! All that the API shows of a payment comes back from a part, and changed bytes are noticed.

use payments_http::{PaymentView, VersionsView};
use payments_model::{
    Actor, Amendment, AmendmentId, CalendarVersion, DateMove, DateRule, Details, Failure, Head, Instruction, JsonText,
    Money, MoveReason, PaymentId, ScheduledFor, State, Status, TrailEntry, UtcSecond,
};
use proptest::prelude::*;

use super::*;
use bytes::Bytes;

/// A payment's fields, drawn at random.
type Drawn = ((u32, i64, u8), (Option<String>, Option<String>), (usize, u8, u32));

fn drawn() -> impl Strategy<Value = Drawn> {
    let data = proptest::option::of(".{0,40}");
    let reference = proptest::option::of("[A-Za-z0-9]{1,35}");
    let fields = (any::<u32>(), 1..=999_999_999_999_i64, 0..4_u8);
    (fields, (reference, data), (0..3_usize, 0..4_u8, 0..2_000_000_000_u32))
}

/// The payment's row, and the API's JSON of it and of its versions.
fn sealed((fields, texts, changes): &Drawn) -> (SealedRow, String, Option<String>) {
    let (id, amount, form) = fields;
    let (reference, data) = texts;
    let (amendments, end, seconds) = changes;
    let account: payments_model::AccountId = format!("a{}", id % 7).parse().unwrap();
    let payment_id = PaymentId::derive(&account, &format!("k{id}").parse().unwrap());
    let at = |seconds: u32| -> UtcSecond {
        let at = chrono::DateTime::from_timestamp(1_700_000_000 + i64::from(seconds), 0).unwrap();
        at.format("%Y-%m-%dT%H:%M:%SZ").to_string().parse().unwrap()
    };
    let scheduled_for = match form % 2 {
        0 => ScheduledFor::Date("2026-11-20".parse().unwrap()),
        _ => "2026-11-20T09:00:00+01:00".parse().unwrap(),
    };
    let instruction = Instruction {
        account,
        payee: "landlord".parse().unwrap(),
        money: Money { amount: (*amount).try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for,
        date_rule: (form / 2 == 1).then_some(DateRule::Following),
        reference: reference.as_ref().map(|text| text.parse().unwrap()),
        data: data.as_ref().map(|text| {
            // With a space that no writer of JSON would put.
            JsonText::from_stored(format!("{{\"a\" :{}}}", serde_json::to_string(text).unwrap())).unwrap().into()
        }),
    };
    let (zone, shards) = ("Europe/London".parse().unwrap(), "10".parse().unwrap());
    let mut first = Details::accept(payment_id, instruction, zone, shards, at(*seconds), Actor::client("feed"));
    if form / 2 == 1 {
        let calendar = Some(CalendarVersion::from_stored("UK".to_owned(), "2026-01".to_owned()));
        first.moved = Some(DateMove { reason: MoveReason::Holiday, calendar });
    }
    let mut head = Head::scheduled(&first);
    let mut chain = vec![first];
    for number in 0..*amendments {
        let id = AmendmentId::derive(payment_id, &format!("m{number}").parse().unwrap());
        let mut next = chain[number].amended(
            &head,
            id,
            chain[number].instruction.clone(),
            (at(*seconds + 1), Actor::operator("ada")),
        );
        next.instruction.money.amount = (1 + *amount / 2).try_into().unwrap();
        let Amendment { name, .. } = next.amendment.unwrap();
        (head.version, head.amendment, head.money) = (name.version, Some(name), next.instruction.money);
        chain.push(next);
    }
    let (state, status) = match end {
        0 => (State::Cancelled, Status::Cancelled),
        1 => (State::Failed(Failure::new(Some("AM04"), "no \"funds\"\n")), Status::Failed),
        _ => (State::Processed(format!("TX-{id}").parse().unwrap()), Status::Processed),
    };
    if *end > 0 {
        head.moved.push(TrailEntry { status: Status::Pending, at: at(*seconds + 2), by: Actor::sweep() });
    }
    head.moved.push(TrailEntry { status, at: at(*seconds + 3), by: Actor::transaction_service() });
    (head.state, head.version) = (state, head.version + 2);
    let last = chain.last().unwrap();
    let view = PaymentView::new(&head).with_dates(last).with_data(last.instruction.data.as_ref()).unwrap();
    let payment = serde_json::to_string(&view).unwrap();
    let versions = VersionsView::new(&chain, true).unwrap();
    let versions = (chain.len() > 1).then(|| serde_json::to_string(&versions).unwrap());
    (SealedRow::new(&payment, versions.as_deref()).unwrap(), payment, versions)
}

fn name() -> PartName {
    PartName {
        due_date: "2026-11-20".to_owned(),
        number: 2,
        rows_before: 10_000,
        sealed_at: "2027-01-10T04:10:00Z".parse().unwrap(),
        kept_days: 0,
    }
}

/// Reads a row as a function does: the tail, and then the ranges that it names.
fn read_row(file: &Bytes, row: usize) -> Result<SealedRow, SealedError> {
    let len = file.len() as u64;
    let slice = |range: &std::ops::Range<u64>| file.slice(range.start as usize..range.end as usize);
    let mut tail = TAIL_BYTES.min(len).min(500);
    let part = loop {
        match Part::from_tail(len, &slice(&(len - tail..len)))? {
            Tail::Part(part) => break part,
            Tail::Longer(bytes) => tail = bytes,
        }
    };
    let ranges = part.ranges(row)?;
    part.row(row, &ranges.into_iter().map(|range| (range.clone(), slice(&range))).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_that_the_api_shows_comes_back(drawn in proptest::collection::vec(drawn(), 1..40)) {
        let payments: Vec<_> = drawn.iter().map(sealed).collect();
        let rows: Vec<_> = payments.iter().map(|(row, ..)| row.clone()).collect();
        let file = Bytes::from(encode(&name(), &rows).unwrap());
        prop_assert_eq!(&encode(&name(), &rows).unwrap(), &file, "the same rows make other bytes");
        let (part, read) = read_all(&file).unwrap();
        prop_assert_eq!((&part.name, part.rows()), (&name(), rows.len()));
        prop_assert_eq!(&read, &rows);
        for (number, (_, payment, versions)) in payments.iter().enumerate() {
            let row = read_row(&file, number).unwrap();
            prop_assert_eq!(&row.payment(), payment);
            prop_assert_eq!(row.versions(), versions.as_deref());
        }
        let ids = part.texts_of("payment_id", &[(0..file.len() as u64, file.clone())]).unwrap();
        let want: Vec<_> = rows.iter().map(|row| row.text("paymentId").unwrap().to_owned()).collect();
        prop_assert_eq!(ids, want);
        let is_missing = matches!(read_row(&file, rows.len()), Err(SealedError::NoRow { .. }));
        prop_assert!(is_missing);
    }
}

/// Rows of several row groups and many pages.
fn many(rows: u32) -> Vec<SealedRow> {
    let text = |id: u32| Some(format!("{id}").repeat(1 + (id % 500) as usize));
    (0..rows).map(|id| sealed(&((id, 500, (id % 4) as u8), (None, text(id)), (0, (id % 4) as u8, id))).0).collect()
}

#[test]
fn a_row_of_any_row_group_needs_few_bytes() {
    let rows = many(12_001);
    let file = Bytes::from(encode(&name(), &rows).unwrap());
    let Tail::Part(part) = Part::from_tail(file.len() as u64, &file).unwrap() else {
        panic!("the whole file is too short")
    };
    for row in [0, 1, 4_999, 5_000, 9_999, 10_000, 12_000] {
        assert_eq!(read_row(&file, row).unwrap(), rows[row]);
        let bytes: u64 = part.ranges(row).unwrap().iter().map(|range| range.end - range.start).sum();
        assert!(bytes < 256 << 10, "{bytes} bytes for row {row}");
    }
    assert_eq!(read_all(&file).unwrap().1, rows);
}

#[test]
fn bytes_that_changed_are_noticed() {
    let rows = many(10);
    let file = encode(&name(), &rows).unwrap();
    let (part, _) = read_all(&Bytes::from(file.clone())).unwrap();
    let end = part.ranges_of("checksum").unwrap().last().unwrap().end as usize;
    let mut noticed = 0;
    for place in 0..file.len() {
        let mut changed = file.clone();
        changed[place] ^= 1 << (place % 8);
        let changed = Bytes::from(changed);
        let all = read_all(&changed);
        assert!(all.is_err() || place >= end, "the change of byte {place} is not noticed");
        // Bytes that nothing reads, such as bounds, may change. What is read is right.
        assert!(all.map_or(true, |(_, read)| read == rows), "the changed byte {place} is believed");
        match read_row(&changed, 9) {
            Ok(read) => assert!(read == rows[9], "the changed byte {place} is believed"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > file.len() / 3, "{noticed} changes of {} bytes were noticed by a row", file.len());
}

#[test]
fn a_payment_with_a_field_without_a_column_is_not_sealed() {
    let (_, payment, _) = sealed(&((1, 500, 0), (None, None), (0, 2, 0)));
    for (payment, want) in [
        (payment.replace("\"status\"", "\"state\""), "status"),
        (payment.replace("{\"paymentId\"", "{\"color\":1,\"paymentId\""), "color"),
        (payment.replace("\"amountMinor\":500", "\"amountMinor\":5e2"), "amountMinor"),
        (payment.replace("\"dueDate\":\"2026-11-20\"", "\"dueDate\":\"2026-11-31\""), "dueDate"),
    ] {
        let error = SealedRow::new(&payment, None).unwrap_err();
        assert!(matches!(&error, SealedError::Field { field, .. } if field == want), "{error}: {payment}");
    }
}
