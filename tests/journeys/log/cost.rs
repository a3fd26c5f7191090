//! The cost of the largest events: those of settlements, with account numbers and texts as banks have them.

use payments_model::{Actor, Event, Failure, Settlement};
use payments_store::{Decided, Moved};

use super::*;

/// The reasons for which payments fail.
const REASONS: [&str; 3] =
    ["AM04: insufficient funds", "AC04: closed account number", "AG01: transaction forbidden on this type of account"];

/// Settles all payments, one of ten fails.
async fn settle(log: &Log, ids: &[String]) -> Result<()> {
    let (store, mut random) = (log.store().await, fastrand::Rng::with_seed(1));
    for (n, id) in ids.iter().enumerate() {
        let details = store.details(id.parse()?).await?.context("no details")?;
        let pending = store.stored_head(&details.key()).await?.context("no head")?;
        let bits = format!("{:032x}", random.u128(..));
        let uuid = [&bits[..8], &bits[8..12], &bits[12..16], &bits[16..20], &bits[20..]].join("-");
        let settlement = match n % 10 {
            0 => Settlement::Failed(Failure::new(Some("AM04"), REASONS[n / 10 % 3])),
            _ => Settlement::Processed(uuid.parse()?),
        };
        let step = pending.known().transition(&Event::Settle(settlement), log.now(), Actor::transaction_service())?;
        let Decided::Put(settled) = store.decide_settlement(&pending, &step).await? else { anyhow::bail!("settled") };
        ensure!(matches!(store.follow_settlement(&settled).await?, Moved::Done(_)));
    }
    Ok(())
}

#[tokio::test]
async fn an_event_of_a_settlement_costs_less_than_a_sixth_of_a_unit_in_full_batches() -> Result<()> {
    let (log, mut random) = (Log::open().await?, fastrand::Rng::with_seed(2));
    let mut account = |bank: &str, of: u64| {
        let digits = fastrand::Rng::with_seed(random.u64(0..of)).u64(0..100_000_000_000_000);
        format!("GB29{bank}{digits:014}")
    };
    let accounts: Vec<_> = (0..1_000).map(|_| (account("NWBK", 40_000), account("BARC", 5_000))).collect();
    let payments = accounts.iter().enumerate().map(|(n, (payer, payee))| {
        json!({
            "accountId": payer, "idempotencyKey": format!("{n}"), "payeeAccountId": payee, "amountMinor": 1 + n * 7_907 % 100_003,
            "currency": "GBP", "scheduledFor": "2026-11-20", "reference": format!("INVOICE {:07}", n * 7_919 % 1_000_003),
        })
    });
    let ids = log.create_all(payments).await?;
    let mut costs = Vec::new();
    for step in ["created", "sent", "settled"] {
        match step {
            "sent" => log.sweep().await?,
            "settled" => settle(&log, &ids).await?,
            _ => {}
        }
        log.forget();
        ensure!(log.count().await? == 1_000, "it is not one batch");
        costs.push((step, log.take_log_units()));
    }
    println!("write units of a thousand events: {costs:?}");
    assert!(costs.iter().all(|(_, units)| (80..=160).contains(units)), "{costs:?}");
    assert_eq!(log.events().await?.len(), 3_000);
    Ok(())
}
