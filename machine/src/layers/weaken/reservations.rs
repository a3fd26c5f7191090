//! Claims that are reserved after they were made, as a weakness: until then, others see the room as free.

use std::time::Duration;

use serde_json::Value;

use super::row::{Held, Seen};
use super::take_out::{remove_added, remove_condition};
use crate::engine::Direct;
use crate::layers::attributes::text;

/// The time that the claims take.
const CLAIMS_TAKE: Duration = Duration::from_secs(5);

/// Takes what it reserves out of a reservation, whose condition stays.
pub(super) fn take(seen: &mut Seen<'_>) -> Option<Held> {
    let adds = |input: &Value| input["UpdateExpression"].as_str().is_some_and(|update| update.contains(" ADD "));
    if !seen.is("UpdateItem", "Key", |key| text(key, "pk") == "CLAIMS") || !adds(seen.input) {
        return None;
    }
    let mut later = seen.input.clone();
    remove_condition(&mut later);
    remove_added(seen.input);
    Some(Held::Reservation(later))
}

/// Reserves claims once they are made.
pub(super) async fn reserve_later(engine: Direct, update: Value) {
    tokio::time::sleep(CLAIMS_TAKE).await;
    // A table that is gone has no claims.
    let _reserved = engine.call("UpdateItem", &update);
}
