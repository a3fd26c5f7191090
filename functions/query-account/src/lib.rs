//! `query-account`: lists an account's payments and returns single ones, strongly consistent, from both tables.

mod config;
mod page;
mod plan;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_boot::{Clock, Deadline, Metrics};
use payments_http::{Answer, PaymentView, Problem, Request, Route, serve};
use payments_model::{AccountId, PaymentId};
use payments_store::Store;

pub use config::Config;
pub use plan::PARAMETERS as LIST_PARAMETERS;
use plan::Plan;

/// The function.
#[derive(Debug, Clone)]
pub struct QueryAccount {
    config: Config,
    store: Store,
    clock: Clock,
    metrics: Metrics,
}

impl QueryAccount {
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
            Route::ListPayments => self.list(request).await,
            Route::GetPayment => {
                let (account, payment) = (request.account()?, request.payment()?);
                request.query(&[])?;
                Answer::json(200, &self.get(&account, payment).await?)
            }
            _ => Err(Problem::wrong_function()),
        }
    }

    async fn list(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let (zone, account) = (self.config.zone, request.account()?);
        let today = zone.date_of(self.clock.now());
        let deadline = Deadline::of_http(&self.clock);
        let plan = Plan::of(account, &request.query(plan::PARAMETERS)?, today)?;
        let read = self.store.account_page(&plan.read(zone, today)?).await?;
        let page = page::render(&self.store, &plan, read, &deadline).await?;
        if !page.left_out.is_empty() {
            self.metrics.emit(self.clock.instant(), &page.left_out);
        }
        Answer::json(200, &page)
    }

    /// Returns one payment with its data. Its details give its head's key. Without a head, the payment was never
    /// acknowledged and does not exist.
    async fn get(&self, account: &AccountId, payment_id: PaymentId) -> Result<PaymentView, Problem> {
        let details = self.store.details(payment_id).await?;
        let details =
            details.filter(|details| details.instruction.account == *account).ok_or_else(Problem::no_such_payment)?;
        let head = self.store.head(&details.key()).await?.ok_or_else(Problem::no_such_payment)?;
        PaymentView::of(&head).with_data(details.instruction.data.as_ref())
    }
}
