//! An account's payments, page by page, over both tables.

use payments_tests::prelude::*;

async fn put(world: &World, key: &str, scheduled_for: &str) -> Result<String> {
    world.create("buyer", key, &order(scheduled_for)).await
}

/// The list of `buyer`.
fn list(query: &str) -> String {
    format!("/accounts/buyer/payments?{query}")
}

/// Asserts that payments are in order of their due times, none twice.
fn assert_ordered(pages: &[Reply], what: &str) {
    let due = |payment: &Value| format!("{}#{}", payment["dueAt"], payment["paymentId"]);
    let due: Vec<String> = pages.iter().flat_map(Reply::payments).map(due).collect();
    assert!(due.windows(2).all(|pair| pair[0] < pair[1]), "{what}: {due:?}");
}

fn ids(pages: &[Reply]) -> Vec<String> {
    pages.iter().flat_map(Reply::ids).collect()
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
            let at = format!("2026-12-{:02}T09:00:00Z", 1 + page % 9);
            put(&world, &format!("added-{limit}-{page}"), &at).await.map(drop)
        };
        let pages = world.pages_while(&list(&format!("limit={limit}")), add).await?;
        assert_ordered(&pages, &format!("limit {limit}"));
        let seen = ids(&pages);
        assert!(there.iter().all(|id| seen.contains(id)), "limit {limit}: every one that was there throughout");
    }
    Ok(())
}

#[tokio::test]
async fn a_page_with_data_stays_under_four_megabytes() -> Result<()> {
    let world = World::open().await?;
    // Quotes and backslashes double in Lambda's response: the worst case.
    for (account, data) in [("plain", "x".repeat(7_500)), ("quoted", "\"".repeat(3_750))] {
        let order = order_with("2026-12-01", json!({ "data": data }));
        world.create_all((0..1_000).map(|n| entry(account, n, order.clone()))).await?;
        let pages = world.pages(&format!("/accounts/{account}/payments?include=data&limit=1000")).await?;
        for (number, page) in pages.iter().enumerate() {
            let travels = serde_json::to_string(&page.text)?.len();
            assert!(travels <= 4 * 1024 * 1024, "{travels}");
            assert!(page.payments().iter().all(|payment| payment["data"] == data.as_str()));
            assert!(number + 1 == pages.len() || page.payments().len() > 200, "pages are as long as they can be");
        }
        assert_eq!(ids(&pages).len(), 1_000);
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
    all.sort();
    world.set_clock("2026-11-24T09:00:00Z")?;
    for limit in 1..=11 {
        let pages = world.pages(&list(&format!("from=2026-11-20&to=2026-12-31&limit={limit}"))).await?;
        assert_ordered(&pages, &format!("limit {limit}"));
        let mut seen = ids(&pages);
        seen.sort();
        assert_eq!(seen, all, "limit {limit}");
    }
    // A list of future payments does not read history. It reads the hot table, and its index of moved payments.
    world.forget();
    let ahead = world.get("/accounts/buyer/payments").await?;
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
    // The cursor alone continues the list that was begun today, even tomorrow.
    let (mut read, mut query) = (Vec::new(), "status=SCHEDULED&limit=2".to_owned());
    for page in 1.. {
        let list = world.get(&list(&query)).await?;
        read.extend(list.ids());
        let Some(next) = list.body["nextCursor"].as_str() else { break };
        query = format!("limit=2&cursor={next}");
        world.set_clock(&format!("2026-11-2{}T00:00:01Z", page.min(9)))?;
    }
    assert_eq!(read, kept);
    Ok(())
}

#[tokio::test]
async fn a_range_includes_its_first_and_last_instant_and_no_more() -> Result<()> {
    let world = World::open().await?;
    // London's 28 March 2027 has 23 hours, in summer time from 01:00.
    let mut all = Vec::new();
    for at in ["2027-03-27T23:59:59Z", "2027-03-28T00:00:00Z", "2027-03-28T22:59:59Z", "2027-03-28T23:00:00Z"] {
        all.push(put(&world, at, at).await?);
    }
    let read = world.get(&list("from=2027-03-28&to=2027-03-28")).await?;
    assert_eq!(read.ids(), all[1..3]);
    assert!(read.payments().iter().all(|payment| payment["dueDate"] == "2027-03-28"));
    Ok(())
}

/// An answer says which dates it is of, whoever chose them; a cursor keeps them after midnight. A list without an end
/// shows all that is coming.
#[tokio::test]
async fn a_list_says_the_range_that_was_used() -> Result<()> {
    let world = World::open().await?;
    let all = [put(&world, "a", "2026-11-20").await?, put(&world, "b", "2028-11-20").await?];
    let first = world.get(&list("limit=1")).await?;
    let next = list(&format!("cursor={}", first.field("nextCursor")));
    assert_eq!(world.listed(&list("limit=1")).await?, all);
    for (now, path, from, to) in [
        ("2026-11-20T09:00:00Z", list("limit=1"), "2026-11-20", "2099-12-31"),
        ("2026-11-20T09:00:00Z", list("from=2026-11-21&to=2026-12-02"), "2026-11-21", "2026-12-02"),
        ("2026-11-20T09:00:00Z", "/counts?from=2026-12-01".to_owned(), "2026-12-01", "2027-03-01"),
        ("2026-11-20T09:00:00Z", list("idempotencyKey=a"), "", ""),
        ("2026-11-21T09:00:00Z", next, "2026-11-20", "2099-12-31"),
    ] {
        world.set_clock(now)?;
        let reply = world.get(&path).await?;
        assert_eq!((reply.field("from"), reply.field("to")), (from, to), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn a_cursor_is_rejected_for_any_other_account_or_filter() -> Result<()> {
    let world = World::open().await?;
    for n in 0..3 {
        put(&world, &format!("k-{n}"), "2026-12-01").await?;
    }
    let page = world.get(&list("limit=1")).await?;
    let cursor = page.field("nextCursor");
    for path in [
        format!("/accounts/thief/payments?cursor={cursor}"),
        list(&format!("cursor={cursor}&status=PENDING")),
        list(&format!("cursor={cursor}&from=2026-11-21")),
        list(&format!("cursor={}", cursor.to_lowercase())),
    ] {
        world.refused(Ask::get(&path), 400, "invalid-cursor").await?;
    }
    Ok(())
}

/// Creates payments on ten days, every third to `baker`, every fourth cancelled. Returns them in order of their due
/// times.
async fn ten_days(world: &World) -> Result<Vec<Value>> {
    for n in 0..10 {
        let mut more = json!({ "payeeAccountId": if n % 3 == 0 { "baker" } else { "shop" } });
        if n % 2 == 0 {
            more["reference"] = json!(if n < 5 { "early" } else { "a b+c" });
        }
        let order = order_with(&format!("2026-11-2{n}T12:00:00Z"), more);
        let id = world.create("buyer", &format!("k-{n}"), &order).await?;
        if n % 4 == 0 {
            world.cancel("buyer", &id).await?;
        }
    }
    // Some lie in the long-term table alone, and some in both.
    let before = world.heads("buyer").await?;
    world.set_clock("2026-11-25T09:00:00Z")?;
    world.archive_all("buyer").await?;
    world.put_items(&world.environment.tables.payments, before.into_iter().skip(2)).await?;
    let all = world.get(&list("from=2026-11-20")).await?.payments().to_vec();
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
        let is_wanted = |payment: &&Value| {
            has(statuses, &payment["status"])
                && has(payee, &payment["payeeAccountId"])
                && has(reference, &payment["reference"])
        };
        let mut want: Vec<_> = all.iter().filter(is_wanted).map(|it| it["paymentId"].as_str().unwrap_or("")).collect();
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
                let read = world.listed(&list(&format!("{query}&limit={limit}"))).await?;
                assert_eq!(read, want, "{query}, limit {limit}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_filter_reads_on_for_a_thousand_payments_and_then_gives_a_cursor() -> Result<()> {
    let world = World::open().await?;
    let baker = order_with("2026-12-02", json!({ "payeeAccountId": "baker" }));
    let order = |n| if n == 0 { baker.clone() } else { order("2026-12-01") };
    world.create_all((0..1_100).map(|n| entry("buyer", n, order(n)))).await?;
    world.forget();
    let pages = world.pages(&list("payeeAccountId=baker&limit=5")).await?;
    let found: Vec<usize> = pages.iter().map(|page| page.payments().len()).collect();
    assert_eq!(found, [0, 1]);
    assert!((20..=25).contains(&world.recorder.take_operations().len()), "a thousand are read for the first page");
    Ok(())
}

#[tokio::test]
async fn an_idempotency_key_finds_its_payment_in_two_reads() -> Result<()> {
    let world = World::open().await?;
    let id = put(&world, "rent-1", "2026-12-01").await?;
    world.forget();
    let found = world.get(&list("idempotencyKey=rent-1")).await?;
    assert_eq!((found.ids(), world.recorder.take_operations().len()), (vec![id], 2), "{found}");
    assert!(found.payments()[0].get("data").is_none() && found.body["nextCursor"].is_null(), "{found}");
    let found = world.get(&list("idempotencyKey=rent-1&include=data")).await?;
    assert_eq!(found.payments()[0]["data"], Value::Null, "{found}");
    for account in ["buyer", "somebody"] {
        let none = world.get(&format!("/accounts/{account}/payments?idempotencyKey=rent-2")).await?;
        assert_eq!(none.payments().len(), 0, "{none}");
    }
    Ok(())
}
