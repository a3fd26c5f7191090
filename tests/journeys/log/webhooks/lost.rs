//! The log is lost or restored, or the long-term table is: endpoints outlive the log, and a place is one of its log.

use payments_restore::begin_lost;

use super::*;

/// An empty table takes the log's place, and an operator begins an epoch in it.
async fn lose_log(log: &Log) -> Result<()> {
    let table = &log.environment.tables.log;
    for item in log.items_of(table).await? {
        log.delete(table, &item).await?;
    }
    log.pass(TimeDelta::hours(1))?;
    begin_lost(&log.store().await, log.now()).await?;
    log.finish_log(&log.now().to_string()).await.map(drop)
}

/// An endpoint that was rotated, and one that is switched off. Both have got two payments, and the log is lost.
async fn after_loss() -> Result<Log> {
    let log = Log::with_endpoint(&[]).await?;
    log.endpoint("off", OTHER_PORT).await?;
    log.answered(post("rotate", &json!({ "generation": 2 })), 200).await?;
    log.segment(2).await?;
    log.publish_all().await?;
    log.answered(put("off", &json!({ "url": url(OTHER_PORT), "enabled": false })), 200).await?;
    lose_log(&log).await?;
    Ok(log)
}

#[tokio::test]
async fn endpoints_outlive_the_log_and_get_what_the_next_one_says_from_its_beginning() -> Result<()> {
    for is_looked_at in [true, false] {
        let log = after_loss().await?;
        if is_looked_at {
            assert_has(&log.seen().await?, &json!({ "secretGeneration": 2, "status": "enabled" }));
            let listed = log.get("/webhook-endpoints").await?.body;
            let cursor = log.head().await?.start_of_epoch().to_string();
            for (n, status) in ["enabled", "disabled"].into_iter().enumerate() {
                assert_has(&listed["endpoints"][n], &json!({ "status": status, "cursor": cursor }));
            }
        }
        let off = log.receivers.messages(OTHER_PORT).len();
        // The first run finds that there is no place, and serves nobody as it was read before.
        log.publish().await?;
        log.segment(1).await?;
        assert_has(&log.publish().await?, &json!({ "webhookSegmentsBehind": 0, "webhooksMissed": 0 }));
        let events = log.events().await?;
        assert!(types(&events).contains(&"log.gap"), "{events:?}");
        let mut taken = log.receivers.taken(PORT);
        taken.retain(|event| event["epoch"] == events[0]["epoch"]);
        log.receivers.judge_taken(&taken, &events)?;
        assert_eq!(log.receivers.messages(OTHER_PORT).len(), off, "it was switched off");
    }
    Ok(())
}

/// A table that was restored to an instant before the endpoint was created.
#[tokio::test]
async fn an_endpoint_whose_place_is_lost_can_be_deleted_at_once_and_changed_once_it_has_a_place() -> Result<()> {
    for (ask, is_possible_at_once) in [
        (delete("erp"), true),
        (put("erp", &json!({ "url": "http://127.0.0.1:7001/other" })), false),
        (ask_test(), false),
        (post("replay", &json!({ "cursor": "1.1.0" })), false),
    ] {
        let log = Log::with_endpoint(&[2]).await?;
        log.publish().await?;
        log.lose_place().await?;
        let reply = log.send(ask.clone()).await?;
        if is_possible_at_once {
            reply.with_status(200)?;
            continue;
        }
        reply.refused(503, "unavailable")?;
        log.publish().await?;
        let reply = log.send(ask).await?;
        assert!(reply.status < 300, "{reply}");
    }
    Ok(())
}

/// As after a restore of the long-term table to an instant before the endpoint was created.
#[tokio::test]
async fn a_place_without_an_endpoint_gets_nothing_and_a_new_one_of_its_name_begins_anew() -> Result<()> {
    let log = Log::with_endpoint(&[2]).await?;
    log.answer(PORT, 500);
    log.publish().await?;
    log.lose_endpoint("erp").await?;
    let sent = log.messages().len();
    log.pass(TimeDelta::hours(1))?;
    assert_has(&log.publish().await?, &json!({ "webhooksUnreadable": 1, "webhookSegmentsBehind": 1 }));
    assert_eq!(log.messages().len(), sent);
    log.refused(Ask::get(&path("erp")), 404, "no-such-endpoint").await?;
    let created = log.answered(put("erp", &json!({})), 201).await?.body;
    assert_has(&created, &json!({ "status": "enabled", "secretGeneration": 1 }));
    assert_eq!(log.seen().await?, created, "nothing is left of the one before");
    Ok(())
}

/// A restored long-term table can say that an endpoint is on which `publish` switched off, and the other way round.
#[tokio::test]
async fn what_an_operator_switches_off_stays_off_whatever_its_place_says() -> Result<()> {
    let log = Log::with_endpoint(&[2]).await?;
    log.answer(PORT, 410);
    log.publish().await?;
    assert_eq!(log.seen().await?["disabledBy"], "gone");
    for _ in 0..2 {
        let off = log.answered(put("erp", &json!({ "enabled": false })), 200).await?;
        assert_eq!(off.field("disabledBy"), "operator", "{off}");
    }
    log.lose_place().await?;
    assert_eq!(log.seen().await?["disabledBy"], "operator");
    log.publish().await?;
    log.publish().await?;
    assert_eq!(log.messages().len(), 1, "it got more");
    Ok(())
}
