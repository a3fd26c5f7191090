//! The running bank, and the objects that the checks create there.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{Days, NaiveDate};
use http::{Request, Response};
use scheduled_payments::{
    Bank, BoxError, Builder, ClientCredentials, Data, Error, Http, Payment, PaymentOrder, Problem, Retries, Transport,
};

/// The largest amount: doubles represent each integer up to it.
pub(crate) const LARGEST: i64 = 9_007_199_254_740_991;

/// Retries with one attempt.
pub(crate) const ONCE: Retries = attempts(1);

/// The running bank.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) today: NaiveDate,
    /// The key of a settled payment of acc-1, the only one of today: 350 pence.
    pub(crate) settled_key: String,
    /// Its transaction id.
    pub(crate) transaction: String,
    /// No check needs a pause at the running bank.
    pub(crate) bank: Bank,
}

/// Connections to this machine alone.
#[derive(Debug)]
struct Loopback(Http);

#[async_trait]
impl Transport for Loopback {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        match request.uri().host() {
            Some("127.0.0.1") => self.0.exchange(request).await,
            other => Err(format!("a check connects to {other:?}").into()),
        }
    }
}

/// Begins to make a client that reaches this machine alone.
pub(crate) fn builder(url: &str) -> Builder {
    Bank::over(Arc::new(Loopback(Http::new())), url)
}

/// Returns the default with this many attempts.
pub(crate) const fn attempts(attempts: u32) -> Retries {
    let (total, first) = (std::time::Duration::from_secs(60), std::time::Duration::from_millis(500));
    Retries { attempts, total, first, jitter_percent: 25 }
}

/// Returns a variable of the environment.
#[expect(clippy::disallowed_methods, reason = "this program has no other configuration")]
pub(crate) fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| name.to_owned())
}

impl World {
    pub(crate) fn from_environment() -> Result<Self> {
        let url = variable("BANK_URL")?;
        Ok(Self {
            today: variable("BANK_TODAY")?.parse()?,
            settled_key: variable("BANK_SETTLED_KEY")?,
            transaction: variable("BANK_TRANSACTION")?,
            bank: builder(&url).token(variable("BANK_TOKEN")?).retries(ONCE).build()?,
            url,
        })
    }

    /// Returns a date this many days from today.
    pub(crate) fn day(&self, number: u64) -> NaiveDate {
        self.today + Days::new(number)
    }

    /// Returns an order of 120.50 pounds in a week.
    pub(crate) fn order(&self) -> PaymentOrder {
        PaymentOrder::new("acc-2", 12050, "GBP", self.day(7))
    }

    /// Returns the same order with data.
    pub(crate) fn order_with(&self, data: &str) -> Result<PaymentOrder> {
        Ok(PaymentOrder { data: Some(json(data)?), ..self.order() })
    }

    /// Returns the text of a payment, as the bank sends it.
    pub(crate) async fn raw_payment(&self, payment: &Payment) -> Result<String> {
        let path = format!("/accounts/{}/payments/{}", payment.account_id, payment.payment_id);
        let response = self.bank.send(Request::get(path).body(Bytes::new())?).await?;
        Ok(String::from_utf8(response.into_body().into())?)
    }

    /// Returns the credentials of a client of the running bank.
    pub(crate) fn credentials(&self, scope: Option<&str>) -> ClientCredentials {
        ClientCredentials {
            id: "id".to_owned(),
            secret: "secret".to_owned(),
            token_url: format!("{}/oauth2/token", self.url),
            scope: scope.map(str::to_owned),
        }
    }
}

/// Returns a text of JSON as data.
pub(crate) fn json(text: &str) -> Result<Data> {
    Ok(serde_json::from_str(text)?)
}

/// Returns a payment as the responses have it that include no data.
pub(crate) fn without_data(mut payment: Payment) -> Payment {
    payment.data = None;
    payment
}

/// Returns the error of a call.
pub(crate) fn error_of<T>(called: Result<T, Error>) -> Result<Error> {
    match called {
        Ok(_) => bail!("no error"),
        Err(error) => Ok(error),
    }
}

/// Returns the problem of a call.
pub(crate) fn problem_of<T>(called: Result<T, Error>) -> Result<Problem> {
    let error = error_of(called)?;
    error.problem().cloned().with_context(|| format!("{error:?}"))
}
