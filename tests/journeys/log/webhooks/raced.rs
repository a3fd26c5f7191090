//! Requests of operators that come at the same moment: they keep the limit, and a repetition changes nothing.

use futures::future::try_join_all;
use http::Method;
use payments_machine::Layers;
use payments_machine::layers::client_over;
use payments_store::MAX_ENDPOINTS;
use payments_tests::Reply;

use super::*;

/// How many requests come at once.
const AT_ONCE: usize = 16;

fn put(id: &str) -> Ask {
    let body = json!({ "url": "https://hooks.shop.co.uk/payments" });
    Ask::new(Method::PUT, &format!("/webhook-endpoints/{id}")).json(&body)
}

/// Sends requests at once: each lets the others go on before each of its calls.
async fn at_once(world: &World, asks: impl IntoIterator<Item = Ask>) -> Result<Vec<Reply>> {
    let layers = Layers::over(world.recorder.clone()).with_fn(|call, next| async move {
        yield_now().await;
        next.send(call).await
    });
    let functions = world.functions_in(&world.dependencies(client_over(&world.client().await, layers)))?;
    let sent = asks.into_iter().enumerate().map(|(n, ask)| {
        let (functions, id) = (&functions, format!("request-{n}"));
        async move { world.send_named(functions, &id, ask).await }
    });
    try_join_all(sent).await
}

async fn count(world: &World) -> Result<usize> {
    let list = world.send(Ask::get("/webhook-endpoints")).await?;
    Ok(list.body["endpoints"].as_array().context("no list")?.len())
}

#[tokio::test]
async fn endpoints_that_are_created_at_once_are_no_more_than_there_can_be() -> Result<()> {
    for (before, created) in [(18, 2), (MAX_ENDPOINTS, 0), (0, AT_ONCE)] {
        let world = World::open().await?;
        for n in 0..before {
            assert_eq!(world.send(put(&format!("first{n}"))).await?.status, 201);
        }
        let replies = at_once(&world, (0..AT_ONCE).map(|n| put(&format!("second{n}")))).await?;
        let new = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!((new, count(&world).await?), (created, before + created));
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            assert_eq!((reply.status, reply.problem()), (409, "too-many-endpoints"), "{reply}");
        }
    }
    Ok(())
}

/// Each deletion makes room for one, whatever came before.
#[tokio::test]
async fn endpoints_that_are_deleted_make_room() -> Result<()> {
    let world = World::open().await?;
    at_once(&world, (0..MAX_ENDPOINTS).map(|n| put(&format!("e{n}")))).await?;
    for round in 0..3 {
        let delete = |n| Ask::new(Method::DELETE, &format!("/webhook-endpoints/e{n}"));
        let deleted = at_once(&world, (0..3).map(delete)).await?;
        assert!(deleted.iter().all(|reply| reply.status == 200));
        assert_eq!(count(&world).await?, MAX_ENDPOINTS - 3);
        for n in 0..3 {
            assert_eq!(world.send(put(&format!("e{n}"))).await?.status, 201, "in round {round}");
        }
        assert_eq!(world.send(put("one-more")).await?.status, 409);
    }
    Ok(())
}

#[tokio::test]
async fn the_same_rotation_at_once_is_made_once_and_nobody_is_refused() -> Result<()> {
    let world = World::open().await?;
    assert_eq!(world.send(put("erp")).await?.status, 201);
    for generation in [2, 3] {
        let rotate = || Ask::post("/webhook-endpoints/erp/rotate").json(&json!({ "generation": generation }));
        let replies = at_once(&world, (0..AT_ONCE).map(|_| rotate())).await?;
        for reply in replies {
            assert_eq!((reply.status, &reply.body["secretGeneration"]), (200, &json!(generation)), "{reply}");
        }
    }
    Ok(())
}
