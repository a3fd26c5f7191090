//! Clients that send what no client should: each request has a clear answer, and changes nothing.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use http::Method;
use payments_machine::client::{Reply, Request};
use serde_json::{Value, json};

use crate::plans::faults::FaultKind;
use crate::time::pause;
use crate::workloads::clients::asked;
use crate::world::bank::Bank;

/// Sends hostile requests until `end`.
pub(crate) async fn run(bank: Arc<Bank>, end: DateTime<Utc>) {
    let mut random = bank.seed.source("hostile");
    while bank.time.now() < end {
        pause(TimeDelta::minutes(random.i64(20..120))).await;
        if !bank.faults.draw(FaultKind::Hostile, 800) {
            continue;
        }
        let request = hostile(&mut random);
        let answered = |Reply { status, .. }| match status {
            // Something else is wrong, too.
            429 | 500.. => None,
            400.. => Some(()),
            _ => {
                bank.complain(format!("{request:?} was answered {status}"));
                Some(())
            }
        };
        asked(&bank, &request, answered).await;
    }
}

/// Returns a request that is wrong in one way.
fn hostile(random: &mut Rng) -> Request {
    // No intent has this amount, so the checker would find the payment.
    let good = json!({
        "payeeAccountId": "landlord", "amountMinor": 1, "currency": "GBP", "scheduledFor": "2026-12-24", "data": {},
    });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        Request::create("acc-0", "hostile", &body)
    };
    let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
    match random.u8(0..18) {
        0 => Request::post("/accounts/acc-0/payments").header("Idempotency-Key", "hostile").text("{\"amountMinor\":"),
        1 => with("amountMinor", json!(-5)),
        2 => with("amountMinor", json!(u64::MAX)),
        3 => with("currency", json!("XAU")),
        4 => with("scheduledFor", json!("1999-12-31")),
        5 => with("scheduledFor", json!("2026-02-30")),
        6 => with("data", nested),
        7 => with("data", json!("x".repeat(9_000))),
        8 => with(&"f".repeat(30_000), json!(true)),
        9 => Request::create("..", "hostile", &good),
        10 => Request::get("/accounts/acc-0/payments?cursor=bm90IGEgY3Vyc29y"),
        11 => Request::cancel("acc-1", "7a3f8f0e-52c4-5a51-8d0b-1be690c2f417"),
        12 => Request::post("/payment-batches").json(&json!({ "payments": vec![good.clone(); 101] })),
        13 => Request::get("/accounts/acc-0/payments/%00"),
        14 => amendment(None).json(&good),
        _ => {
            let tags = ["*", "1", "\"01\"", "W/\"1\"", "\"1\", \"2\"", "\"99999999999\"", "\"\"", "\"-1\"", "\"1"];
            amendment(random.choice(tags)).json(&good)
        }
    }
}

/// An amendment without `If-Match`, or with one that is not an entity tag of a payment.
fn amendment(tag: Option<&str>) -> Request {
    let path = "/accounts/acc-1/payments/7a3f8f0e-52c4-5a51-8d0b-1be690c2f417";
    let request = Request::new(Method::PUT, path).header("Idempotency-Key", "hostile");
    match tag {
        Some(tag) => request.header("If-Match", tag),
        None => request,
    }
}
