//! The function: a request is answered with payments, counts or events.

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_boot::{Clock, Metrics};
use payments_http::{Answer, Problem, Request, Route, serve};
use payments_store::Store;

use crate::config::Config;
use crate::parameters::{self, LIST_PARAMETERS};

/// The function.
#[derive(Debug, Clone)]
pub struct QueryDue {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
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
