//! The counts of dates, as the API shows them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use payments_machine::{CapacityUse, Fate, Recorder};
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::tables::{number, text};
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

const DAY: &str = "2026-12-01";

/// Creates payments.
async fn put(world: &World, date: &str, currency: &str, amount: i64, count: usize) -> Result<()> {
    let entry = |n: usize| {
        json!({
            "accountId": "payer", "idempotencyKey": format!("{date}-{currency}-{amount}-{n}"),
            "payeeAccountId": "shop", "amountMinor": amount, "currency": currency, "scheduledFor": date,
        })
    };
    world.create_all((0..count).map(entry)).await.map(drop)
}

async fn counts(world: &World, query: &str) -> Result<Reply> {
    let reply = world.send(Ask::get(&format!("/counts?{query}"))).await?;
    ensure!(reply.status == 200, "{query}: {reply}");
    Ok(reply)
}

/// The entries of an answer.
fn entries(reply: &Reply) -> &[Value] {
    reply.body["counts"].as_array().map_or(&[], Vec::as_slice)
}

fn dates(reply: &Reply) -> Vec<&str> {
    entries(reply).iter().filter_map(|entry| entry["date"].as_str()).collect()
}

fn by_status(numbers: [i64; 5]) -> Value {
    let statuses = ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"];
    statuses.into_iter().zip(numbers).map(|(status, number)| (status.to_owned(), json!(number))).collect()
}

/// Sums by status, which are texts.
fn sums(numbers: [i64; 5]) -> Value {
    let texts = by_status(numbers);
    texts.as_object().into_iter().flatten().map(|(status, sum)| (status.clone(), json!(sum.to_string()))).collect()
}

/// Writes a counter by hand.
async fn put_counter(world: &World, lane: usize, date: &str, attributes: &[(&str, AttributeValue)]) -> Result<()> {
    let key = [("pk", text(format!("COUNTS#{lane}"))), ("sk", text(date))];
    let item = key.iter().chain(attributes).map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    world.put_items(&world.environment.tables.payments, [item]).await
}

#[tokio::test]
async fn every_date_has_an_entry_even_without_payments() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, "GBP", 1_999, 3).await?;
    put(&world, DAY, "EUR", 5, 2).await?;
    put(&world, "2026-12-03", "JPY", 7, 1).await?;
    let list = world.send(Ask::get("/accounts/payer/payments?limit=1")).await?;
    let cancelled = list.payments()[0].clone();
    world.send(Ask::cancel("payer", cancelled["paymentId"].as_str().context("an id")?)).await?;
    world.count_all().await?;

    let reply = counts(&world, "from=2026-11-30&to=2026-12-03").await?;
    assert_eq!(dates(&reply), ["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"]);
    let zeros = |date: &str| {
        json!({
            "date": date, "byStatus": by_status([0; 5]), "total": 0, "archived": 0, "unparsed": 0, "sums": {},
        })
    };
    assert_eq!((&entries(&reply)[0], &entries(&reply)[2]), (&zeros("2026-11-30"), &zeros("2026-12-02")));
    let mut want = json!({
        "date": DAY, "byStatus": by_status([4, 0, 0, 0, 1]), "total": 5, "archived": 0, "unparsed": 0,
        "sums": { "EUR": sums([10, 0, 0, 0, 0]), "GBP": sums([5_997, 0, 0, 0, 0]) },
    });
    let currency = cancelled["currency"].as_str().context("a currency")?;
    let (all, amount) =
        (if currency == "EUR" { 10 } else { 5_997 }, cancelled["amountMinor"].as_i64().context("an amount")?);
    want["sums"][currency] = sums([all - amount, 0, 0, 0, amount]);
    assert_eq!(entries(&reply)[1], want);
    let yen = json!({ "JPY": sums([7, 0, 0, 0, 0]) });
    assert_eq!((&entries(&reply)[3]["total"], &entries(&reply)[3]["sums"]), (&json!(1), &yen));
    Ok(())
}

#[tokio::test]
async fn the_lanes_of_a_date_are_added_up() -> Result<()> {
    let world = World::open().await?;
    for lane in 0..8 {
        // A payment may be counted in through one stream shard and out through another.
        let scheduled = if lane == 0 { -6 } else { 1 };
        let attributes = [
            ("SCHEDULED", number(scheduled)),
            ("archived", number(lane)),
            ("unparsed", number(2)),
            ("moves", number(1)),
        ];
        put_counter(&world, lane, DAY, &attributes).await?;
    }
    let reply = counts(&world, &format!("from={DAY}&to={DAY}")).await?;
    let want = json!({
        "date": DAY, "byStatus": by_status([1, 0, 0, 0, 0]), "total": 1, "archived": 28, "unparsed": 16, "sums": {},
    });
    assert_eq!(entries(&reply), [want]);
    Ok(())
}

#[tokio::test]
async fn the_default_range_is_ninety_days_from_today() -> Result<()> {
    let world = World::open().await?;
    // Half past midnight in London.
    world.set_clock("2026-07-01T23:30:00Z")?;
    for (query, first, last, count) in [
        ("", "2026-07-02", "2026-09-30", 91),
        ("from=2026-07-02", "2026-07-02", "2026-09-30", 91),
        ("from=2020-01-01", "2020-01-01", "2020-03-31", 91),
        ("to=2026-07-02", "2026-07-02", "2026-07-02", 1),
        ("to=2027-07-02", "2026-07-02", "2027-07-02", 366),
        ("from=2028-01-01&to=2028-12-31", "2028-01-01", "2028-12-31", 366),
        ("from=2099-12-30", "2099-12-30", "2099-12-31", 2),
        ("from=2000-01-01&to=2000-01-01", "2000-01-01", "2000-01-01", 1),
    ] {
        let reply = counts(&world, query).await?;
        let dates = dates(&reply);
        assert_eq!((dates.len(), dates.first(), dates.last()), (count, Some(&first), Some(&last)), "{query}");
        assert!(dates.is_sorted() && dates.windows(2).all(|pair| pair[0] != pair[1]), "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_range_is_rejected_before_any_read() -> Result<()> {
    let world = World::open().await?;
    drop(world.recorder.take_operations());
    for (query, field) in [
        ("from=soon", "from"),
        ("to=2026-02-30", "to"),
        ("to=soon&from=soon", "from"),
        ("from=2026-12-02&to=2026-12-01", "from"),
        ("to=2026-11-19", "to"),
        ("from=2026-12-01&to=2027-12-02", "to"),
        ("from=2000-01-01&to=2099-12-31", "to"),
        ("from=2026-12-01T00:00:00Z", "from"),
        ("from=2026-12-01&from=2026-12-01", "from"),
        ("dueDate=2026-12-01&from=soon", "dueDate"),
        ("from=", "from"),
    ] {
        let reply = world.send(Ask::get(&format!("/counts?{query}"))).await?;
        assert_eq!((reply.problem(), reply.field("field")), ("invalid-parameter", field), "{query}: {reply}");
        assert_eq!(reply.status, 400, "{query}");
    }
    assert!(world.recorder.take_operations().is_empty());
    let method = world.send(Ask::post("/counts")).await?;
    assert_eq!((method.status, method.header("allow")), (405, Some("GET")), "{method}");
    Ok(())
}

/// The cost of an answer: its operations, and the capacity used.
async fn cost(world: &World, query: &str) -> Result<(Vec<String>, CapacityUse)> {
    drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
    counts(world, query).await?;
    Ok((world.recorder.take_operations(), world.recorder.take_capacity_use()))
}

#[tokio::test]
async fn the_cost_of_counts_depends_on_dates_and_not_on_payments() -> Result<()> {
    let world = World::open().await?;
    let query = "from=2026-12-01&to=2027-02-28";
    put(&world, DAY, "GBP", 5, 1).await?;
    world.count_all().await?;
    let few = cost(&world, query).await?;
    assert_eq!(few.0, vec!["Query"; 8]);
    put(&world, DAY, "GBP", 6, 400).await?;
    world.count_all().await?;
    assert_eq!(cost(&world, query).await?, few);
    // Consistent reads cost a unit for each lane, as long as its dates take 4 KB.
    let place = ("Query".to_owned(), world.environment.tables.payments.clone());
    let (reads, spent) = (few.1.keys().collect::<Vec<_>>(), few.1[&place]);
    assert_eq!(reads, [&place], "no index, and not history");
    assert!(spent <= 16, "{spent} half units");
    let refused = Fate::Refuse(400, "AccessDeniedException");
    let recorder =
        Recorder::with_fate(move |call| if call.input()["ConsistentRead"] == true { Fate::Pass } else { refused });
    let reply = world.send_to(&world.functions_over(&recorder).await?, Ask::get("/counts")).await?;
    assert_eq!(reply.status, 200, "{reply}");
    Ok(())
}

#[tokio::test]
async fn sums_are_exact_beyond_doubles() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, "GBP", MAX_AMOUNT_MINOR, 3).await?;
    world.count_all().await?;
    let reply = counts(&world, &format!("from={DAY}&to={DAY}")).await?;
    let sum = MAX_AMOUNT_MINOR * 3;
    let written = format!(r#""sums":{{"GBP":{{"SCHEDULED":"{sum}","PENDING":"0","#);
    assert!(reply.text.contains(&written), "{}", reply.text);
    // The most digits that DynamoDB keeps, and a negative sum, as a repair may leave it.
    let most = "9".repeat(38);
    put_counter(&world, 0, "2026-12-02", &[("EUR.pro", number(&most)), ("JPY.sch", number(-1))]).await?;
    let reply = counts(&world, "from=2026-12-02&to=2026-12-02").await?;
    assert!(reply.text.contains(&format!(r#""PROCESSED":"{most}","#)), "{}", reply.text);
    assert!(reply.text.contains(r#""JPY":{"SCHEDULED":"-1","#), "{}", reply.text);
    Ok(())
}

#[tokio::test]
async fn a_damaged_counter_is_an_internal_error() -> Result<()> {
    let world = World::open().await?;
    for (name, damage) in [
        ("GBP.pro", number("1.5")),
        ("PENDING", text("7")),
        ("archived", number("9223372036854775808")),
        ("sk", text("2026-12-01 ")),
    ] {
        put_counter(&world, 3, DAY, &[("SCHEDULED", number(1)), (name, damage)]).await?;
        for query in ["from=2026-12-01&to=2026-12-02", "from=2026-11-20&to=2027-01-01"] {
            let reply = world.send(Ask::get(&format!("/counts?{query}"))).await?;
            assert_eq!((reply.status, reply.problem()), (500, "internal"), "{name}: {reply}");
            assert!(!reply.text.contains("COUNTS") && !reply.text.contains(name), "internals: {reply}");
        }
        // Other dates are still answered.
        counts(&world, "from=2026-12-02&to=2026-12-03").await?;
        let client = world.client().await;
        for sk in [DAY, "2026-12-01 "] {
            let delete = client.delete_item().table_name(&world.environment.tables.payments);
            delete.key("pk", text("COUNTS#3")).key("sk", text(sk)).send().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_error_in_any_lane_is_a_503_and_never_a_lower_number() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, "GBP", 5, 3).await?;
    world.count_all().await?;
    let mut answers: BTreeMap<i64, usize> = BTreeMap::new();
    for trouble in [Fate::Refuse(400, "ThrottlingException"), Fate::Refuse(500, "InternalServerError"), Fate::LoseReply]
    {
        for lane in 0..8 {
            let at = format!("COUNTS#{lane}");
            let recorder = Recorder::with_fate(move |call| {
                let hit = call.input()["ExpressionAttributeValues"][":pk"]["S"] == at.as_str();
                if hit { trouble } else { Fate::Pass }
            });
            let troubled = world.functions_over(&recorder).await?;
            let reply = world.send_to(&troubled, Ask::get("/counts")).await?;
            assert_eq!(reply.header("retry-after"), Some("1"), "{trouble:?} at {lane}: {reply}");
            *answers.entry(reply.status).or_default() += 1;
        }
    }
    assert_eq!(answers, BTreeMap::from([(503, 24)]));
    Ok(())
}
