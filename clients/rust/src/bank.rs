//! The bank: each operation of the API as a method.

use std::sync::Arc;

use bytes::Bytes;
use chrono::NaiveDate;
use futures::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::Error;
use crate::events::EventPage;
use crate::model::{
    AccountBatchEntry, BatchEntry, Calendar, CalendarList, CountsOfDates, Created, DayCounts, DuePayment, EntryResult,
    Payment, PaymentOrder,
};
use crate::pages::{Page, Pages, check_moves};
use crate::retries::Tries;
use crate::sender::Sender;
use crate::values::{Status, key_header};

/// The default number of payments on a page.
const PAGE_SIZE: u16 = 100;

/// The characters that a segment of a path has unencoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The order of a list, by due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The earliest first.
    #[default]
    Ascending,
    /// The latest first.
    Descending,
}

/// The payments of an account to list: by default all that are coming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFilter {
    /// The first date.
    pub from: Option<NaiveDate>,
    /// The last date.
    pub to: Option<NaiveDate>,
    /// The statuses; empty for all.
    pub status: Vec<Status>,
    /// The payee.
    pub payee: Option<String>,
    /// The reference.
    pub reference: Option<String>,
    /// The order.
    pub order: Order,
    /// Whether payments come with their data.
    pub with_data: bool,
    /// The most payments of a page, 1 to 1,000.
    pub page_size: u16,
}

impl Default for AccountFilter {
    fn default() -> Self {
        let from = None;
        let to = None;
        let payee = None;
        let reference = None;
        let status = Vec::new();
        let order = Order::Ascending;
        let with_data = false;
        Self { from, to, status, payee, reference, order, with_data, page_size: PAGE_SIZE }
    }
}

/// The payments of a date to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueFilter {
    /// The statuses; empty for all.
    pub status: Vec<Status>,
    /// The only shard.
    pub shard: Option<u32>,
    /// The most payments of a page, 1 to 1,000.
    pub page_size: u16,
}

impl Default for DueFilter {
    fn default() -> Self {
        Self { status: Vec::new(), shard: None, page_size: PAGE_SIZE }
    }
}

/// A bank's API. Clones share connections and tokens.
#[derive(Debug, Clone)]
pub struct Bank {
    base: Arc<str>,
    sender: Arc<Sender>,
    request_id: Option<Arc<str>>,
}

impl Bank {
    pub(crate) fn with_sender(base: &str, sender: Sender) -> Self {
        Self { base: base.into(), sender: Arc::new(sender), request_id: None }
    }

    /// Returns the same bank, whose requests have this id.
    pub fn request_id(&self, id: &str) -> Self {
        Self { request_id: Some(id.into()), ..self.clone() }
    }

    /// Creates a payment. Use a new key for each payment; the same key and order return the same payment.
    ///
    /// # Errors
    /// If the bank rejects the order, or does not respond.
    pub async fn create(&self, account: &str, key: &str, order: &PaymentOrder) -> Result<Created, Error> {
        let path = format!("/accounts/{}/payments", segment(account)?);
        let (payment, response) = self.post(&path, Some(key), Some(order)).await?;
        Ok(Created::new(payment, is_replayed(&response)))
    }

    /// Creates up to 100 payments of any accounts. Each entry has its own result, in the same place.
    ///
    /// # Errors
    /// If the bank rejects the whole batch, or does not respond.
    pub async fn create_batch(&self, entries: &[BatchEntry]) -> Result<Vec<EntryResult>, Error> {
        let named: Vec<_> = entries.iter().map(|entry| (&*entry.account_id, &*entry.idempotency_key)).collect();
        self.batch("/payment-batches", entries, &named).await
    }

    /// Creates up to 100 payments of one account. Each entry has its own result, in the same place.
    ///
    /// # Errors
    /// If the bank rejects the whole batch, or does not respond.
    pub async fn create_account_batch(
        &self,
        account: &str,
        entries: &[AccountBatchEntry],
    ) -> Result<Vec<EntryResult>, Error> {
        let named: Vec<_> = entries.iter().map(|entry| (account, &*entry.idempotency_key)).collect();
        self.batch(&format!("/accounts/{}/payment-batches", segment(account)?), entries, &named).await
    }

    /// Returns a payment with its data.
    ///
    /// # Errors
    /// If there is no such payment, or the bank does not respond.
    pub async fn get(&self, account: &str, payment_id: &str) -> Result<Payment, Error> {
        self.read(&payment_path(account, payment_id)?).await
    }

    /// Cancels a scheduled payment. Repeating it is safe.
    ///
    /// # Errors
    /// If there is no such payment, it is too late, or the bank does not respond.
    pub async fn cancel(&self, account: &str, payment_id: &str) -> Result<Payment, Error> {
        let path = format!("{}/cancel", payment_path(account, payment_id)?);
        Ok(self.post(&path, None, None::<&()>).await?.0)
    }

    /// Lists an account's payments by due time.
    ///
    /// # Errors
    /// If the account's id is empty, or one or two dots.
    pub fn list(&self, account: &str, filter: &AccountFilter) -> Result<Pages<Payment>, Error> {
        let mut query = Query::new(&filter.status);
        query.add("from", filter.from.as_ref());
        query.add("to", filter.to.as_ref());
        query.add("payeeAccountId", filter.payee.as_ref());
        query.add("reference", filter.reference.as_ref());
        query.add("order", (filter.order == Order::Descending).then_some(&"desc"));
        query.add("include", filter.with_data.then_some(&"data"));
        query.add("limit", Some(&filter.page_size));
        Ok(self.pages(format!("/accounts/{}/payments", segment(account)?), query))
    }

    /// Returns the payment that was created with this key, without its data.
    ///
    /// # Errors
    /// If the bank does not respond.
    pub async fn find_by_key(&self, account: &str, key: &str) -> Result<Option<Payment>, Error> {
        self.find(account, key, false).await
    }

    /// Returns the payment that was created with this key, with its data.
    ///
    /// # Errors
    /// If the bank does not respond.
    pub async fn find_by_key_with_data(&self, account: &str, key: &str) -> Result<Option<Payment>, Error> {
        self.find(account, key, true).await
    }

    async fn find(&self, account: &str, key: &str, with_data: bool) -> Result<Option<Payment>, Error> {
        let mut query = Query::new(&[]);
        query.add("idempotencyKey", Some(&key));
        query.add("include", with_data.then_some(&"data"));
        let page: Page<Payment> =
            self.read(&query.append_to(&format!("/accounts/{}/payments", segment(account)?))).await?;
        Ok(page.payments.into_iter().next())
    }

    /// Lists the payments of a date, of all accounts.
    pub fn due(&self, date: NaiveDate, filter: &DueFilter) -> Pages<DuePayment> {
        let mut query = Query::new(&filter.status);
        query.add("dueDate", Some(&date));
        query.add("shard", filter.shard.as_ref());
        query.add("limit", Some(&filter.page_size));
        self.pages("/payments".to_owned(), query)
    }

    /// Returns the payment with this transaction id; several, if the transaction service used it several times.
    ///
    /// # Errors
    /// If the bank does not respond.
    pub async fn find_by_transaction(&self, transaction_id: &str) -> Result<Vec<Payment>, Error> {
        let mut query = Query::new(&[]);
        query.add("transactionId", Some(&transaction_id));
        Ok(self.read::<Page<Payment>>(&query.append_to("/payments")).await?.payments)
    }

    /// Returns the numbers and sums of each date of a range. Without `from` it begins today; without `to` it ends 90 days after `from`.
    ///
    /// # Errors
    /// If the bank rejects the range, or does not respond.
    pub async fn counts(&self, from: Option<NaiveDate>, to: Option<NaiveDate>) -> Result<Vec<DayCounts>, Error> {
        let mut query = Query::new(&[]);
        query.add("from", from.as_ref());
        query.add("to", to.as_ref());
        Ok(self.read::<CountsOfDates>(&query.append_to("/counts")).await?.counts)
    }

    /// Returns the calendars that the bank uses, without their closed dates.
    ///
    /// # Errors
    /// If the bank does not respond.
    pub async fn calendars(&self) -> Result<Vec<Calendar>, Error> {
        Ok(self.read::<CalendarList>("/calendars").await?.calendars)
    }

    /// Returns a calendar with its closed dates.
    ///
    /// # Errors
    /// If the bank uses no such calendar, or does not respond.
    pub async fn calendar(&self, calendar_id: &str) -> Result<Calendar, Error> {
        self.read(&format!("/calendars/{}", segment(calendar_id)?)).await
    }

    /// Returns the events after a cursor, at most `limit` (1 to 1,000, by default 1,000). Without a cursor it begins with the oldest
    /// event that is kept; with `now`, with the next one that is logged. Call it again with `next_cursor`, at once if `has_more`.
    ///
    /// # Errors
    /// A cursor that is gone (`cursor-gone`: [`Problem::oldest_cursor`](crate::Problem::oldest_cursor) is where to go on), a token
    /// without `payments/inspect`, or no answer of the bank.
    pub async fn events(&self, cursor: Option<&str>, limit: Option<u16>) -> Result<EventPage, Error> {
        let mut query = Query::new(&[]);
        query.add("cursor", cursor.as_ref());
        query.add("limit", limit.as_ref());
        let page: EventPage = self.read(&query.append_to("/events")).await?;
        if page.has_more {
            check_moves(cursor, Some(&page.next_cursor))?;
        }
        Ok(page)
    }

    /// Sends a request that this client has no method for, with the same tokens and retries. Its URI is the path and query
    /// below the bank's URL. Returns a success.
    ///
    /// # Errors
    /// If the response is not a success, or there is none.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        self.sender.send(self.whole(request)?).await
    }

    /// Sends such a request once, with a token, and returns the response, whatever its status.
    ///
    /// # Errors
    /// If there is no response.
    pub async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        self.sender.exchange(self.whole(request)?).await
    }

    /// Begins to count the attempts of a request that is sent by [`exchange`](Self::exchange).
    pub fn tries(&self) -> Tries {
        self.sender.retries.begin(&self.sender.timer)
    }

    /// Returns a request with the whole URL, and the id of requests.
    fn whole(&self, request: Request<Bytes>) -> Result<Request<Bytes>, Error> {
        let (mut parts, body) = request.into_parts();
        if parts.uri.authority().is_some() || !parts.uri.path().starts_with('/') {
            return Err(Error::Invalid(format!("{:?} is not a path below the bank's URL", parts.uri.path())));
        }
        let uri: Result<Uri, _> = format!("{}{}", self.base, parts.uri).parse();
        parts.uri = uri.map_err(|error| Error::Invalid(format!("{}: {error}", parts.uri)))?;
        if let Some(id) = &self.request_id {
            let id = HeaderValue::try_from(&**id).map_err(|error| Error::Invalid(format!("{id:?}: {error}")))?;
            parts.headers.insert("x-request-id", id);
        }
        Ok(Request::from_parts(parts, body))
    }

    fn pages<T: DeserializeOwned + 'static>(&self, path: String, query: Query) -> Pages<T> {
        let bank = self.clone();
        Pages::new(move |cursor| {
            let (bank, mut query) = (bank.clone(), query.clone());
            query.add("cursor", cursor.as_ref());
            let path = query.append_to(&path);
            async move { bank.read(&path).await }.boxed()
        })
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let request = Request::get(path).body(Bytes::new()).map_err(|error| Error::Invalid(error.to_string()))?;
        expect(&self.send(request).await?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: Option<&str>,
        body: Option<&impl Serialize>,
    ) -> Result<(T, Response<Bytes>), Error> {
        self.write(Method::POST, path, key, body).await
    }

    /// Sends JSON, or nothing.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&impl Serialize>,
    ) -> Result<(T, Response<Bytes>), Error> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = key {
            request = request.header("idempotency-key", &*key_header(key));
        }
        let mut content = Vec::new();
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json");
            content = serde_json::to_vec(body).map_err(|error| Error::Invalid(error.to_string()))?;
        }
        let request = request.body(content.into()).map_err(|error| Error::Invalid(error.to_string()))?;
        let response = self.send(request).await?;
        Ok((expect(&response)?, response))
    }
}

/// The parameters of a request.
#[derive(Clone, Default)]
struct Query(Vec<(&'static str, String)>);

impl Query {
    fn new(status: &[Status]) -> Self {
        let status: Vec<_> = status.iter().map(|status| status.as_str()).collect();
        let mut query = Self::default();
        query.add("status", (!status.is_empty()).then(|| status.join(",")).as_ref());
        query
    }

    fn add(&mut self, name: &'static str, value: Option<&impl ToString>) {
        self.0.extend(value.map(|value| (name, value.to_string())));
    }

    fn append_to(&self, path: &str) -> String {
        if self.0.is_empty() {
            return path.to_owned();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        format!("{path}?{}", query.extend_pairs(&self.0).finish())
    }
}

/// Returns whether an earlier request had the same effect.
pub(crate) fn is_replayed(response: &Response<Bytes>) -> bool {
    response.headers().get("idempotent-replayed").is_some_and(|value| value == "true")
}

/// Returns the content of a success.
pub(crate) fn expect<T: DeserializeOwned>(response: &Response<Bytes>) -> Result<T, Error> {
    serde_json::from_slice(response.body()).map_err(|error| {
        let body: String = String::from_utf8_lossy(response.body()).chars().take(200).collect();
        Error::gateway(response, format!("Not the response that openapi.yaml describes: {error}: {body}"))
    })
}

pub(crate) fn payment_path(account: &str, payment_id: &str) -> Result<String, Error> {
    Ok(format!("/accounts/{}/payments/{}", segment(account)?, segment(payment_id)?))
}

/// Returns an id as a segment of a path. Intermediaries would remove dots, and so change the request.
pub(crate) fn segment(id: &str) -> Result<String, Error> {
    if matches!(id, "" | "." | "..") {
        return Err(Error::Invalid(format!("an id must not be {id:?}")));
    }
    Ok(utf8_percent_encode(id, SEGMENT).to_string())
}
