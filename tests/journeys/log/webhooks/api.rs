//! Endpoints over the API: each request can be repeated, and says what is wrong.

use http::Method;
use payments_tests::Reply;

use super::*;

const PATH: &str = "/webhook-endpoints/erp";

async fn put(world: &World, path: &str, body: &Value) -> Result<Reply> {
    world.send(Ask::new(Method::PUT, path).json(body)).await
}

async fn post(world: &World, what: &str, body: &Value) -> Result<Reply> {
    world.send(Ask::post(&format!("{PATH}/{what}")).json(body)).await
}

#[tokio::test]
async fn an_endpoint_is_created_changed_rotated_and_deleted_and_every_request_can_be_repeated() -> Result<()> {
    let mut hooks = Hooks::open().await?;
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "types": ["payment.scheduled"] });
    hooks.segment(2, 0).await?;
    let created = put(&hooks.world, PATH, &body).await?;
    assert_eq!((created.status, created.header("location")), (201, Some(PATH)));
    assert_eq!((&created.body["cursor"], &created.body["segmentsBehind"]), (&json!("3622140.2.0"), &json!(0)));
    hooks.world.set_clock("2026-11-20T10:00:00Z")?;
    let again = put(&hooks.world, PATH, &body).await?;
    assert_eq!((again.status, &again.body), (200, &created.body), "the same PUT changes nothing");
    // It begins at the end of the log, so what was before is only there by a replay.
    hooks.publish().await?;
    assert!(hooks.receivers.events(PORT).is_empty());
    for status in [200, 200] {
        let replay = post(&hooks.world, "replay", &json!({ "cursor": "1.1.0" })).await?;
        assert_eq!((replay.status, &replay.body["segmentsBehind"]), (status, &json!(1)), "{replay}");
    }
    hooks.publish().await?;
    hooks.judge().await?;
    // What is switched off gets nothing, but for tests.
    let mut off = body.clone();
    off["enabled"] = json!(false);
    let disabled = put(&hooks.world, PATH, &off).await?;
    assert_eq!((disabled.field("status"), disabled.field("disabledBy")), ("disabled", "operator"));
    hooks.segment(1, 2).await?;
    assert_eq!(world_test(&hooks).await?.status, 202);
    hooks.publish().await?;
    let last = hooks.receivers.messages(PORT).pop().context("no test")?;
    assert_eq!((last.events.len(), &last.events[0]["type"]), (1, &json!("webhook.test")));
    assert_eq!(last.events[0]["v"], 1);
    let found = hooks.world.send(Ask::get(PATH)).await?;
    assert_eq!(found.body["deliveries"][0]["outcome"], "accepted", "{found}");
    assert_eq!((&found.body["testAskedAt"], &found.body["segmentsBehind"]), (&Value::Null, &json!(1)));
    assert_eq!(put(&hooks.world, PATH, &body).await?.field("status"), "enabled");
    hooks.publish().await?;
    hooks.receivers.settle().await;
    let accepted = hooks.receivers.events(PORT).into_iter().filter(|event| event["paymentId"].is_string());
    assert_eq!(accepted.count(), 3);
    // Secrets.
    for status in [200, 200] {
        let rotated = post(&hooks.world, "rotate", &json!({ "generation": 2 })).await?;
        assert_eq!((rotated.status, &rotated.body["secretGeneration"]), (status, &json!(2)), "{rotated}");
    }
    let secrets = hooks.world.send(Ask::get(&format!("{PATH}/secret"))).await?.body["secrets"].clone();
    assert_eq!((&secrets[0]["generation"], &secrets[1]["until"]), (&json!(2), &json!("2026-11-21T10:00:00Z")));
    assert!(secrets[0]["secret"] != secrets[1]["secret"]);
    let wrong = post(&hooks.world, "rotate", &json!({ "generation": 4 })).await?;
    assert_eq!((wrong.status, wrong.problem()), (409, "wrong-generation"));
    // Gone, with all that is known of it: another one of its name begins anew.
    let delete = || Ask::new(Method::DELETE, PATH);
    assert_eq!(hooks.world.send(delete()).await?.status, 200);
    assert_eq!(hooks.world.send(delete()).await?.problem(), "no-such-endpoint");
    assert_eq!(put(&hooks.world, PATH, &body).await?.body["secretGeneration"], 1);
    Ok(())
}

async fn world_test(hooks: &Hooks) -> Result<Reply> {
    hooks.world.send(Ask::post(&format!("{PATH}/test"))).await
}

#[tokio::test]
async fn an_event_is_skipped_once_and_only_the_one_that_blocks() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(3, 0).await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(500));
    hooks.publish().await?;
    let found = hooks.world.send(Ask::get(PATH)).await?.body;
    assert_eq!((&found["status"], &found["lastError"]["status"]), (&json!("failing"), &json!(500)));
    let log = events(&all(&hooks.world, 10).await?)?;
    assert_eq!(found["failing"]["eventId"], log[0]["id"]);
    let other = post(&hooks.world, "skip", &json!({ "eventId": log[1]["id"] })).await?;
    assert_eq!((other.status, other.problem()), (409, "not-blocking"));
    for _ in 0..2 {
        let skipped = post(&hooks.world, "skip", &json!({ "eventId": log[0]["id"] })).await?;
        assert_eq!((skipped.status, &skipped.body["skipped"][0]["eventId"]), (200, &log[0]["id"]), "{skipped}");
        assert_eq!((skipped.field("status"), skipped.body["skipped"].as_array().map(Vec::len)), ("enabled", Some(1)));
    }
    hooks.receivers.react(PORT, |_| Reaction::Status(200));
    hooks.publish().await?;
    assert_eq!(hooks.receivers.events(PORT), log[1..]);
    Ok(())
}

/// Another filter lets an endpoint pass what blocked it. To skip that would bring it back.
#[tokio::test]
async fn an_event_that_an_endpoint_has_passed_is_not_skipped() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(2, 0).await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(500));
    hooks.publish().await?;
    let blocking = hooks.world.send(Ask::get(PATH)).await?.body["failing"]["eventId"].clone();
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "accounts": ["nobody"] });
    put(&hooks.world, PATH, &body).await?;
    hooks.pass(publish::LEASE)?;
    hooks.publish().await?;
    let end = hooks.state().await?.position;
    assert_eq!(end, head(&hooks.world).await?.end());
    let skipped = post(&hooks.world, "skip", &json!({ "eventId": blocking })).await?;
    assert_eq!((skipped.status, skipped.problem(), hooks.state().await?.position), (409, "not-blocking", end));
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_too_long_is_rejected_and_so_are_more_endpoints_than_there_can_be() -> Result<()> {
    let world = World::open().await?;
    let long = json!({ "url": "x".repeat(20_000) });
    let mut replies = vec![put(&world, PATH, &long).await?];
    for what in ["replay", "skip", "rotate"] {
        replies.push(post(&world, what, &long).await?);
    }
    for reply in replies {
        assert_eq!((reply.status, reply.problem()), (413, "body-too-large"), "{reply}");
    }
    let body = json!({ "url": "https://hooks.shop.co.uk/payments" });
    for n in 0..payments_store::MAX_ENDPOINTS {
        assert_eq!(put(&world, &format!("/webhook-endpoints/e{n}"), &body).await?.status, 201);
    }
    let more = put(&world, PATH, &body).await?;
    assert_eq!((more.status, more.problem()), (409, "too-many-endpoints"));
    assert_eq!(put(&world, "/webhook-endpoints/e0", &body).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_test_takes_no_fields() -> Result<()> {
    let hooks = Hooks::with_endpoint().await?;
    let ask = || Ask::post(&format!("{PATH}/test"));
    for (ask, status, problem) in [
        (ask(), 202, ""),
        (ask().text("{}"), 202, ""),
        (ask().text(r#"{"eventId":"a"}"#), 400, "invalid-shape"),
        (ask().text("[]"), 400, "invalid-shape"),
        (ask().text("{"), 400, "not-json"),
        (ask().header("Content-Type", "text/plain").text("{}"), 415, "unsupported-media-type"),
        (ask().text("x".repeat(20_000)), 413, "body-too-large"),
    ] {
        let reply = hooks.world.send(ask).await?;
        assert_eq!((reply.status, reply.problem()), (status, problem), "{reply}");
    }
    Ok(())
}

/// A later release may keep more about an endpoint.
#[tokio::test]
async fn what_this_version_does_not_know_stays() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    let (client, tables) = (hooks.world.client().await, hooks.world.environment.tables.clone());
    let key = |pk: &str, sk: &str| [("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))].into();
    let items = [(tables.history, key(ENDPOINTS, "erp")), (tables.log, key(CONSUMERS, "webhook#erp"))];
    for (table, key) in &items {
        let update = client.update_item().table_name(table).set_key(Some(Clone::clone(key)));
        let update = update.update_expression("SET later = :x");
        update.expression_attribute_values(":x", text("known later")).send().await?;
    }
    hooks.segment(2, 0).await?;
    hooks.publish().await?;
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "description": "new" });
    for (reply, status) in [
        (put(&hooks.world, PATH, &body).await?, 200),
        (post(&hooks.world, "rotate", &json!({ "generation": 2 })).await?, 200),
        (post(&hooks.world, "replay", &json!({ "cursor": "1.1.0" })).await?, 200),
        (world_test(&hooks).await?, 202),
    ] {
        assert_eq!(reply.status, status, "{reply}");
    }
    hooks.publish().await?;
    for (table, key) in items {
        let found = client.get_item().table_name(table).set_key(Some(key)).send().await?.item.context("no item")?;
        assert_eq!(found.get("later"), Some(&text("known later")));
    }
    Ok(())
}
