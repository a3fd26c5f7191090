//! A log that began after the changes that a restore needs does not know them. That must not look like a quiet log.

use payments_restore::{Finding, Rebuild};

use super::super::*;
use super::bank::{BEGINNING, Bank, LATER};

#[tokio::test]
async fn what_was_before_the_log_began_is_a_gap_and_apply_waits_until_it_is_accepted() -> Result<()> {
    let bank = Bank::new().await?;
    let wanted = bank.hot().await?;
    bank.lose().await?;
    let before = bank.hot().await?;
    // Changes are read from before the log began.
    let (to, now) = ("2026-11-20T08:30:00Z".parse()?, LATER.parse()?);
    let early = |rebuild: &mut Rebuild| (rebuild.to, rebuild.now) = (to, now);
    assert_eq!(bank.plan(early).await?.findings, [(Finding::Gap, 1)].into());

    let refused = bank.apply_with(early).await.err().context("it applied")?.to_string();
    let want = format!("the log begins at {BEGINNING}; changes since 2026-11-20T07:30:00Z are unknown");
    assert!(refused.starts_with(&want) && refused.contains("give --accept-gaps"), "{refused}");
    assert_eq!(bank.hot().await?, before, "nothing was changed");

    let accepted = |rebuild: &mut Rebuild| {
        early(rebuild);
        rebuild.accepts_gaps = true;
    };
    bank.apply_with(accepted).await?.found([(Finding::Gap, 1)])?;
    bank.assert_hot(&wanted).await
}

/// A log without an event in the hour before the instant, or on that day, is as good as any.
#[tokio::test]
async fn a_quiet_log_is_no_gap() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose_hot(&bank.copies().await?.hot).await?;
    for day in ["2026-11-21", "2026-12-10"] {
        let done = bank.apply_to(&format!("{day}T12:00:00Z"), &format!("{day}T12:30:00Z")).await;
        let lines = done.with_context(|| day.to_owned())?.lines;
        assert!(!lines.iter().any(|line| text_of(&line["why"]).contains("unknown")), "{day}: {lines:#?}");
    }
    Ok(())
}
