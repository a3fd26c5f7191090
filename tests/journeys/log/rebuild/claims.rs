//! After a restore, a date with a limit has the claims that were made: it is not exceeded, and not held if it fits.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_bank::Functions;
use payments_machine::{Environment, Handlers as _};
use payments_model::DayTotal;
use payments_restore::Finding;

use super::super::*;
use super::bank::{Bank, TODAY, attribute};

/// The claims of the day: b, c, d, e, h, i and j. At T there were those of d and e.
const CLAIMED: u64 = 7;

/// A day whose limit leaves room.
async fn limited() -> Result<Bank> {
    let bank = Bank::under("payments=100,GBP=1000000", async |_, _| Ok(())).await?;
    assert_eq!(reserved(&bank).await?, claims_of(CLAIMED)?);
    Ok(bank)
}

fn claims_of(payments: u64) -> Result<DayTotal> {
    Ok(DayTotal { payments, sums: [("GBP".parse()?, i128::from(payments) * 4_200)].into() })
}

async fn reserved(bank: &Bank) -> Result<DayTotal> {
    Ok(bank.store().await.day_claims(TODAY.parse()?).await?.1.reserved)
}

/// Damages the reserved claims of the copy.
fn at_t(bank: &mut Bank, attribute_name: &str, value: AttributeValue) -> Result<()> {
    let claims = bank.at_t.hot.iter_mut().find(|item| attribute(item, "pk") == "CLAIMS").context("no claims at T")?;
    claims.insert(attribute_name.to_owned(), value);
    Ok(())
}

/// Opens the restored bank, and sweeps one more payment under this limit, which the counters do not show. Returns the claims and the held dates.
async fn sweep_one_more(bank: &Bank, limit: u64) -> Result<[u64; 2]> {
    bank.open().await?;
    bank.create("k", TODAY).await?;
    let environment = Environment { max_day: format!("payments={limit}"), ..bank.environment.clone() };
    let dependencies = bank.dependencies(bank.client().await);
    let functions = Functions::within(&environment, |_| Ok(dependencies.clone()))?;
    let swept = functions.scheduled("daily-due-sweeper", json!({ "action": "sweep" }), context(NO_DEADLINE)).await;
    let swept = swept.map_err(anyhow::Error::msg)?;
    Ok(["claimed", "daysHeld"].map(|field| swept[field].as_u64().unwrap_or(0)))
}

#[tokio::test]
async fn claims_that_the_restored_table_lacks_count() -> Result<()> {
    for (limit, swept) in [(CLAIMED, [0, 1]), (CLAIMED + 1, [1, 0])] {
        let bank = limited().await?;
        bank.lose().await?;
        assert_eq!(reserved(&bank).await?, claims_of(2)?);
        bank.apply().await?.found([])?;
        assert_eq!(reserved(&bank).await?, claims_of(CLAIMED)?);
        bank.assert_done().await?;
        assert_eq!(sweep_one_more(&bank, limit).await?, swept, "{limit}");
    }
    Ok(())
}

#[tokio::test]
async fn claims_that_were_reserved_and_never_made_hold_no_date() -> Result<()> {
    let mut bank = limited().await?;
    at_t(&mut bank, "payments", number(60))?;
    at_t(&mut bank, "EUR", number(500))?;
    bank.lose().await?;
    bank.apply().await?.found([])?;
    assert_eq!(reserved(&bank).await?, claims_of(CLAIMED)?);
    bank.assert_done().await?;
    assert_eq!(sweep_one_more(&bank, CLAIMED + 1).await?, [1, 0]);
    Ok(())
}

/// Its counters stay those of T, so nothing else would raise its claims.
#[tokio::test]
async fn a_date_that_cannot_be_counted_has_all_claims_that_were_found() -> Result<()> {
    let mut bank = limited().await?;
    let mut entry =
        bank.at_t.hot.iter().find(|item| attribute(item, "due").contains(TODAY)).context("no entry")?.clone();
    entry.extend([("sk", "no head"), ("amountMinor", "no amount")].map(|(name, value)| (name.to_owned(), text(value))));
    bank.at_t.hot.push(entry);
    bank.lose().await?;
    bank.apply().await?.found([(Finding::Unreadable, 1)])?;
    assert_eq!(reserved(&bank).await?, claims_of(CLAIMED)?);
    Ok(())
}

#[tokio::test]
async fn damaged_claims_are_listed_and_their_date_is_held() -> Result<()> {
    let mut bank = limited().await?;
    let wanted = bank.hot().await?;
    at_t(&mut bank, "payments", text("two"))?;
    bank.lose().await?;
    bank.apply().await?.found([(Finding::Unreadable, 1)])?;
    bank.assert_hot(&wanted).await?;
    assert_eq!(sweep_one_more(&bank, 100).await?, [0, 1]);
    Ok(())
}
