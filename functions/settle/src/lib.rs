//! `settle`: what the transaction service reports becomes the payment's outcome, once.

mod config;
mod verdict;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use futures::StreamExt as _;
use payments_boot::{Clock, Metrics};
use payments_model::transition::CLAIMED;
use payments_model::{
    Actor, BusinessDate, Event, HeadKey, HeadSort, PaymentId, Settlement, TransactionId, Transition, causes,
};
use payments_queue::SettlementResult;
use payments_store::{Moved, Store, StoreError};

pub use config::Config;
use verdict::{Tally, Verdict};

/// How many messages are worked on at once.
const CONCURRENCY: usize = 16;

/// Who settles, as trails name it.
const SETTLE: &str = "settle";

/// The function.
#[derive(Debug, Clone)]
pub struct Settle {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl Settle {
    /// The function with all it needs.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Settles one batch of reports, each on its own. The answer names the messages that have to
    /// come again.
    pub async fn handle(&self, event: SqsEvent) -> SqsBatchResponse {
        let messages = futures::stream::iter(event.records);
        // Collected to the end: no write is left in flight when the batch is answered.
        let ends: Vec<_> = messages.map(|message| self.end(message)).buffer_unordered(CONCURRENCY).collect().await;
        let mut tally = Tally::default();
        let mut response = SqsBatchResponse::default();
        for (message_id, verdict, shared) in ends {
            tally.count(&verdict);
            tally.shared_transaction_ids += u64::from(shared);
            if verdict.comes_again() {
                let mut failure = BatchItemFailure::default();
                failure.item_identifier = message_id;
                response.batch_item_failures.push(failure);
            }
        }
        self.metrics.emit(self.clock.instant(), &tally);
        response
    }

    /// One message: its id, its end, and whether its transaction id is another payment's too.
    async fn end(&self, message: SqsMessage) -> (String, Verdict, bool) {
        let message_id = message.message_id.unwrap_or_default();
        let report = match SettlementResult::parse(message.body.as_deref().unwrap_or_default()) {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(message_id, %error, "a report cannot be read");
                return (message_id, Verdict::Poison, false);
            }
        };
        let payment_id = report.payment_id;
        match self.settle(&report).await {
            Ok((verdict, shared)) => {
                if matches!(verdict, Verdict::Conflicting | Verdict::Unknown | Verdict::TooEarly) || shared {
                    tracing::error!(message_id, %payment_id, ?verdict, shared, "a report does not fit");
                }
                (message_id, verdict, shared)
            }
            Err(error) => {
                tracing::warn!(message_id, %payment_id, causes = ?causes(&error), "a report has to come again");
                (message_id, Verdict::Outage, false)
            }
        }
    }

    async fn settle(&self, report: &SettlementResult) -> Result<(Verdict, bool), StoreError> {
        let verdict = match &report.echo {
            // The service told where the payment is, so that nothing has to be read first. What it
            // told is not trusted further than that: where there is no such head, details decide.
            Some((account, due_at)) => {
                let sort = HeadSort { due_at: *due_at, payment_id: report.payment_id };
                let key = HeadKey { account: account.clone(), sort };
                match self.settle_at(&key, self.config.zone.date_of(*due_at), report).await? {
                    Verdict::Unknown => self.settle_by_details(report).await?,
                    verdict => verdict,
                }
            }
            None => self.settle_by_details(report).await?,
        };
        let shared = match (&verdict, &report.settlement) {
            (Verdict::Settled(_) | Verdict::Repeated, Settlement::Processed(id)) => {
                self.is_shared(id, report.payment_id).await
            }
            _ => false,
        };
        Ok((verdict, shared))
    }

    /// Whether another payment carries this transaction id too. The index follows the tables with a
    /// lag, so of two payments settled in the same moment neither may see the other; and a look that
    /// fails never changes what became of a report.
    async fn is_shared(&self, id: &TransactionId, payment_id: PaymentId) -> bool {
        match self.store.payments_of_transaction(id).await {
            Ok(carriers) => carriers.iter().any(|key| key.sort.payment_id != payment_id),
            Err(error) => {
                tracing::warn!(%payment_id, transaction_id = %id, causes = ?causes(&error), "not looked for elsewhere");
                false
            }
        }
    }

    async fn settle_by_details(&self, report: &SettlementResult) -> Result<Verdict, StoreError> {
        let Some(details) = self.store.details(report.payment_id).await? else { return Ok(Verdict::Unknown) };
        self.settle_at(&details.key(), details.due_date, report).await
    }

    /// Settles the payment at `key`. Its business date is only known for certain from what is
    /// stored: a condition holds it, and where that fails the stored one is used.
    async fn settle_at(
        &self,
        key: &HeadKey,
        due_date: BusinessDate,
        report: &SettlementResult,
    ) -> Result<Verdict, StoreError> {
        let (now, by) = (self.clock.now(), Actor::named(SETTLE));
        let event = Event::Settle(report.settlement.clone());
        let (state, version) = CLAIMED;
        let mut moved = match Transition::new(&state, version, &event, now, by.clone()) {
            Ok(step) => self.store.transition(key, due_date, &step).await?,
            Err(decision) => return Ok(Verdict::of(Some(decision))),
        };
        if let Moved::Elsewhere(Some(head)) = &moved
            && let Ok(step) = head.transition(&event, now, by.clone())
        {
            moved = self.store.transition(key, head.due_date, &step).await?;
        }
        let found = match moved {
            Moved::Done(_) => return Ok(Verdict::Settled(report.settlement.clone())),
            Moved::Elsewhere(Some(head)) => Some(*head),
            Moved::Elsewhere(None) => self.store.archived_head(key).await?,
        };
        let Some(head) = found else { return Ok(Verdict::Unknown) };
        let verdict = Verdict::of(head.transition(&event, now, by).err());
        if verdict == Verdict::Conflicting {
            // All that is left of the second outcome, for whoever follows the alarm.
            let told = if let Settlement::Processed(id) = &report.settlement { Some(id.as_str()) } else { None };
            let stored = head.transaction_id().map(TransactionId::as_str);
            let (payment_id, status) = (head.payment_id, head.state.status());
            tracing::error!(%payment_id, %status, stored, told, "a second, different outcome");
        }
        Ok(verdict)
    }
}
