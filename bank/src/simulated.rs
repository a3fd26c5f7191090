//! A bank in memory whose clock moves only on request: whole lives of payments, for an example and tests.

use std::sync::Arc;

use anyhow::Result;
use chrono::TimeDelta;
use payments_machine::client::Client;
use payments_machine::given::Given;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_machine::triggers::{Tick, Triggers};
use scheduled_payments::Bank;

use crate::functions::Functions;

/// The longest step of the clock: half of the day for which the stream keeps changes, so none is missed.
const LONGEST_STEP: TimeDelta = TimeDelta::hours(12);

/// A transaction service that processes each payment and answers once, within 90 seconds.
fn service() -> TransactionServiceSettings {
    let seeded = TransactionServiceSettings::seeded(1);
    TransactionServiceSettings { failures_per_thousand: 0, repeats_per_thousand: 0, ..seeded }
}

/// A bank in memory: the machine, all functions, what invokes them, and a transaction service that processes each payment.
#[derive(Debug)]
pub struct SimulatedBank {
    machine: Given,
    triggers: Triggers,
    client: Client,
}

impl SimulatedBank {
    /// Opens a bank without payments, at this time.
    ///
    /// # Errors
    /// If `now` is not a date-time such as `2026-11-30T09:00:00Z`.
    pub async fn open(now: &str) -> Result<Self> {
        let machine = Given::at(now, |_| {}).await?;
        let functions = Arc::new(Functions::on(&machine.stack, &machine.stack.client())?);
        let triggers = Triggers::new(&machine.stack, functions.clone(), service()).await?;
        let client = Client::for_functions(functions, machine.stack.clock.clone())?;
        Ok(Self { machine, triggers, client })
    }

    /// Returns a client of its API that may do everything.
    pub fn client(&self) -> &Bank {
        self.client.bank()
    }

    /// Moves the time ahead, in steps of at most half a day, and does all due work after each.
    pub async fn pass(&mut self, time: TimeDelta) -> Tick {
        let (mut left, mut done) = (time, Tick::default());
        while left > TimeDelta::zero() {
            let step = left.min(LONGEST_STEP);
            left -= step;
            self.machine.pass(step);
            done += self.triggers.tick(self.machine.stack.clock.instant()).await;
        }
        done
    }
}
