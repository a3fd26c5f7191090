//! The bill of a stack that nobody uses.

use anyhow::{Result, ensure};
use payments_bill::{Bill, DOLLAR, Stage, Workload};

#[test]
fn an_idle_dev_stack_costs_under_ten_dollars_a_month() -> Result<()> {
    let bill = Bill::new(&Workload::idle().day()?, Stage::Dev, false)?;
    for month in bill.sums() {
        ensure!(month < 10 * DOLLAR, "an idle dev stack costs too much:\n{}", bill.table());
        // The machine client of Cognito, the secret, and some runs and reads.
        ensure!(month > 6 * DOLLAR + 40 * DOLLAR / 100, "something is missing:\n{}", bill.table());
    }
    Ok(())
}
