//! What cannot be read or fails keeps nobody from the other endpoints, and alarms get their metrics all the same.

use http::Method;

use super::*;

/// Another endpoint, beside the one that works.
const OTHER: &str = "/webhook-endpoints/other";

/// Overwrites an attribute of an endpoint, or of its consumer.
pub(super) async fn spoil(hooks: &Hooks, pk: &str, sk: &str, name: &str) -> Result<()> {
    let (client, tables) = (hooks.world.client().await, &hooks.world.environment.tables);
    let table = if pk == ENDPOINTS { &tables.history } else { &tables.log };
    let key = [("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))].into();
    let update = client.update_item().table_name(table).set_key(Some(key)).update_expression("SET #name = :x");
    update
        .expression_attribute_names("#name", name)
        .expression_attribute_values(":x", text("never readable"))
        .send()
        .await?;
    Ok(())
}

async fn ids(hooks: &Hooks) -> Result<Value> {
    let listed = hooks.world.send(Ask::get("/webhook-endpoints")).await?;
    ensure!(listed.status == 200, "{listed}");
    Ok(listed.body["endpoints"].as_array().context("no list")?.iter().map(|endpoint| endpoint["id"].clone()).collect())
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_read_keeps_nobody_from_the_others() -> Result<()> {
    for (pk, sk, name) in [(ENDPOINTS, "other", "url"), (CONSUMERS, "webhook#other", "position")] {
        let mut hooks = Hooks::with_endpoint().await?;
        hooks.endpoint("other", 7002, EventFilter::default()).await?;
        hooks.segment(3, 0).await?;
        spoil(&hooks, pk, sk, name).await?;
        let outcome = hooks.publish().await?;
        assert_eq!((&outcome["webhooksUnreadable"], &outcome["webhookSegmentsBehind"]), (&json!(1), &json!(1)));
        assert_eq!(outcome["deliveredEvents"], 3);
        hooks.judge().await?;
        assert_eq!(ids(&hooks).await?, json!(["erp"]));
        // The others can be changed, and it can be deleted.
        let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "description": "new" });
        let put = hooks.world.send(Ask::new(Method::PUT, "/webhook-endpoints/erp").json(&body)).await?;
        assert_eq!(put.status, 200, "{put}");
        let deleted = hooks.world.send(Ask::new(Method::DELETE, OTHER)).await?;
        assert_eq!((deleted.status, &deleted.body), (200, &json!({ "id": "other" })), "{deleted}");
        let again = hooks.world.send(Ask::new(Method::DELETE, OTHER)).await?;
        assert_eq!(again.problem(), "no-such-endpoint");
        let outcome = hooks.publish().await?;
        assert_eq!((&outcome["webhooksUnreadable"], &outcome["webhookSegmentsBehind"]), (&json!(0), &json!(0)));
    }
    Ok(())
}

#[tokio::test]
async fn what_is_before_a_hole_of_the_log_is_delivered_and_what_is_behind_it_is_not() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    for n in 0..3 {
        hooks.segment(1, n).await?;
    }
    let before = events(&all(&hooks.world, 1_000).await?)?;
    lose_segment(&hooks.world, 2).await?;
    let error = hooks.publish().await.err().context("it goes over the hole")?;
    assert!(error.to_string().contains("LOG#3622140 / 000000000002"), "{error}");
    assert_eq!(hooks.receivers.events(PORT), before[..1]);
    Ok(())
}

#[tokio::test]
async fn a_put_repairs_an_endpoint_that_cannot_be_read() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(3, 0).await?;
    spoil(&hooks, ENDPOINTS, "erp", "url").await?;
    hooks.publish().await?;
    assert!(hooks.receivers.events(PORT).is_empty());
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook") });
    let put = hooks.world.send(Ask::new(Method::PUT, "/webhook-endpoints/erp").json(&body)).await?;
    assert_eq!((put.status, put.field("status")), (200, "enabled"), "{put}");
    hooks.publish().await?;
    hooks.judge().await
}

/// A restored log has no place for it, and the next run makes one.
#[tokio::test]
async fn an_endpoint_that_cannot_be_read_and_has_no_place_is_not_said_to_be_missing() -> Result<()> {
    let hooks = Hooks::with_endpoint().await?;
    spoil(&hooks, ENDPOINTS, "erp", "url").await?;
    let key = [("pk".to_owned(), text(CONSUMERS)), ("sk".to_owned(), text("webhook#erp"))].into();
    let (client, table) = (hooks.world.client().await, &hooks.world.environment.tables.log);
    client.delete_item().table_name(table).set_key(Some(key)).send().await?;
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook") });
    let put = async || hooks.world.send(Ask::new(Method::PUT, "/webhook-endpoints/erp").json(&body)).await;
    let reply = put().await?;
    assert_eq!((reply.status, reply.problem()), (503, "unavailable"), "{reply}");
    hooks.publish().await?;
    let reply = put().await?;
    assert_eq!((reply.status, reply.field("status")), (200, "enabled"), "{reply}");
    Ok(())
}

/// A URL whose kept form is longer than a URL can be was once stored, and nothing could be read any more.
#[tokio::test]
async fn the_longest_url_is_never_kept_in_a_longer_form() -> Result<()> {
    let hooks = Hooks::with_endpoint().await?;
    for start in ["https://hooks.shop.co.uk?".to_owned(), format!("http://127.0.0.1:{PORT}?")] {
        let url = format!("{start}{}", "a".repeat(2_048 - start.len()));
        let put = hooks.world.send(Ask::new(Method::PUT, OTHER).json(&json!({ "url": url }))).await?;
        assert_eq!((put.status, put.problem()), (422, "invalid-url"), "{put}");
        let shorter = &url[..2_047];
        let put = hooks.world.send(Ask::new(Method::PUT, OTHER).json(&json!({ "url": shorter }))).await?;
        assert!([200, 201].contains(&put.status), "{put}");
        assert_eq!(put.field("url").len(), 2_048);
        assert_eq!(ids(&hooks).await?, json!(["erp", "other"]));
    }
    Ok(())
}

/// The run fails because of one endpoint, whose place the log does not have. What is true of the others is emitted.
#[tokio::test]
async fn a_run_that_fails_for_one_endpoint_still_says_how_the_others_are() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(2, 0).await?;
    let beyond = LogPosition { number: 99, ..head(&hooks.world).await?.end() };
    let store = hooks.world.store().await;
    let url = EndpointUrl::loopback("http://127.0.0.1:7002/hook")?;
    let chosen = EndpointChoice { url, description: String::new(), filter: EventFilter::default() };
    ensure!(
        store
            .create_webhook_endpoint(
                &"beyond".parse()?,
                &chosen,
                beyond,
                false,
                hooks.world.now().as_chrono(),
                store.endpoints_created().await?
            )
            .await?
            == CreateEndpoint::Created
    );
    hooks.receivers.react(PORT, |_| Reaction::Status(410));
    drop(hooks.world.outside.metrics.take());
    let error = hooks.publish().await.err().context("it does not fail")?;
    ensure!(format!("{error:#}").contains("beyond"), "{error:#}");
    let metrics = hooks.world.outside.metrics.take().concat();
    for metric in [r#""FailedDeliveries":1"#, r#""WebhooksDisabled":1"#, r#""WebhookSegmentsBehind":"#] {
        assert!(metrics.contains(metric), "{metric}: {metrics}");
    }
    Ok(())
}
