//! An account's payments, page by page, over both tables.

use anyhow::{Context as _, Result};
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

fn payment(scheduled_for: &str, data: &Value) -> Value {
    json!({ "payeeAccountId": "shop", "amountMinor": 5, "currency": "EUR", "scheduledFor": scheduled_for, "data": data })
}

async fn put(world: &World, key: &str, scheduled_for: &str) -> Result<String> {
    world.create("buyer", key, &payment(scheduled_for, &json!(null))).await
}

fn ids(payments: &[Value]) -> Vec<String> {
    payments.iter().map(|payment| payment["paymentId"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Reads a list to its end, and calls `between` after each page.
async fn read_all(world: &World, query: &str, mut between: impl AsyncFnMut(usize) -> Result<()>) -> Result<Vec<Value>> {
    let mut payments = Vec::new();
    let mut cursor = String::new();
    for page in 0.. {
        let list = world.send(Ask::get(&format!("/accounts/buyer/payments?{query}{cursor}"))).await?;
        assert_eq!(list.status, 200, "{list}");
        payments.extend_from_slice(list.payments());
        let Some(next) = list.body["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
        between(page).await?;
    }
    Ok(payments)
}

#[tokio::test]
async fn every_page_size_shows_every_payment_once_in_order_while_others_are_added() -> Result<()> {
    let world = World::open().await?;
    let mut there = Vec::new();
    for n in 0..23 {
        // Several share an instant, so that pages also end between payments of the same second.
        there.push(put(&world, &format!("k-{n}"), &format!("2026-12-{:02}T10:00:00Z", 1 + n / 3)).await?);
    }
    for limit in [1, 2, 3, 7, 22, 23, 24, 1_000] {
        let add = async |page: usize| {
            put(&world, &format!("added-{limit}-{page}"), &format!("2026-12-{:02}T09:00:00Z", 1 + page % 9)).await?;
            Ok(())
        };
        let read = read_all(&world, &format!("limit={limit}"), add).await?;
        let due = |payment: &Value| format!("{}#{}", payment["dueAt"], payment["paymentId"]);
        assert!(read.windows(2).all(|pair| due(&pair[0]) < due(&pair[1])), "limit {limit}: in order, none twice");
        let seen = ids(&read);
        assert!(there.iter().all(|id| seen.contains(id)), "limit {limit}: every one that was there throughout");
    }
    Ok(())
}

#[tokio::test]
async fn a_page_with_data_stays_under_four_megabytes() -> Result<()> {
    let world = World::open().await?;
    // Quotes and backslashes double in Lambda's response: the worst case.
    for data in ["x".repeat(7_500), "\"".repeat(3_750)] {
        let account = if data.starts_with('x') { "plain" } else { "quoted" };
        let entry = |n: usize| {
            let mut entry = payment("2026-12-01", &json!(data));
            entry["accountId"] = json!(account);
            entry["idempotencyKey"] = json!(n.to_string());
            entry
        };
        world.create_all((0..1_000).map(entry)).await?;
        let mut seen = 0;
        let mut cursor = String::new();
        loop {
            let path = format!("/accounts/{account}/payments?include=data&limit=1000{cursor}");
            let list = world.send(Ask::get(&path)).await?;
            let travels = serde_json::to_string(&list.text)?.len();
            assert!(travels <= 4 * 1024 * 1024, "{travels}");
            assert!(list.payments().iter().all(|payment| payment["data"] == json!(data)));
            seen += list.payments().len();
            let Some(next) = list.body["nextCursor"].as_str() else { break };
            assert!(list.payments().len() > 200, "pages are as long as they can be");
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, 1_000);
    }
    Ok(())
}

#[tokio::test]
async fn a_range_into_the_past_merges_history_in_order_without_duplicates() -> Result<()> {
    let world = World::open().await?;
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(put(&world, &format!("old-{n}"), &format!("2026-11-2{}T12:00:00Z", n % 3)).await?);
    }
    let before = world.heads("buyer").await?;
    world.archive_all("buyer").await?;
    // Two are in both tables.
    let on_their_way = before.into_iter().skip(1).step_by(3);
    world.put_items(&world.environment.tables.payments, on_their_way).await?;
    for n in 0..4 {
        all.push(put(&world, &format!("new-{n}"), &format!("2026-12-0{}", 1 + n)).await?);
    }
    world.set_clock("2026-11-24T09:00:00Z")?;
    for limit in 1..=11 {
        let read = read_all(&world, &format!("from=2026-11-20&to=2026-12-31&limit={limit}"), async |_| Ok(())).await?;
        assert!(read.windows(2).all(|pair| pair[0]["dueAt"].as_str() <= pair[1]["dueAt"].as_str()), "limit {limit}");
        let mut seen = ids(&read);
        seen.sort();
        let mut want = all.clone();
        want.sort();
        assert_eq!(seen, want, "limit {limit}");
    }
    // A list of future payments does not read history. It reads the hot table, and its index of moved payments.
    drop(world.recorder.take_operations());
    let ahead = world.send(Ask::get("/accounts/buyer/payments")).await?;
    assert_eq!((ahead.payments().len(), world.recorder.take_operations()), (4, vec!["Query".to_owned(); 2]));
    Ok(())
}

#[tokio::test]
async fn a_cursor_keeps_filter_and_range_across_midnight() -> Result<()> {
    let world = World::open().await?;
    let mut kept = Vec::new();
    for n in 0..9 {
        let id = put(&world, &format!("k-{n}"), &format!("2026-11-2{n}T12:00:00Z")).await?;
        if n % 2 == 0 {
            world.cancel("buyer", &id).await?;
        } else {
            kept.push(id);
        }
    }
    let midnight = async |page: usize| world.set_clock(&format!("2026-11-2{}T00:00:01Z", (page + 1).min(9)));
    let mut read = Vec::new();
    let mut cursor = String::new();
    for page in 0.. {
        // The cursor alone continues the list that was begun today, even tomorrow.
        let query = if page == 0 { "status=SCHEDULED&limit=2".to_owned() } else { format!("limit=2&cursor={cursor}") };
        let list = world.send(Ask::get(&format!("/accounts/buyer/payments?{query}"))).await?;
        assert_eq!(list.status, 200, "{list}");
        read.extend(ids(list.payments()));
        let Some(next) = list.body["nextCursor"].as_str() else { break };
        cursor = next.to_owned();
        midnight(page).await?;
    }
    assert_eq!(read, kept);
    Ok(())
}

#[tokio::test]
async fn a_range_includes_its_first_and_last_instant_and_no_more() -> Result<()> {
    let world = World::open().await?;
    // London's 28 March 2027 has 23 hours, in summer time from 01:00.
    for (n, at) in ["2027-03-27T23:59:59Z", "2027-03-28T00:00:00Z", "2027-03-28T22:59:59Z", "2027-03-28T23:00:00Z"]
        .iter()
        .enumerate()
    {
        put(&world, &format!("k-{n}"), at).await?;
    }
    let read = read_all(&world, "from=2027-03-28&to=2027-03-28", async |_| Ok(())).await?;
    let due: Vec<_> = read.iter().map(|payment| payment["dueAt"].as_str().unwrap_or_default()).collect();
    assert_eq!(due, ["2027-03-28T00:00:00Z", "2027-03-28T22:59:59Z"]);
    assert!(read.iter().all(|payment| payment["dueDate"] == "2027-03-28"));
    Ok(())
}

/// An answer says which dates it is of, whoever chose them; a cursor keeps them after midnight.
#[tokio::test]
async fn a_list_says_the_range_that_was_used() -> Result<()> {
    let world = World::open().await?;
    put(&world, "a", "2026-11-20").await?;
    put(&world, "b", "2026-12-01").await?;
    let range = |reply: &Reply| (reply.field("from").to_owned(), reply.field("to").to_owned());
    let is = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let list = world.send(Ask::get("/accounts/buyer/payments?limit=1")).await?;
    assert_eq!(range(&list), is("2026-11-20", "2099-12-31"), "{list}");
    let given = world.send(Ask::get("/accounts/buyer/payments?from=2026-11-21&to=2026-12-02")).await?;
    assert_eq!(range(&given), is("2026-11-21", "2026-12-02"), "{given}");
    let counts = world.send(Ask::get("/counts?from=2026-12-01")).await?;
    assert_eq!(range(&counts), is("2026-12-01", "2027-03-01"), "{counts}");
    let one = world.send(Ask::get("/accounts/buyer/payments?idempotencyKey=a")).await?;
    assert_eq!(range(&one), is("", ""), "{one}");
    world.set_clock("2026-11-21T09:00:00Z")?;
    let next = world.send(Ask::get(&format!("/accounts/buyer/payments?cursor={}", list.field("nextCursor")))).await?;
    assert_eq!(range(&next), is("2026-11-20", "2099-12-31"), "{next}");
    Ok(())
}

#[tokio::test]
async fn a_cursor_is_rejected_for_any_other_account_or_filter() -> Result<()> {
    let world = World::open().await?;
    for n in 0..3 {
        put(&world, &format!("k-{n}"), "2026-12-01").await?;
    }
    let list = world.send(Ask::get("/accounts/buyer/payments?limit=1")).await?;
    let cursor = list.body["nextCursor"].as_str().context("a cursor")?.to_owned();
    for path in [
        format!("/accounts/thief/payments?cursor={cursor}"),
        format!("/accounts/buyer/payments?cursor={cursor}&status=PENDING"),
        format!("/accounts/buyer/payments?cursor={cursor}&from=2026-11-21"),
        format!("/accounts/buyer/payments?cursor={}", cursor.to_lowercase()),
    ] {
        let reply = world.send(Ask::get(&path)).await?;
        assert_eq!((reply.status, reply.problem()), (400, "invalid-cursor"), "{path}: {reply}");
    }
    Ok(())
}

/// Creates payments on ten days, every third to `baker`, every fourth cancelled. Returns them in order of their due times.
async fn ten_days(world: &World) -> Result<Vec<Value>> {
    for n in 0..10 {
        let mut body = payment(&format!("2026-11-2{n}T12:00:00Z"), &json!(n));
        body["payeeAccountId"] = json!(if n % 3 == 0 { "baker" } else { "shop" });
        if n % 2 == 0 {
            body["reference"] = json!(if n < 5 { "early" } else { "a b+c" });
        }
        let id = world.create("buyer", &format!("k-{n}"), &body).await?;
        if n % 4 == 0 {
            world.cancel("buyer", &id).await?;
        }
    }
    // Some lie in the long-term table alone, and some in both.
    let before = world.heads("buyer").await?;
    world.set_clock("2026-11-25T09:00:00Z")?;
    world.archive_all("buyer").await?;
    world.put_items(&world.environment.tables.payments, before.into_iter().skip(2)).await?;
    let all = read_all(world, "from=2026-11-20", async |_| Ok(())).await?;
    assert_eq!(all.len(), 10);
    Ok(all)
}

#[tokio::test]
async fn filters_and_the_order_give_the_same_payments_at_every_page_size() -> Result<()> {
    let world = World::open().await?;
    let all = ten_days(&world).await?;
    for (statuses, payee, reference, is_descending) in [
        ("", "", "", true),
        ("CANCELLED", "", "", false),
        ("CANCELLED", "", "", true),
        ("SCHEDULED,CANCELLED", "baker", "", true),
        ("PENDING,SCHEDULED,SCHEDULED", "", "", false),
        ("PROCESSED,FAILED", "shop", "", true),
        ("SCHEDULED,PENDING,PROCESSED,FAILED,CANCELLED", "shop", "", false),
        ("", "", "early", false),
        ("SCHEDULED", "shop", "a b+c", true),
        ("", "", "nobody's", false),
    ] {
        let has = |given: &str, value: &Value| given.is_empty() || given.split(',').any(|one| value == one);
        let mut want = all.clone();
        want.retain(|payment| {
            has(statuses, &payment["status"])
                && has(payee, &payment["payeeAccountId"])
                && has(reference, &payment["reference"])
        });
        if is_descending {
            want.reverse();
        }
        let mut query = format!("from=2026-11-20&order={}", if is_descending { "desc" } else { "asc" });
        let encoded = reference.replace('+', "%2B").replace(' ', "+");
        // The list of statuses is one parameter, or several.
        let repeated = statuses.replace(',', "&status=");
        for (name, value) in [("status", repeated.as_str()), ("payeeAccountId", payee), ("reference", encoded.as_str())]
        {
            if !value.is_empty() {
                query = format!("{query}&{name}={value}");
            }
        }
        for query in [query.replace(&repeated, statuses), query] {
            for limit in [1, 2, 3, 10, 1_000] {
                let read = read_all(&world, &format!("{query}&limit={limit}"), async |_| Ok(())).await?;
                assert_eq!(ids(&read), ids(&want), "{query}, limit {limit}");
            }
        }
    }
    for (query, field) in [
        ("status=", "status"),
        ("status=SCHEDULED,", "status"),
        ("status=SCHEDULED&status=", "status"),
        ("order=asc&order=asc", "order"),
        ("status=scheduled", "status"),
        ("order=down", "order"),
        ("payeeAccountId=a%23", "payeeAccountId"),
        ("reference=a%23", "reference"),
        ("reference=", "reference"),
    ] {
        let reply = world.send(Ask::get(&format!("/accounts/buyer/payments?{query}"))).await?;
        assert_eq!((reply.status, reply.field("field")), (400, field), "{query}: {reply}");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_without_an_end_shows_all_that_is_coming() -> Result<()> {
    let world = World::open().await?;
    let ids_of = [put(&world, "soon", "2026-11-21").await?, put(&world, "late", "2028-11-20").await?];
    let list = world.send(Ask::get("/accounts/buyer/payments")).await?;
    assert_eq!(ids(list.payments()), ids_of, "{list}");
    Ok(())
}

#[tokio::test]
async fn a_filter_reads_on_for_a_thousand_payments_and_then_gives_a_cursor() -> Result<()> {
    let world = World::open().await?;
    let entry = |n: usize| {
        let mut entry = payment("2026-12-01", &json!(null));
        entry["accountId"] = json!("buyer");
        entry["idempotencyKey"] = json!(n.to_string());
        if n == 0 {
            (entry["scheduledFor"], entry["payeeAccountId"]) = (json!("2026-12-02"), json!("baker"));
        }
        entry
    };
    world.create_all((0..1_100).map(entry)).await?;
    drop(world.recorder.take_operations());
    let list = world.send(Ask::get("/accounts/buyer/payments?payeeAccountId=baker&limit=5")).await?;
    assert_eq!((list.payments().len(), world.recorder.take_operations().len()), (0, 20), "{list}");
    let cursor = list.body["nextCursor"].as_str().context("a cursor")?;
    let list = world.send(Ask::get(&format!("/accounts/buyer/payments?cursor={cursor}"))).await?;
    assert_eq!((list.payments().len(), &list.body["nextCursor"]), (1, &Value::Null), "{list}");
    Ok(())
}

#[tokio::test]
async fn an_idempotency_key_finds_its_payment_in_two_reads() -> Result<()> {
    let world = World::open().await?;
    let id = put(&world, "rent-1", "2026-12-01").await?;
    drop(world.recorder.take_operations());
    let list = world.send(Ask::get("/accounts/buyer/payments?idempotencyKey=rent-1")).await?;
    assert_eq!((ids(list.payments()), world.recorder.take_operations().len()), (vec![id], 2), "{list}");
    assert!(list.payments()[0].get("data").is_none() && list.body["nextCursor"].is_null(), "{list}");
    let list = world.send(Ask::get("/accounts/buyer/payments?idempotencyKey=rent-1&include=data")).await?;
    assert_eq!(list.payments()[0]["data"], Value::Null, "{list}");
    for account in ["buyer", "somebody"] {
        let none = world.send(Ask::get(&format!("/accounts/{account}/payments?idempotencyKey=rent-2"))).await?;
        assert_eq!((none.status, none.payments().len()), (200, 0), "{none}");
    }
    for (query, field) in [("idempotencyKey=a,b", "idempotencyKey"), ("idempotencyKey=k&status=PENDING", "status")] {
        let reply = world.send(Ask::get(&format!("/accounts/buyer/payments?{query}"))).await?;
        assert_eq!((reply.status, reply.field("field")), (400, field), "{query}: {reply}");
    }
    Ok(())
}
