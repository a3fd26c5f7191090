//! The cost of the log's segments: real events, cut by the aggregator's fold and encoded by the store.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use payments_machine::given::moved;
use payments_machine::triggers::stream_settings;
use payments_model::{
    AccountId, Actor, Details, Epoch, Event, Failure, Head, Instruction, Logged, Money, PaymentId, Reference,
    Settlement, ShardCount, UtcSecond, VersionBefore,
};
use payments_store::{Counted, CountsCommit, item_bytes, segment_of};
use stream_aggregator::{Change, Effect, fold};

/// The date of the feed, when it comes, and the epoch of the log.
const DAY: &str = "2026-11-20";
pub(crate) const AT: &str = "2026-11-20T01:00:00Z";
const EPOCH: Epoch = Epoch::FIRST;

/// The bytes of a write unit.
const UNIT: usize = 1_024;

/// Why payments fail: ISO 20022's reasons, as a transaction service may write them.
const REASONS: [(&str, &str); 6] = [
    ("AC04", "closed account number"),
    ("AC06", "blocked account"),
    ("AG01", "transaction forbidden on this type of account"),
    ("AM04", "insufficient funds"),
    ("BE05", "the party who initiated the message is not recognised by the end customer"),
    ("MS03", "reason not specified by the agent"),
];

/// The changes of the payments of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All are created.
    Created,
    /// A third each is created, sent, and settled.
    Mixed,
    /// 13 of 19 are created, and three each sent and settled: five feeds, and beside them all that a second claims and settles.
    Feeds,
    /// Nine of ten are processed, and one fails.
    Settled,
    /// All are settled, and each text that somebody else chooses is random and as long as permitted.
    Largest,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Mixed => "created, sent and settled, a third each",
            Self::Feeds => "created, 640 a second each sent and settled",
            Self::Settled => "settled, one of ten failed",
            Self::Largest => "settled, with random texts of full length",
        }
    }
}

/// The contents and the cost of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) events: usize,
    /// Write units: two for each KB, because a transaction puts it.
    pub(crate) units: u64,
}

/// The segments of batches of a kind.
pub(crate) struct Segments {
    /// The most records of a batch, and how many microseconds it waits to be full.
    pub(crate) batch: usize,
    pub(crate) window: u64,
    changes: Vec<Change>,
    random: Rng,
    of_size: HashMap<usize, Vec<Segment>>,
}

impl Segments {
    pub(crate) fn new(kind: Kind) -> Result<Self> {
        let settings = stream_settings("stream-aggregator", None)?;
        let (batch, mut random) = (settings.batch_size, Rng::with_seed(1));
        let window = u64::try_from(settings.maximum_batching_window.num_microseconds().context("a long window")?)?;
        let changes = (0..4 * batch).map(|n| change(kind, n, batch, &mut random)).collect::<Result<_>>()?;
        Ok(Self { batch, window, changes, random, of_size: HashMap::new() })
    }

    /// Returns the segments of a batch of so many changes. Batches of one size have the same: the first that was measured.
    pub(crate) fn of_batch(&mut self, changes: usize) -> Result<Vec<Segment>> {
        if let Some(known) = self.of_size.get(&changes) {
            return Ok(known.clone());
        }
        let now = AT.parse()?;
        let segment = |commit: CountsCommit| Segment {
            units: 2 * u64::try_from(item_bytes(&segment_of(EPOCH, 1, &commit.events, now)).div_ceil(UNIT))
                .unwrap_or(0),
            events: commit.events.len(),
        };
        let segments: Vec<Segment> = self.commits(changes)?.into_iter().map(segment).collect();
        ensure!(segments.iter().map(|segment| segment.events).sum::<usize>() == changes, "{segments:?}");
        self.of_size.insert(changes, segments.clone());
        Ok(segments)
    }

    /// Returns the commits of a batch of so many changes.
    pub(crate) fn commits(&mut self, changes: usize) -> Result<Vec<CountsCommit>> {
        let from = self.random.usize(0..=self.changes.len() - changes);
        Ok(fold(&self.changes[from..from + changes], EPOCH, None)?)
    }
}

/// Returns a change of a payment. Its account is one of 40,000, and its payee one of 5,000.
fn change(kind: Kind, n: usize, batch: usize, random: &mut Rng) -> Result<Change> {
    let details = details(kind, n, batch, random)?;
    let steps = match kind {
        Kind::Created => 0,
        Kind::Mixed => n % 3,
        Kind::Feeds => [0, 1, 2].into_iter().rev().find(|step| n % 19 >= [0, 13, 16][*step]).unwrap_or(0),
        Kind::Settled | Kind::Largest => 2,
    };
    let mut heads = vec![Head::scheduled(&details)];
    for event in [Event::Sweep, Event::Settle(settlement(kind, random)?)].into_iter().take(steps) {
        let by = if event == Event::Sweep { Actor::sweep() } else { Actor::transaction_service() };
        let after = heads.last().map(|head| moved(head, &event, head.updated_at(), by)).transpose()?;
        heads.extend(after);
    }
    let [before, after] = [heads.len().checked_sub(2).map(|place| &heads[place]), heads.last()];
    let counted = |head: &Head| Counted { due_date: head.due_date, status: head.state.status(), money: head.money };
    let version = before.map(|head| VersionBefore { version: head.version, status: head.state.status(), head: None });
    let logged =
        after.map_or(Logged::Nothing, |head| Logged::from_change(version, head, details.created_at, "a place"));
    let effect = Effect::Moved { before: before.map(counted), after: after.map(counted) };
    Ok(Change { sequence_number: u64::try_from(n)?.into(), created_at: None, effect, logged })
}

fn details(kind: Kind, n: usize, batch: usize, random: &mut Rng) -> Result<Details> {
    // Digits as in account numbers: those of one account are always the same.
    let mut account = |bank: &str, of: u64| -> Result<AccountId> {
        let digits = Rng::with_seed(random.u64(0..of)).u64(0..100_000_000_000_000);
        Ok(format!("GB29{bank}{digits:014}").parse()?)
    };
    let (payer, payee) = (account("NWBK", 40_000)?, account("BARC", 5_000)?);
    let reference: Reference = match kind {
        Kind::Largest => text(35, random).parse()?,
        _ => format!("INVOICE {:07}", random.u32(0..10_000_000)).parse()?,
    };
    let money = Money { amount: random.i64(1..2_000_000).try_into()?, currency: "GBP".parse()? };
    let payment_id = PaymentId::derive(&payer, &format!("feed-{n}").parse()?);
    let instruction = Instruction {
        account: payer,
        payee,
        money,
        scheduled_for: DAY.parse()?,
        date_rule: None,
        reference: Some(reference),
        data: None,
    };
    let (shards, now): (ShardCount, UtcSecond) = ("32".parse()?, AT.parse()?);
    let now = now.saturating_add(chrono::TimeDelta::seconds(i64::try_from(n / batch)?));
    Ok(Details::accept(payment_id, instruction, "Europe/London".parse()?, shards, now, Actor::client("feed")))
}

/// Returns how a payment ends. Transaction ids are UUIDs that nothing else repeats.
fn settlement(kind: Kind, random: &mut Rng) -> Result<Settlement> {
    let fails = random.u8(0..10) == 0;
    Ok(match (kind, fails) {
        (Kind::Largest, false) => Settlement::Processed(text(64, random).parse()?),
        (Kind::Largest, true) => Settlement::Failed(Failure::new(Some("AM04"), &text(105, random))),
        (_, false) => {
            let bits = format!("{:032x}", random.u128(..));
            let id = [&bits[..8], &bits[8..12], &bits[12..16], &bits[16..20], &bits[20..]].join("-");
            Settlement::Processed(id.parse()?)
        }
        (_, true) => {
            let (code, reason) = REASONS[random.usize(0..REASONS.len())];
            Settlement::Failed(Failure::new(Some(code), reason))
        }
    })
}

/// Returns a random text of letters and digits.
fn text(length: usize, random: &mut Rng) -> String {
    std::iter::repeat_with(|| random.alphanumeric()).take(length).collect()
}
