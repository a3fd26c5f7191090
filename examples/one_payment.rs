//! A payment's life on one machine: a client creates the payment, the sweep claims it, and a settlement result ends it.

use anyhow::Result;
use chrono::{NaiveDate, TimeDelta};
use payments_bank::SimulatedBank;
use scheduled_payments::{PaymentOrder, Status};

#[tokio::main]
async fn main() -> Result<()> {
    // The bank has tables, queues, schedules, all functions and a transaction service, in memory. Its clock stands still
    // until `pass` moves it.
    let mut bank = SimulatedBank::open("2026-11-30T09:00:00Z").await?;

    // A client creates a rent of 1,200.00 GBP, due tomorrow. A retry with the same key returns the same payment.
    let due: NaiveDate = "2026-12-01".parse()?;
    let rent = PaymentOrder::new("landlord", 120_000, "GBP", due);
    let created = bank.client().create("tenant", "rent-2026-12", &rent).await?;
    let retried = bank.client().create("tenant", "rent-2026-12", &rent).await?;
    assert_eq!((created.replayed, retried.replayed), (false, true));
    assert_eq!(created.payment, retried.payment);
    assert_eq!(created.payment.status, Status::Scheduled);
    let id = &created.payment.payment_id;

    // At midnight in London, the sweep claims the payment, and dispatch sends a request for it.
    println!("{}", bank.pass(TimeDelta::hours(15)).await);
    assert_eq!(bank.client().get("tenant", id).await?.status, Status::Pending);

    // The transaction service answers within two minutes, and settle records the transaction id.
    println!("{}", bank.pass(TimeDelta::minutes(2)).await);
    let settled = bank.client().get("tenant", id).await?;
    assert_eq!(settled.status, Status::Processed);
    assert!(settled.transaction_id.is_some());

    for step in settled.trail {
        println!("{} {} by {}", step.at, step.status, step.by.kind);
    }
    Ok(())
}
