//! Requests of operators that come at the same moment: they keep the limit, and a repetition changes nothing.

use futures::future::try_join_all;
use payments_store::MAX_ENDPOINTS;
use payments_tests::Reply;

use super::*;

/// The number of requests at once.
const AT_ONCE: usize = 16;

/// Sends requests at once: before each of its calls, each request yields to the others.
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

/// Puts new endpoints, each of which must have this status.
async fn put_new(world: &World, name: &str, count: usize, status: i64) -> Result<()> {
    for n in 0..count {
        world.answered(put(&format!("{name}{n}"), &json!({})), status).await?;
    }
    Ok(())
}

async fn count(world: &World) -> Result<usize> {
    let list = world.send(Ask::get("/webhook-endpoints")).await?;
    Ok(list.body["endpoints"].as_array().context("no list")?.len())
}

#[tokio::test]
async fn endpoints_that_are_created_at_once_are_no_more_than_there_can_be() -> Result<()> {
    for (before, created) in [(18, 2), (MAX_ENDPOINTS, 0), (0, AT_ONCE)] {
        let world = World::open().await?;
        put_new(&world, "first", before, 201).await?;
        let replies = at_once(&world, (0..AT_ONCE).map(|n| put(&format!("second{n}"), &json!({})))).await?;
        let (new, others): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 201);
        assert_eq!((new.len(), count(&world).await?), (created, before + created));
        for reply in others {
            reply.refused(409, "too-many-endpoints")?;
        }
    }
    Ok(())
}

/// Each deletion makes room for one, whatever came before.
#[tokio::test]
async fn endpoints_that_are_deleted_make_room() -> Result<()> {
    let world = World::open().await?;
    at_once(&world, (0..MAX_ENDPOINTS).map(|n| put(&format!("e{n}"), &json!({})))).await?;
    for round in 0..3 {
        let deleted = at_once(&world, (0..3).map(|n| delete(&format!("e{n}")))).await?;
        assert!(deleted.iter().all(|reply| reply.status == 200));
        assert_eq!(count(&world).await?, MAX_ENDPOINTS - 3);
        put_new(&world, "e", 3, 201).await.with_context(|| format!("round {round}"))?;
        put_new(&world, "one-more", 1, 409).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_same_rotation_at_once_is_made_once_and_nobody_is_refused() -> Result<()> {
    let world = World::open().await?;
    world.answered(put("erp", &json!({})), 201).await?;
    for generation in [2, 3] {
        let rotate = || post("rotate", &json!({ "generation": generation }));
        for reply in at_once(&world, (0..AT_ONCE).map(|_| rotate())).await? {
            assert_eq!(reply.with_status(200)?.body["secretGeneration"], generation);
        }
    }
    Ok(())
}
