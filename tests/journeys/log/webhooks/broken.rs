//! An endpoint that fails or cannot be read holds up no other endpoint, and alarms get their metrics all the same.

use super::*;

async fn ids(log: &Log) -> Result<Value> {
    let listed = log.answered(Ask::get("/webhook-endpoints"), 200).await?;
    Ok(listed.body["endpoints"].as_array().context("no list")?.iter().map(|endpoint| endpoint["id"].clone()).collect())
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_read_keeps_nobody_from_the_others() -> Result<()> {
    for (pk, sk, name) in [(ENDPOINTS, "other", "url"), (CONSUMERS, "webhook#other", "position")] {
        let log = Log::with_endpoint(&[3]).await?;
        log.endpoint("other", OTHER_PORT).await?;
        log.spoil(pk, sk, name).await?;
        let broken = json!({ "webhooksUnreadable": 1, "webhookSegmentsBehind": 1, "deliveredEvents": 3 });
        assert_has(&log.publish().await?, &broken);
        log.judge().await?;
        assert_eq!(ids(&log).await?, json!(["erp"]));
        // The others can be changed, and it can be deleted.
        log.answered(put("erp", &json!({ "description": "new" })), 200).await?;
        assert_eq!(log.answered(delete("other"), 200).await?.body, json!({ "id": "other" }));
        log.refused(delete("other"), 404, "no-such-endpoint").await?;
        assert_has(&log.publish().await?, &json!({ "webhooksUnreadable": 0, "webhookSegmentsBehind": 0 }));
    }
    Ok(())
}

#[tokio::test]
async fn what_is_before_a_hole_of_the_log_is_delivered_and_what_is_behind_it_is_not() -> Result<()> {
    let log = Log::with_endpoint(&[1, 1, 1]).await?;
    let before = log.events().await?;
    log.tear(2).await?;
    assert_fails(log.publish().await, "LOG#3622140 / 000000000002");
    assert_eq!(log.received(), before[..1]);
    Ok(())
}

/// A restored log may have no place for it, and the next run makes one.
#[tokio::test]
async fn a_put_repairs_an_endpoint_that_cannot_be_read() -> Result<()> {
    for has_place in [true, false] {
        let log = Log::with_endpoint(&[3]).await?;
        log.spoil(ENDPOINTS, "erp", "url").await?;
        if !has_place {
            // No answer says that the place is missing.
            log.lose_place().await?;
            log.refused(put("erp", &json!({})), 503, "unavailable").await?;
        }
        log.publish().await?;
        assert!(log.received().is_empty());
        assert_eq!(log.answered(put("erp", &json!({})), 200).await?.field("status"), "enabled");
        log.publish_all().await?;
    }
    Ok(())
}

/// A URL whose kept form is longer than a URL can be was once stored, and nothing could be read any more.
#[tokio::test]
async fn the_longest_url_is_never_kept_in_a_longer_form() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    for (start, status) in [("https://hooks.shop.co.uk?", 201), ("http://127.0.0.1:7001?", 200)] {
        let url = format!("{start}{}", "a".repeat(2_048 - start.len()));
        log.refused(put("other", &json!({ "url": url })), 422, "invalid-url").await?;
        let shorter = log.answered(put("other", &json!({ "url": url[..2_047] })), status).await?;
        assert_eq!(shorter.field("url").len(), 2_048);
        assert_eq!(ids(&log).await?, json!(["erp", "other"]));
    }
    Ok(())
}

/// The run fails because of one endpoint, whose place the log does not have. The metrics of the others are emitted.
#[tokio::test]
async fn a_run_that_fails_for_one_endpoint_still_says_how_the_others_are() -> Result<()> {
    let log = Log::with_endpoint(&[2]).await?;
    let beyond = LogPosition { number: 99, ..log.end().await? };
    log.endpoint_from("beyond", &at_port(OTHER_PORT)?, beyond).await?;
    log.answer(PORT, 410);
    log.forget();
    assert_fails(log.publish().await, "beyond");
    let metrics = log.outside.metrics.take().concat();
    for metric in [r#""FailedDeliveries":1"#, r#""WebhooksDisabled":1"#, r#""WebhookSegmentsBehind":"#] {
        assert!(metrics.contains(metric), "{metric}: {metrics}");
    }
    Ok(())
}
