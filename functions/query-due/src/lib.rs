//! `query-due`: reads across accounts: payments by date or transaction, the counts of dates, and the events.
//!
//! The payments come from indexes, so they are eventually consistent.

mod config;
mod counts;
mod date;
mod events;
mod page;
mod parameters;
mod transaction;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_boot::{Clock, Metrics};
use payments_http::{Answer, Problem, Request, Route, serve};
use payments_store::Store;

pub use config::Config;
pub use counts::PARAMETERS as COUNTS_PARAMETERS;
pub use events::PARAMETERS as EVENTS_PARAMETERS;
pub use parameters::LIST_PARAMETERS;

/// The function.
#[derive(Debug, Clone)]
pub struct QueryDue {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl QueryDue {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, clock, metrics }
    }

    /// Answers one request.
    pub async fn handle(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        serve(&event, &self.config.access, |request| self.answer(request)).await
    }

    async fn answer(&self, request: Request<'_>) -> Result<Answer, Problem> {
        match request.route() {
            Route::ListDue => {
                let query = request.query(LIST_PARAMETERS)?;
                match parameters::transaction(&query)? {
                    Some(id) => self.page(&self.list_transaction(&id).await?),
                    None => self.page(&self.list_date(&query).await?),
                }
            }
            Route::GetCounts => Answer::json(200, &self.counts(&request).await?),
            Route::ListEvents => self.events(&request).await,
            _ => Err(Problem::wrong_function()),
        }
    }
}
