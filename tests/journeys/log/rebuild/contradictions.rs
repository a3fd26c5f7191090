//! Findings of contradicting results come back from the long-term table that was replaced, and their closings.

use payments_model::{Failure, Settlement, State, Told};
use payments_restore::Finding;
use payments_store::schema::{HISTORY, create_table};
use payments_store::{Item, TableNames};

use super::super::*;
use super::bank::{Bank, attribute, differences};

/// A result of a payment contradicts it.
pub(super) async fn contradict(bank: &Bank, name: &str, why: &str) -> Result<payments_model::Finding> {
    let store = bank.store().await;
    let details = store.details(bank.id(name).parse()?).await?.context("no details")?;
    let (money, payee) = (details.instruction.money, details.instruction.payee.clone());
    let told = Told { settlement: Settlement::Failed(Failure::new(None, why)), money, payee: payee.clone() };
    let (key, found_at) = (details.key(), bank.now());
    let stands = State::Cancelled;
    let finding = payments_model::Finding { key, money, payee, stands, told, found_at, closed: None };
    ensure!(store.put_finding(&finding).await?, "it is new");
    Ok(finding)
}

/// An operator closes a finding in the console.
pub(super) async fn close(bank: &Bank, finding: &payments_model::Finding) -> Result<()> {
    let (payment, hash) = (finding.key.slot.payment_id, finding.told.hash().to_string());
    let id = format!("5f1c1f6e-4f0e-5a37-9d0e-0000{}", &hash[..8]);
    let close = json!({
        "step": "do", "payment": payment.to_string(), "hash": hash, "reason": "The service was wrong.",
        "at": bank.now().to_string(), "id": id,
    });
    bank.answered(Ask::post("/console/actions/close-finding").json(&close), 200).await.map(drop)
}

/// The long-term table gets another name, as the old one has beside the restored one.
pub(super) async fn replaced(bank: &Bank) -> Result<Store> {
    const OLD: &str = "replaced";
    let client = bank.environment.client();
    create_table(&client, OLD, &HISTORY).await?;
    bank.put_items(OLD, bank.copies().await?.history).await?;
    Ok(Store::new(client, TableNames { history: OLD.to_owned(), ..bank.environment.tables.clone() }))
}

#[tokio::test]
async fn findings_and_closings_come_back_from_the_table_that_was_replaced() -> Result<()> {
    let bank = Bank::new().await?;
    let (kept, closed) = (contradict(&bank, "e", "kept").await?, contradict(&bank, "e", "closed").await?);
    let (torn, stray) = (contradict(&bank, "e", "torn").await?, contradict(&bank, "e", "stray").await?);
    let is_mark = |item: &Item, of: &payments_model::Finding| {
        attribute(item, "pk") == "FINDINGS#OPEN" && attribute(item, "sk").ends_with(of.told.hash().as_str())
    };
    let marks = bank.copies().await?.history;
    close(&bank, &stray).await?;
    // A restored table may have a part of a transaction.
    let mut behind = bank.copies().await?.history;
    behind.retain(|item| !is_mark(item, &torn));
    behind.extend(marks.into_iter().filter(|item| is_mark(item, &stray)));
    // Since then one was closed, one was found, and one was found and closed.
    close(&bank, &closed).await?;
    let new = contradict(&bank, "a", "new").await?;
    close(&bank, &contradict(&bank, "f", "both").await?).await?;
    let wanted = bank.findings().await?;
    assert_eq!(wanted.len(), 6 + 3, "{wanted:#?}");
    let old = replaced(&bank).await?;

    bank.lose().await?;
    bank.lose_history(&behind).await?;
    assert_eq!(differences(&bank.findings().await?, &wanted).len(), 7);
    let with_old = |rebuild: &mut payments_restore::Rebuild| rebuild.replaced = Some(old.clone());
    assert_eq!(bank.plan(with_old).await?.contradictions, 5);
    assert_eq!(bank.apply_with(with_old).await?.found([])?.contradictions, 5);
    assert_eq!(differences(&bank.findings().await?, &wanted), [""; 0]);
    ensure!(bank.apply_with(with_old).await?.is_nothing(), "it is done once");
    // One that was closed meanwhile stays closed.
    close(&bank, &kept).await?;
    let later = bank.findings().await?;
    ensure!(bank.apply_with(with_old).await?.is_nothing(), "nothing opens again");
    assert_eq!(differences(&bank.findings().await?, &later), [""; 0]);
    assert!(later.keys().any(|key| key.contains(new.told.hash().as_str())));
    Ok(())
}

#[tokio::test]
async fn without_the_table_that_was_replaced_the_outcome_says_what_may_be_lost() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose().await?;
    let tables = TableNames { history: "gone".to_owned(), ..bank.environment.tables.clone() };
    let gone = Store::new(bank.environment.client(), tables);
    let done = bank.apply_with(|rebuild| rebuild.replaced = Some(gone)).await?;
    let done = done.found([(Finding::ContradictionsLost, 1)])?;
    let why = text_of(&done.line("contradictions-lost")?["why"]);
    assert!(why.starts_with("gone cannot be read: ") && why.contains("ResourceNotFound"), "{why}");
    bank.assert_done().await
}
