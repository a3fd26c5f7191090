//! `query-due`: reads across accounts: the payments of a date, the payment of a transaction, the counts of dates.
//!
//! The first two come from indexes, so they are eventually consistent.

mod config;
mod counts;
mod date;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_boot::Clock;
use payments_http::{Answer, PaymentView, Problem, ProblemKind, Request, Route, serve};
use payments_model::TransactionId;
use payments_store::Store;

pub use config::Config;
pub use counts::PARAMETERS as COUNTS_PARAMETERS;
pub use date::PARAMETERS as DATE_PARAMETERS;

/// The function.
#[derive(Debug, Clone)]
pub struct QueryDue {
    config: Config,
    store: Store,
    clock: Clock,
}

impl QueryDue {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock) -> Self {
        Self { config, store, clock }
    }

    /// Answers one request.
    pub async fn handle(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        serve(&event, &self.config.access, |request| self.answer(request)).await
    }

    async fn answer(&self, request: Request<'_>) -> Result<Answer, Problem> {
        match request.route() {
            Route::ListDue => Answer::json(200, &self.list_date(&request).await?),
            Route::GetCounts => Answer::json(200, &self.counts(&request).await?),
            Route::GetTransaction => {
                let id = request.transaction()?;
                request.query(&[])?;
                Answer::json(200, &self.of_transaction(&id).await?)
            }
            _ => Err(Problem::wrong_function()),
        }
    }

    /// Finds the payment in the index, and returns its head.
    async fn of_transaction(&self, id: &TransactionId) -> Result<PaymentView, Problem> {
        for key in self.store.payments_of_transaction(id).await? {
            let head = self.store.head(&key).await?;
            if let Some(head) = head.filter(|head| head.transaction_id() == Some(id)) {
                return Ok(PaymentView::of(&head));
            }
        }
        Err(Problem::new(ProblemKind::NoSuchPayment, "No payment has this transaction id; check the id."))
    }
}
