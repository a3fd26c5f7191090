//! A log that began after the changes that a restore needs does not know them. That must not look like a quiet log.

use payments_model::UtcSecond;
use payments_restore::{Finding, Line, Rebuild, Told};

use super::super::*;
use super::bank::{BEGINNING, Bank};

/// An instant whose changes are read from before the log began.
const EARLY: &str = "2026-11-20T08:30:00Z";

fn restored_to(to: &str, now: &str) -> Result<impl Fn(&mut Rebuild) + use<>> {
    let (to, now): (UtcSecond, UtcSecond) = (to.parse()?, now.parse()?);
    Ok(move |rebuild: &mut Rebuild| (rebuild.to, rebuild.now) = (to, now))
}

#[tokio::test]
async fn what_was_before_the_log_began_is_a_gap_and_apply_waits_until_it_is_accepted() -> Result<()> {
    let bank = Bank::new().await?;
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let (early, before) = (restored_to(EARLY, super::LATER)?, bank.hot().await?);

    let mut rebuild = bank.rebuild(bank.world.store().await)?;
    early(&mut rebuild);
    let planned = rebuild.plan(&Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} }).await?;
    assert_eq!(planned.findings, [(Finding::Gap, 1)].into());

    let error = bank.told(&early).await.err().context("it applied")?;
    let want = format!("the log begins at {BEGINNING}; changes since 2026-11-20T07:30:00Z are unknown");
    assert!(error.to_string().starts_with(&want), "{error}");
    assert!(error.to_string().contains("give --accept-gaps"), "{error}");
    assert_eq!(bank.hot().await?, before, "nothing was changed");

    let accepted = |rebuild: &mut Rebuild| {
        early(rebuild);
        rebuild.accepts_gaps = true;
    };
    let (done, _) = bank.told(accepted).await?;
    assert_eq!(done.findings, [(Finding::Gap, 1)].into());
    bank.assert_hot(&wanted).await
}

/// A log without an event in the hour before the instant, or on that day, is as good as any.
#[tokio::test]
async fn a_quiet_log_is_no_gap() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose_hot(&bank.copies().await?.hot).await?;
    for day in ["2026-11-21", "2026-12-10"] {
        let quiet = restored_to(&format!("{day}T12:00:00Z"), &format!("{day}T12:30:00Z"))?;
        let (_, lines) = bank.told(quiet).await.with_context(|| day.to_owned())?;
        let is_unknown = |line: &&Value| line["why"].as_str().is_some_and(|why| why.contains("unknown"));
        assert_eq!(lines.iter().find(is_unknown), None, "{day}");
    }
    Ok(())
}
