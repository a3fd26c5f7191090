//! The counts of dates, as the API shows them.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::prelude::*;

const DAY: &str = "2026-12-01";

/// Creates payments.
async fn put(world: &World, date: &str, currency: &str, amount: i64, count: usize) -> Result<()> {
    let order = order_with(date, json!({ "currency": currency, "amountMinor": amount }));
    let key = |n: usize| format!("{date}-{currency}-{amount}-{n}");
    world.create_all((0..count).map(|n| entry("payer", key(n), order.clone()))).await.map(drop)
}

/// The entries of an answer.
async fn counts(world: &World, query: &str) -> Result<Vec<Value>> {
    let reply = world.get(&format!("/counts?{query}")).await?;
    reply.body["counts"].as_array().cloned().with_context(|| reply.to_string())
}

async fn counts_of_day(world: &World) -> Result<Value> {
    Ok(counts(world, &format!("from={DAY}&to={DAY}")).await?.remove(0))
}

/// A date's counts without payments, with other numbers of statuses.
fn zeros(date: &str, by_status: &Value) -> Value {
    let mut zeros = json!({
        "date": date, "total": 0, "archived": 0, "unparsed": 0, "sums": {},
        "byStatus": { "SCHEDULED": 0, "PENDING": 0, "PROCESSED": 0, "FAILED": 0, "CANCELLED": 0 },
    });
    for (status, number) in by_status.as_object().into_iter().flatten() {
        zeros["byStatus"][status] = number.clone();
    }
    zeros
}

/// Sums of scheduled and of cancelled payments, which are texts.
fn sums(scheduled: i64, cancelled: i64) -> Value {
    json!({
        "SCHEDULED": scheduled.to_string(), "PENDING": "0", "PROCESSED": "0", "FAILED": "0",
        "CANCELLED": cancelled.to_string(),
    })
}

/// Writes a counter by hand.
async fn put_counter<const N: usize>(
    world: &World,
    lane: usize,
    date: &str,
    attributes: [(&str, AttributeValue); N],
) -> Result<()> {
    let mut counter = counter_key(lane, date);
    counter.extend(item(attributes));
    world.put_items(&world.environment.tables.payments, [counter]).await
}

fn counter_key(lane: usize, date: &str) -> Item {
    item([("pk", text(format!("COUNTS#{lane}"))), ("sk", text(date))])
}

#[tokio::test]
async fn every_date_has_an_entry_even_without_payments() -> Result<()> {
    let world = World::open().await?;
    let pounds = order_with(DAY, json!({ "amountMinor": 1_999 }));
    let cancelled = world.create("payer", "cancelled", &pounds).await?;
    world.cancel("payer", &cancelled).await?;
    put(&world, DAY, "GBP", 1_999, 2).await?;
    put(&world, DAY, "EUR", 5, 2).await?;
    put(&world, "2026-12-03", "JPY", 7, 1).await?;
    world.count_all().await?;
    let mut day = zeros(DAY, &json!({ "SCHEDULED": 4, "CANCELLED": 1 }));
    day["total"] = json!(5);
    day["sums"] = json!({ "EUR": sums(10, 0), "GBP": sums(3_998, 1_999) });
    let mut yen = zeros("2026-12-03", &json!({ "SCHEDULED": 1 }));
    (yen["total"], yen["sums"]) = (json!(1), json!({ "JPY": sums(7, 0) }));
    let none = |date| zeros(date, &json!({}));
    let want = [none("2026-11-30"), day, none("2026-12-02"), yen];
    assert_eq!(counts(&world, "from=2026-11-30&to=2026-12-03").await?, want);
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
        put_counter(&world, lane, DAY, attributes).await?;
    }
    let mut want = zeros(DAY, &json!({ "SCHEDULED": 1 }));
    (want["total"], want["archived"], want["unparsed"]) = (json!(1), json!(28), json!(16));
    assert_eq!(counts_of_day(&world).await?, want);
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
        let counts = counts(&world, query).await?;
        let dates: Vec<&str> = counts.iter().filter_map(|entry| entry["date"].as_str()).collect();
        assert_eq!((dates.len(), dates.first(), dates.last()), (count, Some(&first), Some(&last)), "{query}");
        assert!(dates.windows(2).all(|pair| pair[0] < pair[1]), "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn the_cost_of_counts_depends_on_dates_and_not_on_payments() -> Result<()> {
    let world = World::open().await?;
    for (amount, count) in [(5, 1), (6, 400)] {
        put(&world, DAY, "GBP", amount, count).await?;
        world.count_all().await?;
        world.forget();
        counts(&world, "from=2026-12-01&to=2027-02-28").await?;
        assert_eq!(world.recorder.take_operations(), vec!["Query"; 8]);
        // Consistent reads cost a unit for each lane, as long as its dates take 4 KB. No index is read, and not history.
        let used: Vec<_> = world.take_units().into_iter().collect();
        let [((_, place), units)] = used.as_slice() else { anyhow::bail!("{used:?}") };
        assert!(place == "payments" && *units <= 8, "{used:?}");
    }
    let lags = world
        .functions_meeting(Fate::Refuse(400, "AccessDeniedException"), |call| call.input()["ConsistentRead"] != true);
    world.send_to(&lags.await?, Ask::get("/counts")).await?.with_status(200)?;
    Ok(())
}

#[tokio::test]
async fn sums_are_exact_beyond_doubles() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, "GBP", MAX_AMOUNT_MINOR, 3).await?;
    world.count_all().await?;
    assert_has(&counts_of_day(&world).await?, &json!({ "sums": { "GBP": sums(MAX_AMOUNT_MINOR * 3, 0) } }));
    // The most digits that DynamoDB keeps, and a negative sum, as a repair may leave it.
    let most = "9".repeat(38);
    put_counter(&world, 0, "2026-12-02", [("EUR.pro", number(&most)), ("JPY.sch", number(-1))]).await?;
    let counts = counts(&world, "from=2026-12-02&to=2026-12-02").await?.remove(0);
    assert_has(&counts["sums"]["EUR"], &json!({ "PROCESSED": most }));
    assert_has(&counts["sums"]["JPY"], &json!({ "SCHEDULED": "-1" }));
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
        put_counter(&world, 3, DAY, [("SCHEDULED", number(1)), (name, damage)]).await?;
        for query in ["from=2026-12-01&to=2026-12-02", "from=2026-11-20&to=2027-01-01"] {
            let reply = world.refused(Ask::get(&format!("/counts?{query}")), 500, "internal").await?;
            assert!(!reply.text.contains("COUNTS") && !reply.text.contains(name), "internals: {reply}");
        }
        // Other dates are still answered.
        counts(&world, "from=2026-12-02&to=2026-12-03").await?;
        for sk in [DAY, "2026-12-01 "] {
            world.delete(&world.environment.tables.payments, &counter_key(3, sk)).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_error_in_any_lane_is_a_503_and_never_a_lower_number() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, "GBP", 5, 3).await?;
    world.count_all().await?;
    for trouble in [Fate::Refuse(400, "ThrottlingException"), Fate::Refuse(500, "InternalServerError"), Fate::LoseReply]
    {
        for lane in 0..8 {
            let at = format!("COUNTS#{lane}");
            let is_hit =
                move |call: &payments_machine::Call| call.input()["ExpressionAttributeValues"][":pk"]["S"] == *at;
            let troubled = world.functions_meeting(trouble, is_hit).await?;
            let reply: Reply = world.send_to(&troubled, Ask::get("/counts")).await?.with_status(503)?;
            assert_eq!(reply.header("retry-after"), Some("1"), "{trouble:?} at {lane}: {reply}");
        }
    }
    Ok(())
}
