//! Refused clients, and the largest amount of one payment: both change nothing that was accepted.

use payments_tests::prelude::*;

/// The order with an amount in pence.
fn rent(amount: u64) -> Value {
    order_with("2026-12-01", json!({ "amountMinor": amount }))
}

fn create(key: &str, amount: u64) -> Ask {
    Ask::create("tenant", key, &rent(amount))
}

fn amend(id: &str, key: (&str, u32), order: &Value) -> Ask {
    Ask::amend("tenant", id, key, order)
}

#[tokio::test]
async fn a_refused_client_can_only_read_and_cancel_and_nothing_is_read_for_it() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &rent(5)).await?;
    let client = payments_machine::event::DEVELOPMENT_CLIENT;
    for refused in ["*".to_owned(), client.to_owned(), format!("feed,{client}")] {
        let functions = world.functions_with(|environment| environment.refused_clients = refused).await?;
        let entries = json!({ "payments": [entry("tenant", "rent", rent(5))] });
        drop(world.recorder.take_operations());
        for ask in [
            create("rent", 5),
            create("another", 5),
            amend(&id, ("more", 1), &rent(6)),
            Ask::post("/payment-batches").json(&entries),
            Ask::post("/accounts/tenant/payment-batches").json(&entries),
            Ask::post("/payment-batches").text("not JSON"),
        ] {
            let reply = world.send_to(&functions, ask).await?.refused(503, "closed")?;
            assert_eq!(reply.header("retry-after"), Some("300"), "{reply}");
            assert_eq!(reply.body["retryAfterSeconds"], 300, "{reply}");
        }
        assert_eq!(world.recorder.take_operations(), Vec::<String>::new());
        world.send_to(&functions, Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?.with_status(200)?;
        world.send_to(&functions, Ask::cancel("tenant", &id)).await?.with_status(200)?;
    }
    let others = world.functions_with(|environment| environment.refused_clients = "feed".to_owned()).await?;
    world.send_to(&others, create("another", 5)).await?.with_status(201)?;
    Ok(())
}

#[tokio::test]
async fn an_amount_is_at_most_the_limit_of_its_currency() -> Result<()> {
    let world = World::open().await?;
    for (limits, amount, currency, status) in [
        ("", 9_007_199_254_740_991_u64, "GBP", 201),
        ("GBP=500", 499, "GBP", 201),
        ("GBP=500", 500, "GBP", 201),
        ("GBP=500", 501, "GBP", 422),
        ("GBP=500", 501, "EUR", 201),
        ("GBP=500,EUR=600", 600, "EUR", 201),
        ("GBP=500,EUR=600", 601, "EUR", 422),
    ] {
        let functions = world.functions_with(|environment| environment.max_payment = limits.to_owned()).await?;
        let order = with(rent(amount), json!({ "currency": currency }));
        let key = format!("{limits}-{amount}-{currency}").replace([',', '='], "-");
        let single = world.send_to(&functions, Ask::create("tenant", &key, &order)).await?.with_status(status)?;
        let batch = json!({ "payments": [entry("tenant", format!("batch-{key}"), order)] });
        let batch = world.send_to(&functions, Ask::post("/payment-batches").json(&batch)).await?;
        assert_eq!(batch.body["results"][0]["statusCode"], status, "{batch}");
        if status == 422 {
            assert_eq!((single.problem(), single.field("field")), ("over-limit", "amountMinor"), "{single}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_limit_that_is_lowered_or_raised_changes_nothing_that_was_accepted() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(create("rent", 500)).await?.with_status(201)?;
    let id = first.field("paymentId").to_owned();
    world.send(amend(&id, ("more", 1), &rent(600))).await?.with_status(200)?;
    // A create that was cut off after its details.
    let cut_off = world.functions_meeting(Fate::LoseRequest, |call| call.number >= 1).await?;
    world.send_to(&cut_off, create("cut-off", 500)).await?.refused(503, "unavailable")?;

    let lowered = world.functions_with(|environment| environment.max_payment = "GBP=400".to_owned()).await?;
    world.send_to(&lowered, create("rent", 500)).await?.replayed()?;
    world.send_to(&lowered, amend(&id, ("more", 1), &rent(600))).await?.replayed()?;
    world.send_to(&lowered, create("cut-off", 500)).await?.replayed()?;
    // Another content under a known key, and a new payment.
    world.send_to(&lowered, create("rent", 501)).await?.refused(422, "idempotency-key-reused")?;
    world.send_to(&lowered, create("new", 401)).await?.refused(422, "over-limit")?;
    // An amendment is judged by the amount only if it changes the amount.
    let later = with(rent(600), json!({ "scheduledFor": "2026-12-02" }));
    world.send_to(&lowered, amend(&id, ("later", 2), &later)).await?.with_status(200)?;
    world.send_to(&lowered, amend(&id, ("less", 3), &rent(500))).await?.refused(422, "over-limit")?;
    let euros = with(rent(600), json!({ "currency": "EUR" }));
    world.send_to(&lowered, amend(&id, ("euros", 3), &euros)).await?.with_status(200)?;
    world.send_to(&lowered, amend(&id, ("pounds", 4), &rent(600))).await?.refused(422, "over-limit")?;
    world.send_to(&lowered, amend(&id, ("pounds", 4), &rent(400))).await?.with_status(200)?;

    let raised = world.functions_with(|environment| environment.max_payment = "GBP=401".to_owned()).await?;
    world.send_to(&raised, create("new", 401)).await?.with_status(201)?;
    Ok(())
}
