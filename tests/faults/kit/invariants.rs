//! The invariants, which hold for payments whatever happened.
//!
//! The laws are those of the simulated month. Here an account's payments, changes and messages are read for them.

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use fastrand::Rng;
use payments_lab::facts::heads::Tables;
use payments_lab::facts::intent::Intent;
use payments_lab::laws::{self, Pending};
use payments_machine::layers::attributes::{key_of, number};
use payments_machine::layers::sqs::Sent;

use super::fixture::Fixture;
use super::transaction_service::settlement_of;

/// The stage that a payment must have reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Any legal state.
    UnderWay,
    /// Settled or cancelled.
    Finished,
}

/// Checks the payments of these intents, all of one account. Returns the violations.
pub(crate) async fn violations(fixture: &Fixture, intents: &[Intent], stage: Stage) -> Result<Vec<String>> {
    let Some(Intent { account, .. }) = intents.first() else { return Ok(Vec::new()) };
    let tables = tables_of(fixture, account, intents).await?;
    let mut found = laws::check_heads(&tables, intents);
    found.extend(fixture.faults.complaints());
    for head in tables.heads().into_values() {
        let amount = number(head, "amountMinor");
        let Some(intent) = intents.iter().find(|intent| intent.amounts().contains(&amount)) else { continue };
        let said = settlement_of(amount)?;
        let over = if stage == Stage::Finished { laws::check_over(head) } else { None };
        let problems = [over, laws::check_settlement(head, &said, intent.contested)];
        found.extend(problems.into_iter().flatten().map(|problem| format!("payment {amount} {problem}")));
    }
    let pending = follow(fixture, account, &tables, &mut found)?;
    for Sent { request, after_changes, .. } in fixture.faults.sent_for(account) {
        let Some(intent) = intents.iter().find(|intent| intent.has_amount(&request["amountMinor"])) else {
            found.push(format!("a request that nobody asked for: {request}"));
            continue;
        };
        // The request has the content that was wanted when the payment was claimed.
        let claimed: Vec<Intent> = pending.claimed(request["paymentId"].as_str().unwrap_or_default(), intent).collect();
        let content = laws::check_request(claimed.first().unwrap_or(intent), &request);
        let problems = [content, pending.check(&request, &after_changes)];
        found.extend(problems.into_iter().flatten().map(|problem| format!("payment {} {problem}", intent.amount)));
    }
    Ok(found)
}

/// Reads the heads of an account, and the details of these payments.
async fn tables_of(fixture: &Fixture, account: &str, intents: &[Intent]) -> Result<Tables> {
    let (names, pk) = (fixture.tables(), format!("ACCT#{account}"));
    let ids: Vec<&str> = intents.iter().filter_map(|intent| intent.accepted.as_deref()).collect();
    let hot = fixture.items(&names.payments, &pk).await?;
    let history = [fixture.items(&names.history, &pk).await?, fixture.details(&ids).await?].concat();
    let by_key = |items: Vec<_>| items.into_iter().map(|item| (key_of(&item), item)).collect();
    Ok(Tables { hot: by_key(hot), history: by_key(history) })
}

/// Checks every change of an account's heads. Returns after how many changes of the table payments were pending.
fn follow(fixture: &Fixture, account: &str, tables: &Tables, found: &mut Vec<String>) -> Result<Pending<usize>> {
    let (changes, mut pending) = (fixture.faults.changes()?, Pending::default());
    let log = changes.log();
    let own = log.iter().enumerate().filter(|(_, change)| change.key.0.strip_prefix("ACCT#") == Some(account));
    for (place, change) in own {
        pending.follow(&change.key, change.after.as_ref(), place + 1);
        let is_lost = change.after.is_none() && !tables.history.contains_key(&change.key);
        let problem = laws::check_change(change.before.as_ref(), change.after.as_ref());
        if let Some(problem) = problem.or_else(|| is_lost.then(|| "is gone from both tables".to_owned())) {
            found.push(format!("change {place} of {}: {problem}", change.key.1));
        }
    }
    Ok(pending)
}

impl Fixture {
    /// Runs everything without faults until each of these payments is over. Returns the violations that remain.
    pub(crate) async fn finish(&self, intents: &[Intent], mut random: Option<Rng>) -> Result<Vec<String>> {
        self.time.pass(TimeDelta::seconds(61));
        for _ in 0..8 {
            self.tick(Action::Sweep).await?;
            self.dispatch_all().await?;
            self.serve(random.as_mut())?;
            self.settle_all().await?;
            let found = violations(self, intents, Stage::Finished).await?;
            if found.is_empty() {
                return Ok(found);
            }
            self.time.pass(TimeDelta::minutes(61));
            self.tick(Action::Redrive).await?;
        }
        violations(self, intents, Stage::Finished).await
    }

    /// Fails if these payments break a law.
    pub(crate) async fn assert_lawful(&self, intents: &[Intent], stage: Stage) -> Result<()> {
        let found = violations(self, intents, stage).await?;
        ensure!(found.is_empty(), "{found:#?}");
        Ok(())
    }

    /// Runs everything without faults, and fails unless each of these payments comes to its end.
    pub(crate) async fn assert_finishes(&self, intents: &[Intent]) -> Result<()> {
        let found = self.finish(intents, None).await?;
        ensure!(found.is_empty(), "{found:#?}");
        Ok(())
    }
}
