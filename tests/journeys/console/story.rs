//! One payment in the console: its head, its timeline, its troubles, and texts of others, which it shows as text.

use anyhow::{Context as _, Result};
use http::Method;
use payments_model::{Actor, Failure, Finding, FindingClosed, Settlement, Told};
use payments_store::LogPosition;
use payments_tests::{Ask, Counting, World};
use serde_json::json;

use super::{HOSTILE, assert_plain, claim, links, page, rent};

/// The entries of a timeline, as texts without markup, the newest first.
fn entries(page: &str) -> Vec<String> {
    let line = page.split_once("<div class=\"line\">").map_or("", |(_, rest)| rest);
    let line = line.split_once("</section>").map_or(line, |(line, _)| line);
    line.split("<li").skip(1).map(|entry| plain(entry.split_once('>').map_or("", |(_, text)| text))).collect()
}

/// The text of some markup, with one space for each tag.
fn plain(markup: &str) -> String {
    let texts = markup.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The entries must contain these texts, in this order.
fn assert_entries(page: &str, wanted: &[&str]) {
    let found = entries(page);
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(wanted.split('|').all(|part| found.contains(part)), "{wanted}: {found}");
    }
}

/// Puts the finding of a result that contradicts a payment. Returns its hash.
async fn contradicted(world: &World, id: &str, settlement: Settlement, at: &str) -> Result<Finding> {
    let store = world.store().await;
    let key = store.details(id.parse()?).await?.context("details")?.key();
    let head = store.head(&key).await?.context("a head")?;
    let finding = Finding {
        key,
        money: head.money,
        payee: head.payee.clone(),
        stands: head.state.clone(),
        told: Told { settlement, money: head.money, payee: head.payee },
        found_at: at.parse()?,
        closed: None,
    };
    assert!(store.put_finding(&finding).await?);
    Ok(finding)
}

/// Raises the number of a pending payment's last request.
async fn sent(world: &World, id: &str, attempt: u32, at: &str) -> Result<()> {
    let store = world.store().await;
    let key = store.details(id.parse()?).await?.context("details")?.key();
    let head = store.head(&key).await?.context("a head")?;
    assert!(store.redrive(&key, head.dispatch_attempt.context("an attempt")?, attempt, at.parse()?).await?);
    Ok(())
}

#[tokio::test]
async fn a_payment_tells_its_story_newest_first() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "rent-1").await?;
    world.set_clock("2026-11-21T16:20:41Z")?;
    let body = json!({ "payeeAccountId": "shop", "amountMinor": 2_218, "currency": "EUR", "scheduledFor": "2026-12-01", "reference": "RENT 14B" });
    let amend = Ask::new(Method::PUT, &format!("/accounts/tenant/payments/{id}")).json(&body);
    world.answered(amend.header("Idempotency-Key", "change-1").header("If-Match", "\"1\""), 200).await?;
    let scheduled = page(&world, &format!("payment?id={id}")).await?;
    assert_entries(
        &scheduled,
        &[
            "Due Tue 1 Dec, 00:00|the sweep claims it",
            "16:20:41|Amended: amount 12,345.67 EUR to 22.18 EUR , reference none to RENT 14B|client",
            "09:00:00|Scheduled Created|client",
        ],
    );
    assert!(plain(&scheduled).contains("Requests Not sent yet; due Tue 1 Dec, 00:00"), "{scheduled}");

    claim(&world, &id, None).await?;
    sent(&world, &id, 3, "2026-12-01T13:02:00Z").await?;
    world.set_clock("2026-12-01T14:00:00Z")?;
    let pending = page(&world, &format!("payment?id={id}")).await?;
    assert_entries(
        &pending,
        &[
            "17:00|Request 4 of 8, if no result comes|redrives run each hour",
            "13:02:00|Request 3 of 8 sent|redrive",
            "11:00|Request 2 of 8 sent|After 60 min without a result, time estimated",
            "10:00:00|Request 1 of 8 sent|dispatch",
            "10:00:00|Pending Claimed|sweep",
            "16:20:41|Amended",
            "09:00:00|Scheduled Created",
        ],
    );
    assert!(plain(&pending).contains("Requests 3 of 8 sent Payment id"), "{pending}");
    assert!(pending.contains("<h3>Tue 1 Dec, today</h3>") && pending.contains("<h3>Sat 21 Nov</h3>"), "{pending}");
    assert!(!pending.contains("notice now"), "{pending}");

    claim_settled(&world, &id, Settlement::Processed("TX-4EC9".parse()?)).await?;
    let settled = page(&world, &format!("payment?id={id}")).await?;
    assert!(
        entries(&settled)[..2]
            .iter()
            .zip(["In the next report", "Processed Transaction TX-4EC9 transaction service"])
            .all(|(found, want)| found.contains(want)),
        "{settled}"
    );
    for text in ["22.18", "data-copy=\"TX-4EC9\"", &format!("data-copy=\"{id}\""), "2 versions of the content"] {
        assert!(settled.contains(text), "{text}: {settled}");
    }
    for (shown, count) in [("money", 4), ("requests", 3)] {
        let some = page(&world, &format!("payment?id={id}&show={shown}")).await?;
        assert_eq!(entries(&some).len(), count, "{shown}: {some}");
        assert!(links(&settled).any(|link| link.ends_with(&format!("&show={shown}"))), "{settled}");
    }
    Ok(())
}

/// Settles a pending payment.
async fn claim_settled(world: &World, id: &str, settlement: Settlement) -> Result<()> {
    let events = vec![payments_model::Event::Settle(settlement)];
    payments_tests::given::move_on(world, id.parse()?, events, "2026-12-01T14:00:00Z").await
}

#[tokio::test]
async fn used_up_requests_say_that_none_follows() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "rent-1").await?;
    claim(&world, &id, None).await?;
    sent(&world, &id, 8, "2026-12-06T17:00:00Z").await?;
    world.set_clock("2026-12-13T12:00:00Z")?;
    let stuck = page(&world, &format!("payment?id={id}")).await?;
    for text in
        ["8 of 8 requests sent, none follows", "no result for 12 days", "data-action=\"send-again\"", ">Stuck</span>"]
    {
        assert!(stuck.contains(text), "{text}: {stuck}");
    }
    assert!(
        stuck.contains("class=\"notice now\"") && plain(&stuck).contains("Requests 8 of 8 sent, none follows"),
        "{stuck}"
    );
    let found = entries(&stuck);
    assert_eq!(found.len(), 1 + 8 + 2, "{found:#?}");
    assert!(found[0].contains("Nothing is sent again"), "{found:#?}");
    assert!(found[1].starts_with("17:00:00 Request 8 of 8 sent After 5 days without a result redrive"), "{found:#?}");
    let list = page(&world, "account?id=tenant&show=past").await?;
    assert!(list.contains("8 of 8 sent, none follows"), "{list}");

    // An operator sent it once more.
    sent(&world, &id, 9, "2026-12-13T11:00:00Z").await?;
    let again = page(&world, &format!("payment?id={id}")).await?;
    assert!(entries(&again)[1].contains("Request 9 sent"), "{again}");
    assert!(again.contains("9 requests sent, none follows"), "{again}");
    Ok(())
}

#[tokio::test]
async fn a_contradiction_is_shown_until_it_is_closed() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "rent-1").await?;
    claim(&world, &id, Some(Settlement::Processed("TX-1".parse()?))).await?;
    let failed = Settlement::Failed(Failure::new(Some("AM04"), "insufficient funds"));
    let finding = contradicted(&world, &id, failed, "2026-12-01T11:47:12Z").await?;
    world.set_clock("2026-12-01T12:00:00Z")?;
    let open = page(&world, &format!("payment?id={id}")).await?;
    let hash = finding.told.hash();
    for text in [
        "Two results contradict each other",
        ">Contradiction</span>",
        "data-action=\"close-finding\"",
        &format!("name=\"hash\" value=\"{hash}\""),
        &format!("name=\"payment\" value=\"{id}\""),
    ] {
        assert!(open.contains(text), "{text}: {open}");
    }
    let said =
        "The first, Processed at 10:00 , stands. At 11:47 the transaction service said Failed, insufficient funds";
    assert!(plain(&open).contains(said), "{}", plain(&open));
    assert!(
        entries(&open)[1]
            .contains("Result: Failed , AM04 insufficient funds Contradicts Not applied: Processed stands"),
        "{open}"
    );
    assert!(links(&open).any(|link| link == "alarms?at=conflictingresults"), "{open}");

    let by = Actor::operator("duty-1");
    let closed =
        FindingClosed { at: "2026-12-01T12:10:00Z".parse()?, by, reason: "The service took it back".to_owned() };
    world.store().await.close_finding(id.parse()?, &hash, &closed).await?;
    let closed = page(&world, &format!("payment?id={id}")).await?;
    assert!(!closed.contains("close-finding") && !closed.contains(">Contradiction<"), "{closed}");
    assert!(entries(&closed)[1].contains("Finding closed : The service took it back operator duty-1"), "{closed}");

    let cancelled = rent(&world, "rent-2").await?;
    world.cancel("tenant", &cancelled).await?;
    contradicted(&world, &cancelled, Settlement::Processed("TX-2".parse()?), "2026-12-01T11:47:12Z").await?;
    let paid = page(&world, &format!("payment?id={cancelled}")).await?;
    assert!(paid.contains("Money may have moved for a cancelled payment"), "{paid}");
    Ok(())
}

#[tokio::test]
async fn an_event_is_delivered_once_the_endpoints_place_is_past_it() -> Result<()> {
    let world = World::open().await?;
    for id in ["shop", "off"] {
        let body = json!({ "url": "https://receiver.example.com/hook", "enabled": id == "shop" });
        world.answered(Ask::new(Method::PUT, &format!("/webhook-endpoints/{id}")).json(&body), 201).await?;
    }
    let mut counting = Counting::start(&world).await?;
    let id = rent(&world, "rent-1").await?;
    counting.count(world.functions()).await?;
    let waits = page(&world, &format!("payment?id={id}&show=webhooks")).await?;
    assert_entries(
        &waits,
        &["payment.scheduled to off Not sent|The endpoint is disabled", "payment.scheduled to shop Waits"],
    );
    let store = world.store().await;
    let head = store.log_head().await?.context("a log")?;
    store.replay_webhook(&"shop".parse()?, head.end(), None).await?;
    let delivered = page(&world, &format!("payment?id={id}&show=webhooks")).await?;
    assert_entries(&delivered, &["payment.scheduled delivered to shop", "payment.scheduled to off Not sent"]);
    store.replay_webhook(&"shop".parse()?, LogPosition::BEGINNING, None).await?;
    let again = page(&world, &format!("payment?id={id}&show=webhooks")).await?;
    assert!(!again.contains("delivered to"), "{again}");
    Ok(())
}

#[tokio::test]
async fn texts_of_the_transaction_service_and_of_operators_are_texts() -> Result<()> {
    let world = World::open().await?;
    for (n, text) in HOSTILE.into_iter().enumerate() {
        let id = rent(&world, &format!("rent-{n}")).await?;
        let first = if n % 2 == 0 && text.len() <= 64 {
            Settlement::Processed(text.parse()?)
        } else {
            Settlement::Failed(Failure::new(Some(text), text))
        };
        claim(&world, &id, Some(first)).await?;
        let finding = contradicted(
            &world,
            &id,
            Settlement::Failed(Failure::new(None, &format!("{text}{n}"))),
            "2026-12-01T11:00:00Z",
        )
        .await?;
        let open = page(&world, &format!("payment?id={id}")).await?;
        assert_plain(&open, text);
        let at = "2026-12-01T12:00:00Z".parse()?;
        let closed = FindingClosed { at, by: Actor::operator(text), reason: text.to_owned() };
        world.store().await.close_finding(id.parse()?, &finding.told.hash(), &closed).await?;
        let closed = page(&world, &format!("payment?id={id}")).await?;
        assert_plain(&closed, text);
        assert!(closed.contains("Finding closed"), "{closed}");
    }
    let list = page(&world, "account?id=tenant&show=all").await?;
    assert_plain(&list, "the account");
    Ok(())
}
