//! The function: a request is answered with payments, their versions or calendars.

use std::sync::Arc;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_http::{Answer, PaymentView, Problem, ProblemKind, Request, Route, VersionsView, serve};
use payments_model::{AccountId, Details, Head, IdempotencyKey, PaymentId};
use payments_sealed::SealedRows;
use payments_store::Store;
use serde::Serialize;

use crate::config::Config;
use crate::page;
use crate::plan;
use crate::plan::Plan;

/// The list of an idempotency key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyView {
    payments: Vec<PaymentView>,
    next_cursor: Option<String>,
}

/// The function.
#[derive(Debug, Clone)]
pub struct QueryAccount {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) sealed: SealedRows,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl QueryAccount {
    /// Creates the function.
    pub fn new(config: Config, store: Store, files: Arc<dyn ObjectStore>, clock: Clock, metrics: Metrics) -> Self {
        let sealed = SealedRows::new(files, clock.clone());
        Self { config, store, sealed, clock, metrics }
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
                Answer::payment(200, &self.get(&account, payment, true).await?)
            }
            Route::ListVersions => self.versions(&request).await,
            Route::ListCalendars => self.calendars(&request),
            Route::GetCalendar => self.calendar(&request),
            _ => Err(Problem::wrong_function()),
        }
    }

    async fn list(&self, request: Request<'_>) -> Result<Answer, Problem> {
        let (account, query) = (request.account()?, request.query(plan::PARAMETERS)?);
        if let Some(key) = plan::key(&query)? {
            return self.list_key(&account, &key, plan::with_data(&query)?).await;
        }
        let today = self.config.business_days.zone().date_of(self.clock.now());
        let deadline = Deadline::for_http(&self.clock);
        let plan = Plan::parse(account, &query, today)?;
        let query = plan.read(self.config.business_days.zone(), today)?;
        let read = self.store.account_list(&query, || !deadline.has_come()).await?;
        let page = page::render(&self.store, &self.sealed, &plan, read, &deadline).await?;
        if !page.unreadable.is_empty() {
            self.metrics.emit(self.clock.instant(), &page.unreadable);
        }
        Answer::json(200, &page)
    }

    /// Lists the payment with this idempotency key, or none. Its id follows from the key, so that takes two reads, and a third
    /// once its head is in the long-term table alone.
    async fn list_key(&self, account: &AccountId, key: &IdempotencyKey, with_data: bool) -> Result<Answer, Problem> {
        let payments = match self.get(account, PaymentId::derive(account, key), with_data).await {
            Ok(payment) => vec![payment],
            Err(problem) if problem.kind() == ProblemKind::NoSuchPayment => Vec::new(),
            Err(problem) => return Err(problem),
        };
        Answer::json(200, &KeyView { payments, next_cursor: None })
    }

    /// Returns one payment.
    async fn get(&self, account: &AccountId, payment_id: PaymentId, with_data: bool) -> Result<PaymentView, Problem> {
        let (first, head) = self.found(account, payment_id).await?;
        let details = self.store.details_in_force(&head, first).await?;
        let view = PaymentView::new(&head).with_dates(&details);
        if !with_data {
            return Ok(view);
        }
        let [details] = self.sealed.opened([details]).await?;
        view.with_data(details.instruction.data.as_ref())
    }

    /// Returns a payment's first details, which give its head's key, and its head. Without a head, the payment was never
    /// acknowledged and does not exist.
    async fn found(&self, account: &AccountId, payment_id: PaymentId) -> Result<(Details, Head), Problem> {
        let details = self.store.details(payment_id).await?;
        let details =
            details.filter(|details| details.instruction.account == *account).ok_or_else(Problem::no_such_payment)?;
        let head = self.store.head(&details.key()).await?.ok_or_else(Problem::no_such_payment)?;
        Ok((details, head))
    }

    /// Lists the versions of a payment, the first one first.
    async fn versions(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        let (account, payment) = (request.account()?, request.payment()?);
        let with_data = plan::with_data(&request.query(plan::VERSIONS_PARAMETERS)?)?;
        let (first, head) = self.found(&account, payment).await?;
        let deadline = Deadline::for_http(&self.clock);
        let chain = self.store.details_chain(&head, || !deadline.has_come()).await?;
        let mut chain = chain.ok_or_else(Problem::repeat)?;
        chain.push(first);
        chain.reverse();
        if with_data {
            chain = self.sealed.opened(chain).await?;
        }
        Answer::json(200, &VersionsView::new(&chain, with_data)?)
    }
}
