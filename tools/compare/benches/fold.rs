//! Stream records per second of one core: the fold alone, and with parsing the event. The figures are in
//! docs/performance.md. Run with `cargo bench -p payments-compare --bench fold`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use payments_model::{Epoch, Logged, UtcSecond};
use payments_store::segment_of;
use serde_json::{Value, json};
use stream_aggregator::{Change, Event, fold};

/// A full batch.
const RECORDS: usize = 1_000;

/// An event of claimed payments, with three dates and three currencies.
fn event() -> Value {
    let record = |place: usize| {
        let (date, currency) = (1 + place % 3, ["GBP", "EUR", "USD"][place % 3]);
        let due_at = format!("2026-12-0{date}T09:00:00Z");
        let payment_id = format!("00000000-0000-5000-8000-{place:012}");
        let image = |status: &str, version: usize| {
            let text = |text: &str| json!({ "S": text });
            let entry = |status: &&str| json!({ "M": { "status": text(status), "at": text(&due_at), "by": text("c:compare") } });
            let trail: Vec<_> = ["SCHEDULED", "PENDING"][..version].iter().map(entry).collect();
            let mut image = json!({
                "pk": text(&format!("ACCT#acc-{}", place % 100)), "sk": text(&format!("{due_at}#{payment_id}")),
                "shard": { "N": (place % 10).to_string() }, "status": text(status), "version": { "N": version.to_string() },
                "due": text(&format!("{status}#2026-12-0{date}#{due_at}#{payment_id}")), "currency": text(currency),
                "payeeAccountId": text("landlord"), "amountMinor": { "N": "129900" }, "scheduledFor": text(&due_at),
                "trail": { "L": trail },
            });
            if status == "PENDING" {
                image["dispatchAttempt"] = json!({ "N": "1" });
            }
            image
        };
        json!({
            "eventID": place.to_string(), "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-2",
            "dynamodb": {
                "ApproximateCreationDateTime": 1_796_000_000, "SequenceNumber": (100_000 + place).to_string(),
                "Keys": { "pk": { "S": "ACCT#acc" }, "sk": { "S": "key" } }, "SizeBytes": 900,
                "OldImage": image("SCHEDULED", 1), "NewImage": image("PENDING", 2),
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        })
    };
    json!({ "Records": (0..RECORDS).map(record).collect::<Vec<_>>(), "shardId": "shardId-1" })
}

fn counting(criterion: &mut Criterion) {
    let text = event().to_string();
    let now: UtcSecond = "2026-12-03T10:00:00Z".parse().unwrap_or(UtcSecond::MIN);
    let fold = |changes: &[Change]| fold(changes, Epoch::FIRST, None).unwrap_or_default();
    let segment = |changes: &[Change]| {
        let commits = fold(changes);
        commits.iter().map(|commit| segment_of(Epoch::FIRST, 1, &commit.events, now)).collect::<Vec<_>>()
    };
    let read = |text: &str| {
        let event: Event = serde_json::from_str(text).unwrap_or_default();
        event.changes("payments", now).unwrap_or_default()
    };
    let changes = read(&text);
    // Their events are more than a segment holds.
    assert_eq!((changes.len(), fold(&changes).len()), (RECORDS, 2));
    let other = changes.iter().map(|change| &change.logged).find(|logged| !matches!(logged, Logged::Version(_)));
    assert_eq!(other, None, "every change is an event");
    assert!(segment(&changes)[0].contains_key("frame"), "events are compressed");
    let mut group = criterion.benchmark_group("records");
    group.throughput(Throughput::Elements(RECORDS as u64));
    group.bench_function("fold and events", |bench| bench.iter(|| fold(black_box(&changes))));
    group.bench_function("fold, events and segment", |bench| bench.iter(|| segment(black_box(&changes))));
    group.bench_function("read, fold, events and segment", |bench| bench.iter(|| segment(&read(black_box(&text)))));
    group.finish();
}

criterion_group!(benches, counting);
criterion_main!(benches);
