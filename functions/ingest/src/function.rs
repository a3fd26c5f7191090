//! The function: parses a request, and creates, amends or cancels payments.

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use http::header::LOCATION;
use payments_boot::Clock;
use payments_http::json::Fields;
use payments_http::{Answer, Pointer, Problem, Request, Route, serve};
use payments_store::Store;

use crate::config::Config;
use crate::order;
use crate::order::{Order, Wish};

/// The longest body of a single create, amendment or cancel, in bytes: eight times the 8 KB of a payment. Most payments
/// that are too large are still read, so that the answer can name the excess.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The longest body of a batch, in bytes: more than twice a hundred payments of 8 KB.
const MAX_BATCH_BODY_BYTES: usize = 2 * 1024 * 1024;

/// The function.
#[derive(Debug, Clone)]
pub struct Ingest {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
}

impl Ingest {
    /// Creates the function.
    pub fn new(config: Config, store: Store, clock: Clock) -> Self {
        Self { config, store, clock }
    }

    /// Answers one request.
    pub async fn handle(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        serve(&event, &self.config.access, |request| self.answer(request)).await
    }

    async fn answer(&self, request: Request<'_>) -> Result<Answer, Problem> {
        // Before any fault: nothing of a refused client is parsed, read or written, whatever its key.
        if request.route() != Route::CancelPayment && request.is_of_one_of(&self.config.refused_clients) {
            return Err(Problem::closed());
        }
        match request.route() {
            Route::CreatePayment => self.answer_create(request).await,
            Route::CreateBatch | Route::CreateAccountBatch => self.answer_batch(request).await,
            Route::CancelPayment => {
                let body = request.has_body().then(|| request.json_body(MAX_BODY_BYTES)).transpose()?;
                let (account, payment) = (request.account()?, request.payment()?);
                request.query(&[])?;
                if let Some(body) = body {
                    let place = Pointer::body();
                    let faults = Fields::parse(&body, &place)?.end();
                    if !faults.is_empty() {
                        return Err(Problem::for_body(&place, faults));
                    }
                }
                Answer::payment(200, &self.cancel(&account, payment, request.caller()).await?)
            }
            Route::AmendPayment => self.answer_amend(request).await,
            _ => Err(Problem::wrong_function()),
        }
    }

    async fn answer_batch(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let body = request.json_body(MAX_BATCH_BODY_BYTES)?;
        let of_path = (request.route() == Route::CreateAccountBatch).then(|| request.account()).transpose()?;
        request.query(&[])?;
        let entries = order::read_batch(&body, of_path.as_ref())?;
        Answer::json(200, &self.create_all(entries, &request.caller()).await)
    }

    async fn answer_create(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let body = request.json_body(MAX_BODY_BYTES)?;
        let account = request.account()?;
        request.query(&[])?;
        let key = request.idempotency_key()?;
        let order = Order::single(account, &key, &body)?;
        let created = self.create(&order, &request.caller()).await?;
        let location = format!("/accounts/{}/payments/{}", order.instruction.account, order.payment_id);
        Ok(created.answer(201)?.header(LOCATION, &location))
    }

    async fn answer_amend(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let body = request.json_body(MAX_BODY_BYTES)?;
        let (account, payment_id) = (request.account()?, request.payment()?);
        request.query(&[])?;
        let (key, version) = (request.idempotency_key()?, request.if_match()?);
        let order = Order::single(account, &key, &body)?;
        let wish = Wish { payment_id, key: &key, version, order: &order };
        self.amend(&wish, &request.caller()).await?.answer(200)
    }
}
