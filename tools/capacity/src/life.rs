//! The payments of the model and the ledger, and the writes of their lives.

use anyhow::{Context as _, Result};
use payments_model::{
    Actor, Details, Head, HeadKey, Instruction, JsonText, Money, PaymentId, Settlement, ShardCount, State, TrailEntry,
};

/// When payments are put in, when they are pending, and when they are settled: the day they fall due.
pub(crate) const PUT_IN: &str = "2026-11-20T01:00:00Z";
pub(crate) const PENDING: &str = "2026-11-20T01:00:01Z";
pub(crate) const SETTLED: &str = "2026-11-20T01:00:02Z";

/// The day.
pub(crate) const DAY: &str = "2026-11-20";

/// How many payments an account has, about.
const PAYMENTS_PER_ACCOUNT: u32 = 25;

/// One write of a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    /// The details, where a design keeps them apart.
    Details,
    /// The item that changes.
    Head,
    /// It falls due and is claimed.
    Pending,
    /// It is processed.
    Settled,
    /// A report takes it.
    Reported,
    /// It is put to history.
    ArchivePut,
    /// It leaves the hot table.
    ArchiveDelete,
}

/// What is read in a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    /// By the sweep, for what is due.
    Swept,
    /// By the relay, for what it sends.
    Sent,
    /// After a settlement, for another payment of the same transaction id.
    Settled,
    /// By the report, for what is unreported.
    Reported,
    /// By the archive, for what is past.
    Archived,
}

/// Whose payments they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accounts {
    /// One for each 25 payments of the million.
    Many,
    /// One for all.
    One,
}

/// How many accounts a number of payments has.
pub(crate) fn account_count(payments: u32) -> u32 {
    (payments / PAYMENTS_PER_ACCOUNT).max(1)
}

/// The number of the account of a payment.
pub(crate) fn account_of(accounts: Accounts, n: u32, payments: u32) -> u32 {
    if accounts == Accounts::One { 0 } else { n % account_count(payments) }
}

/// What an account is called: all are of one length, so that all payments are of one size.
pub(crate) fn account_name(account: u32) -> String {
    format!("account-{account:05}")
}

/// The id of a payment.
pub(crate) fn payment_id(account: u32, n: u32) -> Result<PaymentId> {
    Ok(PaymentId::derive(&account_name(account).parse()?, &format!("feed-{n}").parse()?))
}

/// One payment of a day's feed.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) details: Details,
    /// What the transaction service calls it.
    pub(crate) transaction_id: String,
}

impl Payment {
    /// The payment of this number, with `data_bytes` of data.
    pub(crate) fn new(account: u32, n: u32, shards: ShardCount, data_bytes: usize) -> Result<Self> {
        let payment_id = payment_id(account, n)?;
        let text = format!("\"{}\"", "x".repeat(data_bytes.checked_sub(2).context("data is at least two quotes")?));
        let instruction = Instruction {
            account: account_name(account).parse()?,
            payee: "landlord".parse()?,
            money: Money { amount: 120_000.try_into()?, currency: "GBP".parse()? },
            scheduled_for: DAY.parse()?,
            data: Some(JsonText::from_stored(text)?),
        };
        let (zone, by) = ("Europe/London".parse()?, Actor::named("the feed"));
        let details = Details::accept(payment_id, instruction, zone, shards, PUT_IN.parse()?, by);
        Ok(Self { details, transaction_id: format!("TX-{payment_id}") })
    }

    pub(crate) fn key(&self) -> HeadKey {
        self.details.key()
    }

    pub(crate) fn processed(&self) -> Result<Settlement> {
        Ok(Settlement::Processed(self.transaction_id.parse()?))
    }

    /// Its head once it is pending.
    pub(crate) fn pending_head(&self) -> Result<Head> {
        let entry = entry(&State::Pending, PENDING)?;
        let (state, moved) = (State::Pending, vec![entry]);
        Ok(Head { state, moved, version: 2, dispatch_attempt: Some(1), ..Head::scheduled(&self.details) })
    }

    /// Its head once a report has taken it.
    pub(crate) fn reported_head(&self) -> Result<Head> {
        let state = State::from(self.processed()?);
        let mut head = self.pending_head()?;
        head.moved.push(entry(&state, SETTLED)?);
        Ok(Head { state, version: 3, unreported: false, ..head })
    }
}

fn entry(state: &State, at: &str) -> Result<TrailEntry> {
    Ok(TrailEntry { status: state.status(), at: at.parse()?, by: by() })
}

/// Who moves payments here.
pub(crate) fn by() -> Actor {
    Actor::named("the model")
}
