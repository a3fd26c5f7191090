//! The function: a request creates, changes, shows, deletes or operates an endpoint.

use std::borrow::Cow;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_boot::{Clock, Metrics, WebhookMaster};
use payments_http::{Answer, Problem, ProblemKind, Request, Route, serve};
use payments_store::Store;

use crate::config::Config;

/// The longest body, in bytes: a URL of 2,048 characters, 50 accounts of 48, and three times as much for faults.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// The function.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) master: WebhookMaster,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Webhooks {
    /// Creates the function.
    pub fn new(config: Config, store: Store, master: WebhookMaster, clock: Clock, metrics: Metrics) -> Self {
        Self { config, store, master, clock, metrics }
    }

    /// Answers one request.
    pub async fn handle(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        serve(&event, &self.config.access, |request| self.answer(request)).await
    }

    async fn answer(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let has_fields = [Route::PutEndpoint, Route::ReplayEndpoint, Route::SkipEvent, Route::RotateSecret]
            .contains(&request.route());
        let body = if has_fields || request.route() == Route::TestEndpoint && request.has_body() {
            request.json_body(MAX_BODY_BYTES)?
        } else {
            Cow::Borrowed(&[][..])
        };
        request.query(&[])?;
        if request.route() == Route::ListEndpoints {
            return Answer::json(200, &self.list().await?);
        }
        let id = request.endpoint()?;
        match request.route() {
            Route::PutEndpoint => self.put(&request, &id, &body).await,
            Route::GetEndpoint => Answer::json(200, &self.view(&self.find(&id).await?)),
            Route::DeleteEndpoint => self.delete(&request, &id).await,
            Route::GetEndpointSecret => self.secret(&request, &id).await,
            Route::TestEndpoint => self.test(&request, &id, &body).await,
            Route::ReplayEndpoint => self.replay(&request, &id, &body).await,
            Route::SkipEvent => self.skip(&request, &id, &body).await,
            Route::RotateSecret => self.rotate(&request, &id, &body).await,
            _ => Err(Problem::wrong_function()),
        }
    }
}

pub(crate) fn no_such_endpoint() -> Problem {
    Problem::new(ProblemKind::NoSuchEndpoint, "There is no endpoint with this id; check the id, or create it with PUT.")
}
