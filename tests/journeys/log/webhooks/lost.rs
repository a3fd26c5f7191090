//! The log is lost or restored, or the long-term table is: endpoints outlive the log, and a place is one of its log.

use http::Method;
use payments_restore::{Restored, begin_lost, finish};
use payments_store::Item;

use super::*;

const PATH: &str = "/webhook-endpoints/erp";

/// The port of an endpoint whose operator switched it off.
const OFF_PORT: u16 = 7002;

/// Deletes an item.
async fn delete(hooks: &Hooks, table: &str, pk: &str, sk: &str) -> Result<()> {
    let key: Item = [("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))].into();
    hooks.world.client().await.delete_item().table_name(table).set_key(Some(key)).send().await?;
    Ok(())
}

/// An empty table takes the log's place, and an operator begins an epoch in it.
async fn lose_log(hooks: &Hooks) -> Result<()> {
    let table = &hooks.world.environment.tables.log;
    let found = hooks.world.client().await.scan().table_name(table).send().await?;
    for item in found.items.unwrap_or_default() {
        let key = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
        delete(hooks, table, &key("pk"), &key("sk")).await?;
    }
    hooks.pass(TimeDelta::hours(1))?;
    let store = hooks.world.store().await;
    begin_lost(&store, hooks.world.now()).await?;
    let stream = hooks.world.stream().await?.arn().to_owned();
    let restored = Restored { stream, tables_to: None, log_to: Some(hooks.world.now()) };
    finish(&store, &restored, || hooks.world.now(), |_, _| ()).await.map(drop)
}

async fn send(hooks: &Hooks, method: Method, path: &str, body: &Value) -> Result<Value> {
    let reply = hooks.world.send(Ask::new(method, path).json(body)).await?;
    ensure!(reply.status < 300, "{reply}");
    Ok(reply.body)
}

/// An endpoint that was rotated, and one that is switched off. Both have got two payments, and the log is lost.
async fn after_loss() -> Result<Hooks> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("off", OFF_PORT, EventFilter::default()).await?;
    send(&hooks, Method::POST, &format!("{PATH}/rotate"), &json!({ "generation": 2 })).await?;
    hooks.segment(2, 0).await?;
    hooks.publish().await?;
    hooks.judge().await?;
    let off = json!({ "url": format!("http://127.0.0.1:{OFF_PORT}/hook"), "enabled": false });
    send(&hooks, Method::PUT, "/webhook-endpoints/off", &off).await?;
    lose_log(&hooks).await?;
    Ok(hooks)
}

#[tokio::test]
async fn endpoints_outlive_the_log_and_get_what_the_next_one_says_from_its_beginning() -> Result<()> {
    for is_looked_at in [true, false] {
        let mut hooks = after_loss().await?;
        if is_looked_at {
            let found = hooks.world.send(Ask::get(PATH)).await?.body;
            assert_eq!((&found["secretGeneration"], &found["status"]), (&json!(2), &json!("enabled")), "{found}");
            let listed = hooks.world.send(Ask::get("/webhook-endpoints")).await?.body;
            let start = head(&hooks.world).await?.start_of_epoch().to_string();
            for (endpoint, status) in
                listed["endpoints"].as_array().context("none")?.iter().zip(["enabled", "disabled"])
            {
                assert_eq!((&endpoint["status"], &endpoint["cursor"]), (&json!(status), &json!(start)), "{endpoint}");
            }
        }
        let off = hooks.receivers.messages(OFF_PORT).len();
        // The first run finds that there is no place, and serves nobody as it was read before.
        hooks.publish().await?;
        hooks.segment(1, 2).await?;
        let outcome = hooks.publish().await?;
        assert_eq!((&outcome["webhookSegmentsBehind"], &outcome["webhooksMissed"]), (&json!(0), &json!(0)));
        let log = events(&all(&hooks.world, 1_000).await?)?;
        assert!(log.iter().any(|event| event["type"] == "log.gap"), "{log:?}");
        let mut taken = hooks.receivers.taken(PORT);
        taken.retain(|event| event["epoch"] == log[0]["epoch"]);
        hooks.receivers.judge_taken(&taken, &log)?;
        assert_eq!(hooks.receivers.messages(OFF_PORT).len(), off, "it was switched off");
    }
    Ok(())
}

/// A table that was restored to an instant before the endpoint was created.
#[tokio::test]
async fn an_endpoint_whose_place_is_lost_can_be_deleted_at_once_and_changed_once_it_has_a_place() -> Result<()> {
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/other") });
    let requests = [
        (Method::DELETE, PATH.to_owned(), Value::Null),
        (Method::PUT, PATH.to_owned(), body),
        (Method::POST, format!("{PATH}/test"), Value::Null),
        (Method::POST, format!("{PATH}/replay"), json!({ "cursor": "1.1.0" })),
    ];
    for (method, path, body) in requests {
        let mut hooks = Hooks::with_endpoint().await?;
        hooks.segment(2, 0).await?;
        hooks.publish().await?;
        let table = hooks.world.environment.tables.log.clone();
        delete(&hooks, &table, CONSUMERS, "webhook#erp").await?;
        let ask = || {
            let asked = Ask::new(method.clone(), &path);
            if body.is_null() { asked } else { asked.json(&body) }
        };
        let reply = hooks.world.send(ask()).await?;
        if method == Method::DELETE {
            assert_eq!(reply.status, 200, "{reply}");
            continue;
        }
        assert_eq!((reply.status, reply.problem()), (503, "unavailable"), "{path}: {reply}");
        hooks.publish().await?;
        let reply = hooks.world.send(ask()).await?;
        assert!(reply.status < 300, "{path}: {reply}");
    }
    Ok(())
}

/// As after a restore of the long-term table to an instant before the endpoint was created.
#[tokio::test]
async fn a_place_without_an_endpoint_gets_nothing_and_a_new_one_of_its_name_begins_anew() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(500));
    hooks.segment(2, 0).await?;
    hooks.publish().await?;
    let tables = hooks.world.environment.tables.clone();
    delete(&hooks, &tables.history, ENDPOINTS, "erp").await?;
    let sent = hooks.receivers.messages(PORT).len();
    hooks.pass(TimeDelta::hours(1))?;
    let outcome = hooks.publish().await?;
    assert_eq!((&outcome["webhooksUnreadable"], &outcome["webhookSegmentsBehind"]), (&json!(1), &json!(1)));
    assert_eq!(hooks.receivers.messages(PORT).len(), sent);
    let missing = hooks.world.send(Ask::get(PATH)).await?;
    assert_eq!(missing.problem(), "no-such-endpoint");
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook") });
    let created = send(&hooks, Method::PUT, PATH, &body).await?;
    assert_eq!((&created["status"], &created["secretGeneration"]), (&json!("enabled"), &json!(1)));
    let found = hooks.world.send(Ask::get(PATH)).await?.body;
    assert_eq!(found, created, "nothing is left of the one before");
    Ok(())
}

/// A restored long-term table can say that an endpoint is on which `publish` switched off, and the other way round.
#[tokio::test]
async fn what_an_operator_switches_off_stays_off_whatever_its_place_says() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(410));
    hooks.segment(2, 0).await?;
    hooks.publish().await?;
    let state = async || anyhow::Ok(hooks.world.send(Ask::get(PATH)).await?.body["disabledBy"].clone());
    assert_eq!(state().await?, "gone");
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "enabled": false });
    for _ in 0..2 {
        let off = send(&hooks, Method::PUT, PATH, &body).await?;
        assert_eq!(off["disabledBy"], "operator", "{off}");
    }
    let table = hooks.world.environment.tables.log.clone();
    delete(&hooks, &table, CONSUMERS, "webhook#erp").await?;
    assert_eq!(state().await?, "operator");
    hooks.publish().await?;
    hooks.publish().await?;
    assert_eq!(hooks.receivers.messages(PORT).len(), 1, "it got more");
    Ok(())
}
