//! The payments of the feed, and the writes and reads of their lives.

use anyhow::Result;
use fastrand::Rng;
use payments_machine::given::moved;
use payments_machine::payload::DataKind;
use payments_model::{
    Actor, Details, Event, Failure, Head, HeadKey, Instruction, JsonText, Money, PaymentId, Settlement, ShardCount,
    Transition,
};

/// The times at which payments are created, pending and settled: on the day on which they are due.
pub(crate) const CREATED: &str = "2026-11-20T01:00:00Z";
pub(crate) const PENDING: &str = "2026-11-20T01:00:01Z";
pub(crate) const SETTLED: &str = "2026-11-20T01:00:02Z";

/// The expiry of the head of a reported payment.
pub(crate) const EXPIRES: &str = "2026-11-22T01:00:00Z";

/// The due date.
pub(crate) const DAY: &str = "2026-11-20";

/// The accounts that pay: one for each 25 payments of a million.
pub(crate) const ACCOUNTS: u32 = 40_000;

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
    /// The payment is settled, in a design that settles with one write.
    Settled,
    /// Its settled head is put into the long-term table, which decides how it ended.
    Decided,
    /// The same again, when the next write was throttled: the condition fails.
    DecidedAgain,
    /// Its head in the hot table follows.
    Followed,
    /// A report contains it. DynamoDB deletes its head in the hot table later, free of charge.
    Reported,
    /// The put into the long-term table, in a design that has not done so before.
    ArchivePut,
    /// The idempotency record, in a design that needs one.
    Idempotency,
}

/// A read of a payment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The sweep finds due payments.
    Swept,
    /// `dispatch` reads what it sends.
    Dispatched,
    /// `settle` reads the pending head.
    Pending,
    /// `settle` looks for other payments with the same transaction id.
    Transaction,
    /// The report finds unreported payments.
    Reported,
    /// The archive finds payments that it can move.
    Archived,
    /// The seal reads what it writes to a part.
    Sealed,
    /// The clear compares the part with the items.
    Compared,
}

impl Write {
    /// Returns the reads that happen before the write.
    pub(crate) fn reads_before(self) -> &'static [Read] {
        match self {
            Self::Pending => &[Read::Swept],
            Self::Decided => &[Read::Dispatched, Read::Pending],
            Self::Reported => &[Read::Reported],
            Self::ArchivePut => &[Read::Archived],
            _ => &[],
        }
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

/// The data of payments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) kind: DataKind,
    pub(crate) bytes: usize,
}

/// A payment of the feed.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) details: Details,
    pub(crate) transaction_id: String,
    /// Whether it fails. Else it is processed.
    pub(crate) fails: bool,
}

impl Payment {
    /// Returns the payment of this number. Its data differ from those of others.
    pub(crate) fn new(account: u32, n: u32, shards: ShardCount, data: Data) -> Result<Self> {
        let payment_id = payment_id(account, n)?;
        let text = data.kind.text(&mut Rng::with_seed(n.into()), data.bytes);
        let instruction = Instruction {
            account: account_name(account).parse()?,
            payee: "landlord".parse()?,
            money: Money { amount: 120_000.try_into()?, currency: "GBP".parse()? },
            scheduled_for: DAY.parse()?,
            date_rule: None,
            reference: None,
            data: Some(JsonText::from_stored(text)?.into()),
        };
        let (zone, by) = ("Europe/London".parse()?, Actor::client("the feed"));
        let details = Details::accept(payment_id, instruction, zone, shards, CREATED.parse()?, by);
        Ok(Self { details, transaction_id: format!("TX-{payment_id}"), fails: false })
    }

    pub(crate) fn key(&self) -> HeadKey {
        self.details.key()
    }

    fn settlement(&self) -> Result<Settlement> {
        let processed = || Ok(Settlement::Processed(self.transaction_id.parse()?));
        if self.fails { Ok(Settlement::Failed(Failure::new(Some("AM04"), "insufficient funds"))) } else { processed() }
    }

    /// Returns the head of the pending payment.
    pub(crate) fn pending_head(&self) -> Result<Head> {
        let pending = moved(&Head::scheduled(&self.details), &Event::Sweep, PENDING.parse()?, actor())?;
        Ok(Head { dispatch_attempt: Some(1), ..pending })
    }

    /// Returns the transition that settles the pending payment.
    pub(crate) fn settling(&self) -> Result<Transition> {
        Ok(self.pending_head()?.transition(&Event::Settle(self.settlement()?), SETTLED.parse()?, actor())?)
    }

    /// Returns the head of the settled payment.
    pub(crate) fn settled_head(&self) -> Result<Head> {
        moved(&self.pending_head()?, &Event::Settle(self.settlement()?), SETTLED.parse()?, actor())
    }
}

/// Returns the actor of all transitions.
pub(crate) fn actor() -> Actor {
    Actor::client("the model")
}
