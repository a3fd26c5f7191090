//! The one table of routes. The functions, the local runner and a test of `template.yaml` all
//! read it.

use http::Method;

use crate::access::Scope;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Put one payment in.
    CreatePayment,
    /// Put up to a hundred payments in, each answered on its own.
    CreateBatch,
    /// Take a scheduled payment back.
    CancelPayment,
    /// An account's payments by due time.
    ListPayments,
    /// One payment.
    GetPayment,
    /// All payments of a date, across accounts.
    ListDue,
    /// The numbers of dates.
    GetCounts,
    /// The payment of a transaction id.
    GetTransaction,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// What it asks for.
    pub route: Route,
    /// With which method.
    pub method: Method,
    /// At which path; `{name}` stands for one segment.
    pub path: &'static str,
    /// The function that answers it, by its package name.
    pub function: &'static str,
    /// What a token needs to ask for it.
    pub scope: Scope,
}

/// Every route.
pub const ROUTES: [RouteSpec; 8] = [
    RouteSpec {
        route: Route::CreatePayment,
        method: Method::POST,
        path: "/accounts/{accountId}/payments",
        function: "ingest",
        scope: Scope::Write,
    },
    RouteSpec {
        route: Route::CreateBatch,
        method: Method::POST,
        path: "/payment-batches",
        function: "ingest",
        scope: Scope::Operate,
    },
    RouteSpec {
        route: Route::CancelPayment,
        method: Method::POST,
        path: "/accounts/{accountId}/payments/{paymentId}/cancel",
        function: "ingest",
        scope: Scope::Write,
    },
    RouteSpec {
        route: Route::ListPayments,
        method: Method::GET,
        path: "/accounts/{accountId}/payments",
        function: "query-account",
        scope: Scope::Read,
    },
    RouteSpec {
        route: Route::GetPayment,
        method: Method::GET,
        path: "/accounts/{accountId}/payments/{paymentId}",
        function: "query-account",
        scope: Scope::Read,
    },
    RouteSpec {
        route: Route::ListDue,
        method: Method::GET,
        path: "/payments",
        function: "query-due",
        scope: Scope::Operate,
    },
    RouteSpec {
        route: Route::GetCounts,
        method: Method::GET,
        path: "/counts",
        function: "query-due",
        scope: Scope::Operate,
    },
    RouteSpec {
        route: Route::GetTransaction,
        method: Method::GET,
        path: "/transactions/{transactionId}",
        function: "query-due",
        scope: Scope::Operate,
    },
];

/// The function behind `$default`, which answers 404 and 405.
pub const DEFAULT_FUNCTION: &str = "query-account";

impl RouteSpec {
    /// The name of the path parameter that says whose payments a route is about.
    pub(crate) const ACCOUNT: &str = "accountId";

    /// Whether its path names the one account that it is about.
    #[must_use]
    pub fn is_of_one_account(&self) -> bool {
        self.parameters(self.path).into_iter().flatten().any(|(name, _)| name == Self::ACCOUNT)
    }

    /// The route key that API Gateway gives a request to this route.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The path parameters of `path`, not decoded, if this is its route.
    #[must_use]
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

/// The route with this route key.
#[must_use]
pub fn by_key(key: &str) -> Option<&'static RouteSpec> {
    const { &ROUTES }.iter().find(|spec| spec.key() == key)
}

/// The routes at this path, whatever their method.
pub fn at_path(path: &str) -> impl Iterator<Item = &'static RouteSpec> {
    const { &ROUTES }.iter().filter(move |spec| spec.parameters(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_routes() {
        use Route::{CancelPayment, CreateBatch, CreatePayment, GetPayment, ListPayments};
        for (path, want) in [
            ("/accounts/a/payments", vec![CreatePayment, ListPayments]),
            ("/accounts/a/payments/p", vec![GetPayment]),
            ("/accounts/a/payments/p/cancel", vec![CancelPayment]),
            ("/payment-batches", vec![CreateBatch]),
            ("/accounts//payments", vec![]),
            ("/accounts/a/payments/", vec![]),
            ("/accounts/a", vec![]),
            ("/", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(at_path(path).map(|spec| spec.route).collect::<Vec<_>>(), want, "{path}");
        }
    }

    #[test]
    fn keys_find_their_routes() {
        for spec in &ROUTES {
            assert_eq!(by_key(&spec.key()).map(|found| found.route), Some(spec.route));
        }
        assert_eq!(by_key("$default"), None);
    }
}
