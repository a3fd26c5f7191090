//! The table of routes. The functions, the local gateway and a test of `template.yaml` all read it.

use http::Method;

use crate::scope::Scope;

/// The operation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Create one payment.
    CreatePayment,
    /// Create up to a hundred payments, each with its own answer.
    CreateBatch,
    /// Create up to a hundred payments of one account, each with its own answer.
    CreateAccountBatch,
    /// Cancel a scheduled payment.
    CancelPayment,
    /// Amend a scheduled payment.
    AmendPayment,
    /// List an account's payments by due time.
    ListPayments,
    /// Get one payment.
    GetPayment,
    /// List a payment's versions.
    ListVersions,
    /// List all payments of a date, or those of a transaction id, across accounts.
    ListDue,
    /// Get the counts and sums of dates.
    GetCounts,
    /// List the events after a place in the log.
    ListEvents,
    /// List the webhook endpoints.
    ListEndpoints,
    /// Create a webhook endpoint, or change it.
    PutEndpoint,
    /// Get one webhook endpoint.
    GetEndpoint,
    /// Delete a webhook endpoint.
    DeleteEndpoint,
    /// Get the secrets that sign an endpoint's messages.
    GetEndpointSecret,
    /// Send a test to an endpoint.
    TestEndpoint,
    /// Deliver events to an endpoint again.
    ReplayEndpoint,
    /// Skip the event that an endpoint does not accept.
    SkipEvent,
    /// Replace an endpoint's secret.
    RotateSecret,
    /// List the calendars in use.
    ListCalendars,
    /// Get one calendar with its closed dates.
    GetCalendar,
    /// Get the console's page, which is empty without a token.
    GetConsole,
    /// Get a script or a style of the console.
    GetConsoleAsset,
    /// Get a view of the console.
    GetConsoleView,
    /// Preview an action in the console, or perform it.
    PostConsoleAction,
    /// Look at an action that waits for a second person, approve it, or refuse it.
    PostConsoleApproval,
}

/// A function that answers HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpFunction {
    /// Creates, amends and cancels payments.
    Ingest,
    /// Reads one account's payments.
    QueryAccount,
    /// Reads across accounts.
    QueryDue,
    /// Administers webhook endpoints.
    Webhooks,
    /// Shows the bank to its operators.
    Console,
}

impl HttpFunction {
    /// The name of its package.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::QueryAccount => "query-account",
            Self::QueryDue => "query-due",
            Self::Webhooks => "webhooks",
            Self::Console => "console",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// The route.
    pub route: Route,
    /// Its method.
    pub method: Method,
    /// Its path; `{name}` stands for one segment.
    pub path: &'static str,
    /// The function that answers it.
    pub function: HttpFunction,
    /// The scope that its tokens need; `None` if it is public and needs no token.
    pub scope: Option<Scope>,
}

const fn row(route: Route, method: Method, path: &'static str, function: HttpFunction, scope: Scope) -> RouteSpec {
    RouteSpec { route, method, path, function, scope: Some(scope) }
}

/// A public route of the console. It shows nothing of the bank.
const fn public(route: Route, path: &'static str) -> RouteSpec {
    RouteSpec { route, method: Method::GET, path, function: HttpFunction::Console, scope: None }
}

/// Every route of the API.
pub static ROUTES: [RouteSpec; 22] = {
    use HttpFunction::{Ingest, QueryAccount, QueryDue, Webhooks};
    use Scope::{Feed, Inspect, Read, Write};
    const PAYMENTS: &str = "/accounts/{accountId}/payments";
    const PAYMENT: &str = "/accounts/{accountId}/payments/{paymentId}";
    const CANCEL: &str = "/accounts/{accountId}/payments/{paymentId}/cancel";
    const VERSIONS: &str = "/accounts/{accountId}/payments/{paymentId}/versions";
    const ENDPOINT: &str = "/webhook-endpoints/{endpointId}";
    [
        row(Route::CreatePayment, Method::POST, PAYMENTS, Ingest, Write),
        row(Route::CreateBatch, Method::POST, "/payment-batches", Ingest, Feed),
        row(Route::CreateAccountBatch, Method::POST, "/accounts/{accountId}/payment-batches", Ingest, Write),
        row(Route::CancelPayment, Method::POST, CANCEL, Ingest, Write),
        row(Route::AmendPayment, Method::PUT, PAYMENT, Ingest, Write),
        row(Route::ListPayments, Method::GET, PAYMENTS, QueryAccount, Read),
        row(Route::GetPayment, Method::GET, PAYMENT, QueryAccount, Read),
        row(Route::ListVersions, Method::GET, VERSIONS, QueryAccount, Read),
        row(Route::ListDue, Method::GET, "/payments", QueryDue, Inspect),
        row(Route::GetCounts, Method::GET, "/counts", QueryDue, Inspect),
        row(Route::ListEvents, Method::GET, "/events", QueryDue, Inspect),
        row(Route::ListEndpoints, Method::GET, "/webhook-endpoints", Webhooks, Inspect),
        row(Route::PutEndpoint, Method::PUT, ENDPOINT, Webhooks, Scope::Webhooks),
        row(Route::GetEndpoint, Method::GET, ENDPOINT, Webhooks, Inspect),
        row(Route::DeleteEndpoint, Method::DELETE, ENDPOINT, Webhooks, Scope::Webhooks),
        row(Route::GetEndpointSecret, Method::GET, "/webhook-endpoints/{endpointId}/secret", Webhooks, Scope::Webhooks),
        row(Route::TestEndpoint, Method::POST, "/webhook-endpoints/{endpointId}/test", Webhooks, Scope::Webhooks),
        row(Route::ReplayEndpoint, Method::POST, "/webhook-endpoints/{endpointId}/replay", Webhooks, Scope::Webhooks),
        row(Route::SkipEvent, Method::POST, "/webhook-endpoints/{endpointId}/skip", Webhooks, Scope::Webhooks),
        row(Route::RotateSecret, Method::POST, "/webhook-endpoints/{endpointId}/rotate", Webhooks, Scope::Webhooks),
        row(Route::ListCalendars, Method::GET, "/calendars", QueryAccount, Read),
        row(Route::GetCalendar, Method::GET, "/calendars/{calendarId}", QueryAccount, Read),
    ]
};

/// The routes of the console. Only its page uses them, so they are not part of the API; without a
/// console, a bank has only the API's routes.
pub static CONSOLE_ROUTES: [RouteSpec; 5] = [
    public(Route::GetConsole, "/console"),
    public(Route::GetConsoleAsset, "/console/assets/{asset}"),
    row(Route::GetConsoleView, Method::GET, "/console/views/{view}", HttpFunction::Console, Scope::Inspect),
    row(Route::PostConsoleAction, Method::POST, "/console/actions/{action}", HttpFunction::Console, Scope::Operate),
    row(
        Route::PostConsoleApproval,
        Method::POST,
        "/console/approvals/{decision}",
        HttpFunction::Console,
        Scope::Approve,
    ),
];

/// The function behind `$default`, which answers 404 and 405.
pub const DEFAULT_FUNCTION: HttpFunction = HttpFunction::QueryAccount;

impl RouteSpec {
    /// The name of the path parameter that holds the account.
    pub(crate) const ACCOUNT: &str = "accountId";

    /// Whether the route's path names an account.
    pub(crate) fn is_of_one_account(&self) -> bool {
        self.parameters(self.path).into_iter().flatten().any(|(name, _)| name == Self::ACCOUNT)
    }

    /// Whether the route shows no payments at all, so a token of single accounts may use it.
    pub(crate) fn is_of_no_account(&self) -> bool {
        matches!(self.route, Route::ListCalendars | Route::GetCalendar)
    }

    /// The route key that API Gateway gives a request to this route.
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The path parameters of `path`, not decoded, if the path matches this route.
    pub fn parameters<'p>(&self, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
        let (wanted, given) = (self.path.split('/'), path.split('/'));
        if wanted.clone().count() != given.clone().count() {
            return None;
        }
        let mut parameters = Vec::new();
        for (wanted, given) in wanted.zip(given) {
            match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if !given.is_empty() => parameters.push((name, given)),
                None if wanted == given => {}
                _ => return None,
            }
        }
        Some(parameters)
    }
}

/// Every route, of the API and of the console.
pub fn all() -> impl Iterator<Item = &'static RouteSpec> {
    ROUTES.iter().chain(&CONSOLE_ROUTES)
}

/// The route with this route key.
pub fn by_key(key: &str) -> Option<&'static RouteSpec> {
    all().find(|spec| spec.key() == key)
}

/// The API's routes at this path, whatever their method.
pub fn at_path(path: &str) -> impl Iterator<Item = &'static RouteSpec> {
    ROUTES.iter().filter(move |spec| spec.parameters(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_its_routes() {
        use Route::{
            AmendPayment, CancelPayment, CreateAccountBatch, CreateBatch, CreatePayment, GetPayment, ListPayments,
        };
        for (path, want) in [
            ("/accounts/a/payments", vec![CreatePayment, ListPayments]),
            ("/accounts/a/payments/p", vec![AmendPayment, GetPayment]),
            ("/accounts/a/payments/p/cancel", vec![CancelPayment]),
            ("/payment-batches", vec![CreateBatch]),
            ("/accounts/a/payment-batches", vec![CreateAccountBatch]),
            ("/accounts//payments", vec![]),
            ("/accounts/a/payments/", vec![]),
            ("/transactions/t", vec![]),
            ("/accounts/a", vec![]),
            ("/", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(at_path(path).map(|spec| spec.route).collect::<Vec<_>>(), want, "{path}");
        }
    }

    #[test]
    fn a_key_finds_its_route() {
        for spec in all() {
            assert_eq!(by_key(&spec.key()).map(|found| found.route), Some(spec.route));
        }
        assert_eq!(by_key("$default"), None);
    }
}
