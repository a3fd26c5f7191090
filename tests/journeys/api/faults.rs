//! Answers to clients while DynamoDB fails: try again later, never "not found".

use payments_tests::prelude::*;

/// One request to each route for an existing payment, and its status without faults.
fn requests(payment_id: &str) -> Vec<(Ask, i64)> {
    let rent = order("2026-12-01");
    let entry = entry("tenant", "batch", rent.clone());
    let one = format!("/accounts/tenant/payments/{payment_id}");
    vec![
        (Ask::create("tenant", "new", &rent), 201),
        (Ask::create("tenant", "rent", &rent), 201),
        (Ask::post("/payment-batches").json(&json!({ "payments": [entry] })), 200),
        (Ask::get("/accounts/tenant/payments"), 200),
        (Ask::get("/accounts/tenant/payments?from=2026-11-01&to=2027-01-01&include=data"), 200),
        (Ask::get(&one), 200),
        (Ask::cancel("tenant", payment_id), 200),
    ]
}

/// The status that a client sees: of the reply, or of a batch's only entry.
fn status_of(reply: &payments_tests::Reply) -> i64 {
    reply.body["results"][0]["statusCode"].as_i64().filter(|_| reply.status == 200).unwrap_or(reply.status)
}

/// A world with the payment, and a request to this route.
async fn world_and_request(route: usize) -> Result<(World, Ask, i64)> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &order("2026-12-01")).await?;
    let (ask, good) = requests(&id).swap_remove(route);
    Ok((world, ask, good))
}

const TROUBLES: [(Fate, i64); 10] = [
    (Fate::Refuse(400, "ProvisionedThroughputExceededException"), 503),
    (Fate::Refuse(400, "ThrottlingException"), 503),
    (Fate::Refuse(400, "RequestLimitExceeded"), 503),
    (Fate::Refuse(400, "TransactionConflictException"), 503),
    (Fate::Refuse(500, "InternalServerError"), 503),
    (Fate::Refuse(503, "ServiceUnavailable"), 503),
    (Fate::LoseRequest, 503),
    (Fate::LoseReply, 503),
    (Fate::Refuse(400, "ResourceNotFoundException"), 500),
    (Fate::Refuse(400, "AccessDeniedException"), 500),
];

#[tokio::test]
async fn a_lasting_error_at_any_call_is_a_503_or_a_500_and_changes_no_later_answer() -> Result<()> {
    let mut cases = 0;
    for (trouble, want) in TROUBLES {
        for route in 0..requests("").len() {
            let mut points = CrashPoints::new("lasting-error", [Way::lasting(trouble)]);
            while let Some(point) = points.next_case() {
                let (world, ask, good) = world_and_request(route).await?;
                let recorder = point.recorder();
                let troubled = world.functions_over(&recorder).await?;
                let reply = world.send_to(&troubled, ask.clone()).await?;
                let tries = recorder.take_operations().len();
                if tries <= point.call {
                    assert_eq!(reply.status, good, "{trouble:?} after the last call: {reply}");
                    continue;
                }
                points.failed(format_args!("request {route} {trouble:?}"))?;
                assert_eq!(status_of(&reply), want, "{point:?} of {ask:?}: {reply}");
                if want == 503 {
                    // In a batch only its entries can say so.
                    let (problem, is_entry) = match reply.body.get("results") {
                        Some(results) => (&results[0]["problem"], true),
                        None => (&reply.body, false),
                    };
                    assert_eq!(problem["retryAfterSeconds"], 1, "{reply}");
                    assert_eq!(reply.header("retry-after"), Some("1").filter(|_| !is_entry), "{reply}");
                }
                assert!(!reply.text.contains("Exception") && !reply.text.contains("injected"), "internals: {reply}");
                // Without the fault, the same request succeeds.
                let later = world.send(ask).await?;
                assert_eq!(later.status, good, "after {trouble:?}: {later}");
            }
            cases += points.cases();
        }
    }
    println!("{cases} cases");
    assert!(cases > 100, "the test enumerates the calls: {cases}");
    Ok(())
}

#[tokio::test]
async fn a_passing_error_is_retried_and_stays_invisible() -> Result<()> {
    let retried = TROUBLES.into_iter().filter(|(fate, status)| {
        // The SDK does not retry conflicts of single writes: those are a 503 at once.
        *status == 503 && *fate != Fate::Refuse(400, "TransactionConflictException")
    });
    for (trouble, _) in retried {
        for route in 0..requests("").len() {
            let (world, ask, good) = world_and_request(route).await?;
            let troubled = world.functions_meeting(trouble, |call| call.number == 0).await?;
            let reply = world.send_to(&troubled, ask.clone()).await?;
            assert_eq!(reply.status, good, "{trouble:?} once in {ask:?}: {reply}");
        }
    }
    Ok(())
}
