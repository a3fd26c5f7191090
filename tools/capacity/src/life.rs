//! The payments of the feed, and the writes and reads of their lives.

use anyhow::{Context as _, Result};
use payments_model::transition::CLAIMED;
use payments_model::{
    Actor, Details, Head, HeadKey, Instruction, JsonText, Money, PaymentId, Settlement, ShardCount, State, TrailEntry,
};

/// When payments are created, pending and settled: on the day on which they are due.
pub(crate) const CREATED: &str = "2026-11-20T01:00:00Z";
pub(crate) const PENDING: &str = "2026-11-20T01:00:01Z";
pub(crate) const SETTLED: &str = "2026-11-20T01:00:02Z";

/// The due date.
pub(crate) const DAY: &str = "2026-11-20";

/// The average number of payments of an account.
const PAYMENTS_PER_ACCOUNT: u32 = 25;

/// A write of a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// The details, if a design stores them separately.
    Details,
    /// The head, or the item that has everything.
    Head,
    /// The details again, of a create that is sent again: the condition fails.
    DetailsAgain,
    /// The sweep claims the payment.
    Pending,
    /// Its request is sent again.
    Redriven,
    /// The payment is processed.
    Settled,
    /// The same result comes again: the condition fails.
    SettledAgain,
    /// A report contains it.
    Reported,
    /// It is put into the long-term table.
    ArchivePut,
    /// It is deleted from the hot table.
    ArchiveDelete,
}

/// A read of a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The sweep finds due payments.
    Swept,
    /// `dispatch` reads what it sends.
    Dispatched,
    /// `settle` looks for other payments with the same transaction id.
    Settled,
    /// The report finds unreported payments.
    Reported,
    /// The archive finds payments that it can move.
    Archived,
}

impl Write {
    /// Returns the read that happens before the write.
    pub(crate) fn read_before(self) -> Option<Read> {
        match self {
            Self::Pending => Some(Read::Swept),
            Self::Settled => Some(Read::Dispatched),
            Self::Reported => Some(Read::Reported),
            Self::ArchivePut => Some(Read::Archived),
            _ => None,
        }
    }
}

/// The accounts that pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accounts {
    /// One for each 25 payments of the million.
    Many,
    /// One for all payments.
    One,
}

impl Accounts {
    pub(crate) fn count(self, payments: u32) -> u32 {
        if self == Self::One { 1 } else { (payments / PAYMENTS_PER_ACCOUNT).max(1) }
    }
}

/// Returns the name of an account. All are equally long, so that all payments have one size.
pub(crate) fn account_name(account: u32) -> String {
    format!("account-{account:05}")
}

/// Returns the id of a payment.
pub(crate) fn payment_id(account: u32, n: u32) -> Result<PaymentId> {
    Ok(PaymentId::derive(&account_name(account).parse()?, &format!("feed-{n}").parse()?))
}

/// A payment of the feed.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) details: Details,
    pub(crate) transaction_id: String,
}

impl Payment {
    /// Returns the payment of this number, with `data_bytes` of data.
    pub(crate) fn new(account: u32, n: u32, shards: ShardCount, data_bytes: usize) -> Result<Self> {
        let payment_id = payment_id(account, n)?;
        let text = format!("\"{}\"", "x".repeat(data_bytes.checked_sub(2).context("data has at least two quotes")?));
        let instruction = Instruction {
            account: account_name(account).parse()?,
            payee: "landlord".parse()?,
            money: Money { amount: 120_000.try_into()?, currency: "GBP".parse()? },
            scheduled_for: DAY.parse()?,
            data: Some(JsonText::from_stored(text)?),
        };
        let (zone, by) = ("Europe/London".parse()?, Actor::named("the feed"));
        let details = Details::accept(payment_id, instruction, zone, shards, CREATED.parse()?, by);
        Ok(Self { details, transaction_id: format!("TX-{payment_id}") })
    }

    pub(crate) fn key(&self) -> HeadKey {
        self.details.key()
    }

    pub(crate) fn settlement(&self) -> Result<Settlement> {
        Ok(Settlement::Processed(self.transaction_id.parse()?))
    }

    /// Returns the head of the pending payment.
    pub(crate) fn pending_head(&self) -> Result<Head> {
        let (state, version) = CLAIMED;
        let moved = vec![entry(&state, PENDING)?];
        Ok(Head { state, moved, version, dispatch_attempt: Some(1), ..Head::scheduled(&self.details) })
    }

    /// Returns the head of the reported payment.
    pub(crate) fn reported_head(&self) -> Result<Head> {
        let state = State::from(self.settlement()?);
        let mut head = self.pending_head()?;
        head.moved.push(entry(&state, SETTLED)?);
        Ok(Head { state, version: head.version + 1, unreported: false, ..head })
    }
}

fn entry(state: &State, at: &str) -> Result<TrailEntry> {
    Ok(TrailEntry { status: state.status(), at: at.parse()?, by: actor() })
}

/// Returns the actor of all transitions.
pub(crate) fn actor() -> Actor {
    Actor::named("the model")
}
