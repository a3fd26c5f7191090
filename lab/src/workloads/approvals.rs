//! Four eyes: two persons agree in the console on what a function then does.

use anyhow::{Result, anyhow};
use chrono::TimeDelta;
use payments_machine::given::agree;
use payments_model::UtcSecond;

use crate::time::pause;
use crate::world::bank::Bank;

/// Two persons.
pub(crate) const BOTH: (&str, &str) = ("ana", "ben");

/// One person, who also decides.
pub(crate) const ALONE: (&str, &str) = ("ana", "ana");

/// The most tries, of which some fail.
const TRIES: u32 = 120;

/// Notes that these persons agreed on an action with these fields, and returns its name.
pub(crate) async fn approved(bank: &Bank, persons: (&str, &str), plan: (&str, &[(&str, String)])) -> Result<String> {
    let mut last = None;
    for _ in 0..TRIES {
        match agree(bank.lambda.operator(), UtcSecond::new(bank.time.now())?, persons, plan).await {
            Ok(name) => return Ok(name.to_string()),
            Err(error) => last = Some(error),
        }
        pause(TimeDelta::minutes(5)).await;
    }
    Err(anyhow!("nobody could approve: {}", last.map_or_else(String::new, |error| format!("{error:#}"))))
}
