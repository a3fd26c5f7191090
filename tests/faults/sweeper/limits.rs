//! A day at, under and over each limit, while limits change, a sweep is killed, and counters lag for an hour.

use std::collections::BTreeSet;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_lab::facts::intent::Intent;
use payments_machine::layers::attributes::text;
use payments_machine::{Call, Fate};
use payments_model::{Actor, DayTotal, Money, SwitchChange, UtcSecond};
use payments_store::{DayRelease, Store};
use payments_tests::Ask;

use crate::kit::fixture::Fixture;
use crate::sweeper::swept;

/// The payments of the day, all due at once.
const PAYMENTS: u64 = 600;

const SHARDS: u16 = 2;

/// The most claims of a reservation in each shard, all shards together.
const RESERVED: u64 = 2 * 100;

/// No limit of a number or a sum.
const NONE: u64 = 1_000_000;

/// The date of the payments.
const TODAY: &str = "2026-11-20";

/// A day of payments that are due, and nobody has counted.
struct Day {
    fixture: Fixture,
    account: String,
    /// The sum of the payments.
    sum: u64,
    /// The claims so far.
    claimed: [u64; 2],
}

/// The number of a total, and its sum in pounds.
fn numbers(total: &DayTotal) -> Result<[u64; 2]> {
    Ok([total.payments, total.sum("GBP".parse()?).try_into()?])
}

impl Day {
    /// Creates the payments, the last of them at, under and over the limit of a payment. What is over it is refused until the limit is
    /// raised, and what was accepted stays accepted under a lower one.
    async fn create() -> Result<Self> {
        let fixture = Fixture::limited(SHARDS, "payments=1").await?;
        let mut intents = fixture.created(usize::try_from(PAYMENTS)? - 2).await?;
        let account = intents[0].account.clone();
        let create = async |intent: &Intent, most: u64| -> Result<i64> {
            let functions = fixture.functions_under("", &format!("GBP={most}")).await?;
            let ask = Ask::create(&intent.account, &intent.key, &intent.body());
            Ok(fixture.world.send_to(&functions, ask).await?.status)
        };
        intents.extend([fixture.intent(&account), fixture.intent(&account)]);
        for (intent, room) in intents[intents.len() - 2..].iter().zip([0, 1]) {
            let amount = intent.amount;
            for (most, status) in [(amount - 1, 422), (amount + room, 201), (1, 201)] {
                assert_eq!(create(intent, most).await?, status, "{amount} under a limit of {most}");
            }
        }
        fixture.time.pass(TimeDelta::seconds(61));
        let sum = intents.iter().map(|intent| intent.amount).sum();
        Ok(Self { fixture, account, sum, claimed: [0, 0] })
    }

    fn store(&self) -> Store {
        Store::new(self.fixture.client.clone(), self.fixture.tables().clone())
    }

    /// Sweeps under a limit, killed or not. Checks what was claimed, and returns the number, how many more are reserved, and whether the
    /// date is held.
    async fn sweep(&mut self, limit: [u64; 2], kill: bool) -> Result<(u64, u64, bool)> {
        let fixture = &self.fixture;
        let functions = fixture.functions_under(&format!("payments={},GBP={}", limit[0], limit[1]), "").await?;
        if kill {
            fixture.faults.inject(killed_after_claims());
        }
        let tick = fixture.tick_within(&functions, Action::Sweep, TimeDelta::seconds(290));
        let outcome = fixture.faults.until_killed(tick).await;
        fixture.faults.clear();
        ensure!(outcome.is_none() == kill, "{outcome:?}");
        let is_held = outcome.transpose()?.map(swept).transpose()?.is_some_and(|outcome| outcome.days_held > 0);
        let heads = fixture.world.heads(&self.account).await?;
        let pending = heads.iter().filter(|head| head["status"].as_s().is_ok_and(|status| status == "PENDING"));
        let money = |head: &payments_store::Item| -> Result<Money> {
            let amount = head["amountMinor"].as_n().ok().context("no amount")?;
            Ok(Money { amount: amount.parse()?, currency: "GBP".parse()? })
        };
        let claimed: DayTotal = pending.map(money).collect::<Result<Vec<_>>>()?.into_iter().collect();
        let reserved = self.store().day_claims(TODAY.parse()?).await?.1.reserved;
        let [now, reserved] = [numbers(&claimed)?, numbers(&reserved)?];
        let before = std::mem::replace(&mut self.claimed, now);
        let is_within = (0..2).all(|part| now[part] <= limit[part].max(before[part]));
        ensure!(is_within, "{now:?} of {limit:?}, and {before:?} before");
        ensure!((0..2).all(|part| now[part] <= reserved[part]), "{now:?} claimed, {reserved:?} reserved");
        ensure!(reserved[0] - now[0] <= RESERVED, "{now:?} claimed, {reserved:?} reserved");
        fixture.time.pass(TimeDelta::minutes(5));
        Ok((now[0], reserved[0] - now[0], is_held))
    }
}

/// The process ends after 30 claims that follow a reservation.
fn killed_after_claims() -> impl Fn(&Call) -> Fate + Send + Sync {
    let claims = Mutex::new(BTreeSet::new());
    move |call| {
        let key = &call.input()["Key"];
        let Ok(mut claims) = claims.lock() else { return Fate::Pass };
        if call.operation == "UpdateItem" && text(key, "pk").starts_with("ACCT#") {
            claims.insert(text(key, "sk").to_owned());
        }
        if claims.len() >= 30 { Fate::KillAfter } else { Fate::Pass }
    }
}

#[tokio::test]
async fn a_day_pays_never_more_than_its_limit_and_at_most_a_hundred_a_shard_less_until_a_release() -> Result<()> {
    let mut day = Day::create().await?;
    let sum = day.sum;
    // Nothing is counted during the first hour, so each sweep begins the day.
    for (limit, least) in [
        ([200, NONE], 200 - RESERVED),
        // Lowered below what was claimed; raised; a sum; both.
        ([100, NONE], 0),
        ([300, NONE], 300 - RESERVED),
        ([NONE, 1], 0),
        ([NONE, sum / 2], 0),
        ([300, sum], 300 - RESERVED),
    ] {
        let (claimed, unmade, is_held) = day.sweep(limit, false).await?;
        assert!(claimed >= least && unmade == 0 && is_held, "{limit:?}: {claimed} claimed, {unmade} more reserved");
    }
    let (_, unmade, _) = day.sweep([500, NONE], true).await?;
    assert!(unmade > 0, "the killed sweep left reservations");
    let (claimed, left, is_held) = day.sweep([500, NONE], false).await?;
    assert!(is_held && left == unmade && claimed + unmade + RESERVED >= 500, "{claimed} claimed, {left} reserved");
    // All fit, but for those that were reserved and not claimed.
    let (claimed, left, is_held) = day.sweep([PAYMENTS, NONE], false).await?;
    assert!(is_held && left == unmade && claimed + unmade + RESERVED >= PAYMENTS, "{claimed} claimed, {left} reserved");
    for _ in 0..5 {
        assert_eq!(day.sweep([PAYMENTS, NONE], false).await?, (claimed, left, true));
    }
    // An hour later they are counted. The day fits, or is not continued at all.
    day.fixture.aggregate_all().await?;
    for under in [[PAYMENTS - 1, sum], [PAYMENTS, sum - 1]] {
        assert_eq!(day.sweep(under, false).await?, (claimed, left, true), "{under:?}");
    }
    let at = UtcSecond::new(day.fixture.time.now())?;
    let change = SwitchChange { by: Actor::operator("ada"), at, reason: "a sweep was killed".to_owned() };
    let up_to = format!("payments={},GBP={}", PAYMENTS + left, 2 * sum).parse()?;
    let release = DayRelease { version: 1, up_to, change };
    ensure!(day.store().release_day(TODAY.parse()?, &release).await?, "it is the first release");
    assert_eq!(day.sweep([PAYMENTS, sum], false).await?, (PAYMENTS, left, false));
    day.fixture.dispatch_all().await?;
    assert_eq!(u64::try_from(day.fixture.faults.sent())?, PAYMENTS, "each payment has one request");
    Ok(())
}
