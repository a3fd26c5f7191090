//! Extreme requests: their answers stay small, and nothing breaks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payments_http::problem::MAX_ERRORS;
use payments_machine::{Handlers as _, event};
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::prelude::*;

/// Lambda's limit on an answer, in bytes.
const LAMBDA_LIMIT: usize = 6 * 1024 * 1024;

/// The most that an answer with problems alone may have: far from the limit.
const MOST: usize = 1_700_000;

/// The longest body of a batch.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Sends a request. Returns the reply and the bytes of the function's answer, as JSON or with its body in base64.
async fn send(world: &World, ask: Ask) -> Result<(Reply, usize)> {
    let authorizer = event::all_scopes(event::DEVELOPMENT_CLIENT);
    let (function, event) = ask.event("test", chrono::DateTime::UNIX_EPOCH, &authorizer)?;
    let response = world.functions().invoke(function, event).await;
    let json = serde_json::to_string(&response)?.len();
    let reply = Reply::from_response(response)?;
    Ok((reply.clone(), json.max(STANDARD.encode(&reply.text).len())))
}

/// A batch of a hundred entries, as long as a batch may be. Each has one long text, in which `piece` is repeated.
fn longest_batch(piece: &str, entry: fn(&str) -> String) -> String {
    let frame = entry("").len() + ",".len();
    let text = piece.repeat((BATCH_BYTES - 32) / 100 / piece.len() - frame.div_ceil(piece.len()));
    let batch = format!(r#"{{"payments":[{}]}}"#, vec![entry(&text); 100].join(","));
    assert!((BATCH_BYTES - 16_000..=BATCH_BYTES).contains(&batch.len()), "{}", batch.len());
    batch
}

/// A valid entry with another text in one of its fields.
fn entry_with(field: &str, text: &str) -> String {
    let mut fields = vec![
        ("accountId", r#""tenant""#.to_owned()),
        ("idempotencyKey", r#""k""#.to_owned()),
        ("payeeAccountId", r#""shop""#.to_owned()),
        ("amountMinor", "1".to_owned()),
        ("currency", r#""GBP""#.to_owned()),
        ("scheduledFor", r#""2026-12-01""#.to_owned()),
    ];
    fields.retain(|(known, _)| *known != field);
    fields.push((field, text.to_owned()));
    let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    format!("{{{}}}", fields.join(","))
}

#[tokio::test]
async fn no_batch_makes_an_answer_that_lambda_rejects() -> Result<()> {
    let world = World::open().await?;
    // Pieces that become longer in an answer: a quote in JSON is two bytes, and three more in Lambda's JSON.
    let pieces = ["x", r#"\""#, r"\\", r"\u0001", r"\n", "é", "\u{1f600}", "/", "`, expected `"];
    let entries: [fn(&str) -> String; 9] = [
        |text| format!(r#"{{"{text}":1}}"#),
        |text| entry_with(&format!("x{text}"), "1"),
        |text| entry_with("accountId", &format!(r#""{text}""#)),
        |text| entry_with("idempotencyKey", &format!(r#""{text}""#)),
        |text| entry_with("payeeAccountId", &format!(r#""{text}""#)),
        |text| entry_with("currency", &format!(r#""{text}""#)),
        |text| entry_with("scheduledFor", &format!(r#""{text}""#)),
        |text| entry_with("amountMinor", &format!(r#""{text}""#)),
        |text| entry_with("data", &format!(r#""{text}""#)),
    ];
    for piece in pieces {
        for entry in entries {
            let (reply, bytes) = send(&world, Ask::post("/payment-batches").text(longest_batch(piece, entry))).await?;
            let results = reply.body["results"].as_array().with_context(|| format!("{reply:.500}"))?;
            assert!(results.len() == 100 && results.iter().all(|result| result["statusCode"] != 201), "{reply:.500}");
            assert!(bytes <= MOST, "{bytes} bytes for {piece}: {:.500}", reply.text);
        }
    }
    // Many faults in each entry, each with a long name.
    let names = (0..20).map(|n| format!(r#""{n:02}{}":1"#, r"\u0001".repeat(62)));
    let entry = format!("{{{}}}", names.collect::<Vec<_>>().join(","));
    let batch = format!(r#"{{"payments":[{}]}}"#, vec![entry; 100].join(","));
    let (reply, bytes) = send(&world, Ask::post("/payment-batches").text(batch)).await?;
    let errors = reply.body["results"][99]["problem"]["errors"].as_array();
    assert_eq!(errors.map(Vec::len), Some(MAX_ERRORS), "{reply:.500}");
    assert!(bytes <= MOST && MOST < LAMBDA_LIMIT, "{bytes} bytes");
    Ok(())
}

#[tokio::test]
async fn the_longest_answer_to_a_valid_batch_is_one_that_lambda_accepts() -> Result<()> {
    let world = World::open().await?;
    let entry = |n: usize| {
        json!({
            "accountId": "a".repeat(48), "idempotencyKey": format!("{n:03}{}", "k".repeat(252)),
            "payeeAccountId": "p".repeat(48), "amountMinor": MAX_AMOUNT_MINOR, "currency": "GBP",
            "scheduledFor": "2026-12-01T23:59:59+00:30", "data": "\\".repeat(3_700),
        })
    };
    let batch = json!({ "payments": (0..100).map(entry).collect::<Vec<_>>() });
    let (reply, bytes) = send(&world, Ask::post("/payment-batches").json(&batch)).await?;
    assert_eq!(reply.body["results"][99]["statusCode"], 201, "{reply:.500}");
    assert!(bytes <= MOST, "{bytes} bytes");
    Ok(())
}

#[tokio::test]
async fn long_parameters_are_cut_in_answers() -> Result<()> {
    let world = World::open().await?;
    let long = "%C3%A9".repeat(1_000);
    for ask in [
        Ask::get(&format!("/counts?{long}=1")),
        Ask::get(&format!("/counts?from={long}")),
        Ask::get(&format!("/payments?transactionId={long}")),
        Ask::get(&format!("/payments?cursor={long}")),
        Ask::get(&format!("/accounts/a/payments?status={long}")),
        Ask::get(&format!("/accounts/{long}/payments")),
        Ask::get(&format!("/accounts/a/payments/{long}")),
        Ask::get(&format!("/{long}")),
        Ask::create("a", &"k".repeat(5_000), &json!({})),
    ] {
        let (reply, bytes) = send(&world, ask).await?;
        assert!(reply.status >= 400 && bytes < 1_024, "{bytes}: {reply}");
    }
    Ok(())
}

#[tokio::test]
async fn json_of_any_depth_is_accepted_or_rejected_and_breaks_nothing() -> Result<()> {
    let world = World::open().await?;
    let nested = |open: &str, close: &str, levels: usize| format!("{}{}", open.repeat(levels), close.repeat(levels));
    for levels in [1, 64, 65, 127, 128, 129, 7_000] {
        for (open, close) in [("[", "]"), (r#"{"a":["#, "]}")] {
            let each = open.matches(['[', '{']).count();
            let deep = nested(open, close, levels);
            let data_status = if levels * each <= 64 { 201 } else { 400 };
            for (field, status) in [
                ("data", data_status),
                ("other", 400),
                ("amountMinor", 400),
                ("payeeAccountId", 400),
                ("idempotencyKey", 400),
                ("scheduledFor", 400),
            ] {
                let entry = entry_with(field, &deep);
                let batch =
                    world.send(Ask::post("/payment-batches").text(format!(r#"{{"payments":[{entry}]}}"#))).await?;
                let result = &batch.body["results"][0];
                // All of them have one key, so a second one with other data reuses the key of the first.
                let is_reused = field == "data"
                    && result["problem"]["type"].as_str().is_some_and(|kind| kind.ends_with("idempotency-key-reused"));
                assert!(
                    result["statusCode"] == status || (status == 201 && is_reused),
                    "{field}, {levels}: {result:.300}"
                );
            }
            for body in [deep.clone(), format!(r#"{{"payments":{deep}}}"#), format!(r#"{{"other":{deep}}}"#)] {
                let batch = world.send(Ask::post("/payment-batches").text(body.clone())).await?;
                assert!(batch.status == 400 || batch.body["results"][0]["statusCode"] == 400, "{levels}: {batch:.300}");
                let single =
                    world.send(Ask::post("/accounts/a/payments").header("Idempotency-Key", "k").text(body)).await?;
                assert_eq!(single.status, 400, "{levels}: {single:.300}");
            }
        }
    }
    let deep = nested("[", "]", 64);
    let kept =
        entry_with("data", &deep).replace(r#""accountId":"tenant","#, "").replace(r#""idempotencyKey":"k","#, "");
    let put = world.send(Ask::post("/accounts/a/payments").header("Idempotency-Key", "k").text(kept)).await?;
    assert_eq!(put.status, 201, "{put}");
    let got = world.send(Ask::get(&format!("/accounts/a/payments/{}", put.field("paymentId")))).await?;
    assert_eq!(got.body["data"], serde_json::from_str::<Value>(&deep)?, "{got}");
    Ok(())
}

#[tokio::test]
async fn half_a_surrogate_pair_is_the_fault_of_its_entry_alone() -> Result<()> {
    let world = World::open().await?;
    let entry = |key: &str, data: &str| entry_with("data", data).replace(r#""k""#, &format!("{key:?}"));
    let entries = [entry("1", r#""\ud83d""#), entry("2", r#"{"\udc00":1}"#), entry("3", r#""\ud83d\ude00""#)];
    let batch = format!(r#"{{"payments":[{}]}}"#, entries.join(","));
    let reply = world.send(Ask::post("/payment-batches").text(batch)).await?;
    let statuses: Vec<_> = reply.body["results"].as_array().into_iter().flatten().map(|r| &r["statusCode"]).collect();
    assert_eq!(statuses, [400, 400, 201], "{reply}");
    assert_eq!(reply.body["results"][0]["problem"]["field"], "data", "{reply}");
    Ok(())
}
