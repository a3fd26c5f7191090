//! Batches of creates; each entry gets its own answer.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_http::{PaymentView, Problem};
use payments_model::{Actor, PaymentId};
use serde::Serialize;

use crate::create::Created;
use crate::function::Ingest;
use crate::order::{Entry, Order};

/// The most payments of a batch that are created at once: enough to hide DynamoDB's latency, few
/// enough to leave connections to the function's other requests.
const CONCURRENCY: usize = 16;

/// A batch's answer.
#[derive(Serialize)]
pub(crate) struct BatchView {
    results: Vec<EntryView>,
}

/// One entry's answer. The answer repeats the account and key that the client sent, so that clients
/// need not count entries.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView {
    status_code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    idempotent_replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment: Option<PaymentView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

impl Ingest {
    /// Creates a batch's payments. Entries with the same account and key run one after the other: the first entry
    /// creates the payment, and the later entries are its retries.
    pub(crate) async fn create_all(&self, entries: Vec<Entry>, by: &Actor) -> BatchView {
        let count = entries.len();
        let mut answers: Vec<(usize, Result<Created, Problem>)> = Vec::with_capacity(count);
        let mut groups: BTreeMap<PaymentId, Vec<(usize, Order)>> = BTreeMap::new();
        let mut echoes = Vec::with_capacity(count);
        for (position, Entry { account, key, order }) in entries.into_iter().enumerate() {
            echoes.push((account, key));
            match order {
                Ok(order) => groups.entry(order.payment_id).or_default().push((position, order)),
                Err(problem) => answers.push((position, Err(problem))),
            }
        }
        let deadline = Deadline::for_http(&self.clock);
        let worked =
            futures::stream::iter(groups.into_values().map(|group| self.create_in_order(group, by, &deadline)));
        // The whole stream is collected, so that no write is in flight when the batch is answered.
        let worked: Vec<Vec<_>> = worked.buffer_unordered(CONCURRENCY).collect().await;
        answers.extend(worked.into_iter().flatten());
        answers.sort_unstable_by_key(|(position, _)| *position);
        let results = answers.into_iter().zip(echoes).map(|((position, answer), echo)| view(position, echo, answer));
        BatchView { results: results.collect() }
    }

    async fn create_in_order(
        &self,
        group: Vec<(usize, Order)>,
        by: &Actor,
        deadline: &Deadline,
    ) -> Vec<(usize, Result<Created, Problem>)> {
        let mut answers = Vec::with_capacity(group.len());
        for (position, order) in group {
            let answer = if deadline.has_come() { Err(Problem::out_of_time()) } else { self.create(&order, by).await };
            answers.push((position, answer));
        }
        answers
    }
}

fn view(
    position: usize,
    (account_id, idempotency_key): (Option<String>, Option<String>),
    answer: Result<Created, Problem>,
) -> EntryView {
    let view = EntryView {
        status_code: 201,
        account_id,
        idempotency_key,
        idempotent_replayed: false,
        payment: None,
        problem: None,
    };
    match answer {
        Ok(Created { payment, replayed }) => {
            EntryView { idempotent_replayed: replayed, payment: Some(payment), ..view }
        }
        Err(problem) => {
            let status_code = problem.status();
            if status_code >= 500 {
                problem.log(position);
            }
            EntryView { status_code, problem: Some(problem), ..view }
        }
    }
}
