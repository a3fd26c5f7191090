//! Arbitrary query strings.

use anyhow::Result;
use payments_tests::{Ask, World};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The paths with a query, some of their parameters, and values.
const QUERIES: [(&str, &[&str], &str); 4] = [
    ("/accounts/buyer/payments", &["from", "to", "status", "limit", "cursor", "include", "other"], "[ -~é]{0,12}"),
    ("/counts", &["from", "to", "other"], "[ -~é]{0,12}|2026-12-01|2027-11-30|2099-12-31"),
    ("/events", &["cursor", "limit", "other"], "[ -~é]{0,12}|now|1.1.0|0.1.0|1.2|1"),
    ("/payments", &["dueDate", "status", "shard", "limit", "cursor", "other"], "[ -~é]{0,12}|2026-12-01|0|PENDING"),
];

#[test]
fn any_query_is_answered_with_200_or_400() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let world = runtime.block_on(World::open())?;
    for (path, names, values) in QUERIES {
        let queries = prop::collection::vec((prop::sample::select(names), values), 0..4);
        TestRunner::default().run(&queries, |pairs| {
            let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            let reply = runtime.block_on(world.send(Ask::get(&format!("{path}?{query}"))));
            let status = reply.map_err(|error| TestCaseError::fail(error.to_string()))?.status;
            prop_assert!(matches!(status, 200 | 400), "{} for {}?{}", status, path, query);
            Ok(())
        })?;
    }
    Ok(())
}
