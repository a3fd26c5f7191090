//! Endpoints over the API: each request can be repeated, and its answer names its faults.

use super::*;

#[tokio::test]
async fn an_endpoint_is_created_changed_rotated_and_deleted_and_every_request_can_be_repeated() -> Result<()> {
    let log = Log::with(&[2]).await?;
    let on = put("erp", &json!({ "types": ["payment.scheduled"] }));
    let created = log.answered(on.clone(), 201).await?;
    assert_eq!(created.header("location"), Some(path("erp").as_str()));
    assert_has(&created.body, &json!({ "cursor": "3622140.2.0", "segmentsBehind": 0 }));
    log.set_clock("2026-11-20T10:00:00Z")?;
    assert_eq!(log.answered(on.clone(), 200).await?.body, created.body, "the same PUT changes nothing");
    // The endpoint begins at the end of the log, so it gets earlier events only by a replay.
    log.publish().await?;
    assert!(log.received().is_empty());
    for _ in 0..2 {
        let replay = log.answered(post("replay", &json!({ "cursor": "1.1.0" })), 200).await?;
        assert_eq!(replay.body["segmentsBehind"], 1, "{replay}");
    }
    log.publish_all().await?;
    // A disabled endpoint gets tests, and nothing else.
    let off = log.send(put("erp", &json!({ "types": ["payment.scheduled"], "enabled": false }))).await?;
    assert_has(&off.body, &json!({ "status": "disabled", "disabledBy": "operator" }));
    log.segment(1).await?;
    log.answered(ask_test(), 202).await?;
    log.publish().await?;
    let last = log.messages().pop().context("no test")?;
    assert_eq!(types(&last.events), ["webhook.test"]);
    assert_eq!((&last.events[0]["epoch"], &last.events[0]["v"]), (&json!(3_622_140), &json!(1)));
    let seen = log.seen().await?;
    assert_eq!(seen["deliveries"][0]["outcome"], "accepted", "{seen}");
    assert_has(&seen, &json!({ "testAskedAt": null, "segmentsBehind": 1 }));
    assert_eq!(log.send(on.clone()).await?.field("status"), "enabled");
    log.publish().await?;
    log.receivers.settle().await;
    assert_eq!(log.received().iter().filter(|event| event["paymentId"].is_string()).count(), 3);
    // Secrets.
    for _ in 0..2 {
        let rotated = log.answered(post("rotate", &json!({ "generation": 2 })), 200).await?;
        assert_eq!(rotated.body["secretGeneration"], 2, "{rotated}");
    }
    let secrets = log.get(&format!("{}/secret", path("erp"))).await?.body["secrets"].clone();
    assert_eq!((&secrets[0]["generation"], &secrets[1]["until"]), (&json!(2), &json!("2026-11-21T10:00:00Z")));
    assert_ne!(secrets[0]["secret"], secrets[1]["secret"]);
    log.refused(post("rotate", &json!({ "generation": 4 })), 409, "wrong-generation").await?;
    // Gone, with all that is known of it: another one of its name begins anew.
    log.answered(delete("erp"), 200).await?;
    log.refused(delete("erp"), 404, "no-such-endpoint").await?;
    assert_eq!(log.send(on).await?.body["secretGeneration"], 1);
    Ok(())
}

#[tokio::test]
async fn an_event_is_skipped_once_and_only_the_one_that_blocks() -> Result<()> {
    let log = Log::with_endpoint(&[3]).await?;
    log.answer(PORT, 500);
    log.publish().await?;
    let (seen, events) = (log.seen().await?, log.events().await?);
    assert_eq!((&seen["status"], &seen["lastError"]["status"]), (&json!("failing"), &json!(500)));
    assert_eq!(seen["failing"]["eventId"], events[0]["id"]);
    let skip = async |event: &Value| log.send(post("skip", &json!({ "eventId": event["id"] }))).await;
    skip(&events[1]).await?.refused(409, "not-blocking")?;
    for _ in 0..2 {
        let skipped = skip(&events[0]).await?.with_status(200)?;
        assert_eq!(skipped.field("status"), "enabled");
        assert_eq!(skipped.body["skipped"].as_array().map(Vec::len), Some(1), "{skipped}");
        assert_eq!(skipped.body["skipped"][0]["eventId"], events[0]["id"]);
    }
    log.answer(PORT, 200);
    log.publish().await?;
    assert_eq!(log.received(), events[1..]);
    Ok(())
}

/// Another filter moves an endpoint past the event that blocked it. A skip would move the endpoint back.
#[tokio::test]
async fn an_event_that_an_endpoint_has_passed_is_not_skipped() -> Result<()> {
    let log = Log::with_endpoint(&[2]).await?;
    log.answer(PORT, 500);
    log.publish().await?;
    let blocking = log.seen().await?["failing"]["eventId"].clone();
    log.send(put("erp", &json!({ "accounts": ["nobody"] }))).await?;
    log.pass(publish::LEASE)?;
    log.publish().await?;
    let end = log.end().await?;
    assert_eq!(log.state().await?.position, end);
    log.refused(post("skip", &json!({ "eventId": blocking })), 409, "not-blocking").await?;
    assert_eq!(log.state().await?.position, end);
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_too_long_is_rejected_and_so_are_more_endpoints_than_there_can_be() -> Result<()> {
    let world = World::open().await?;
    let long = json!({ "url": "x".repeat(20_000) });
    for ask in [put("erp", &long), post("replay", &long), post("skip", &long), post("rotate", &long)] {
        world.refused(ask, 413, "body-too-large").await?;
    }
    for n in 0..payments_store::MAX_ENDPOINTS {
        world.answered(put(&format!("e{n}"), &json!({})), 201).await?;
    }
    world.refused(put("erp", &json!({})), 409, "too-many-endpoints").await?;
    world.answered(put("e0", &json!({})), 200).await?;
    Ok(())
}

#[tokio::test]
async fn a_test_takes_no_fields() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    for ask in [ask_test(), ask_test().text("{}")] {
        log.answered(ask, 202).await?;
    }
    for (ask, status, problem) in [
        (ask_test().text(r#"{"eventId":"a"}"#), 400, "invalid-shape"),
        (ask_test().text("[]"), 400, "invalid-shape"),
        (ask_test().text("{"), 400, "not-json"),
        (ask_test().header("Content-Type", "text/plain").text("{}"), 415, "unsupported-media-type"),
        (ask_test().text("x".repeat(20_000)), 413, "body-too-large"),
    ] {
        log.refused(ask, status, problem).await?;
    }
    Ok(())
}

/// A later release may keep more about an endpoint.
#[tokio::test]
async fn what_this_version_does_not_know_stays() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    let tables = &log.environment.tables;
    let items = [(&tables.history, key(ENDPOINTS, "erp")), (&tables.log, key(CONSUMERS, "webhook#erp"))];
    for (table, key) in &items {
        log.update_in(table, key.clone(), "SET later = :x", &[(":x", text("known later"))]).await?;
    }
    log.segment(2).await?;
    log.publish().await?;
    for (ask, status) in [
        (put("erp", &json!({ "description": "new" })), 200),
        (post("rotate", &json!({ "generation": 2 })), 200),
        (post("replay", &json!({ "cursor": "1.1.0" })), 200),
        (ask_test(), 202),
    ] {
        log.answered(ask, status).await?;
    }
    log.publish().await?;
    for (table, key) in items {
        let found =
            log.items_of(table).await?.into_iter().find(|item| key.iter().all(|(name, value)| item[name] == *value));
        assert_eq!(found.context("no item")?.get("later"), Some(&text("known later")));
    }
    Ok(())
}
