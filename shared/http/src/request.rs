//! Requests: route, parameters, headers, body and caller, parsed.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH};
use payments_model::webhook::EndpointId;
use payments_model::{AccountId, Actor, BusinessDate, IdempotencyKey, PaymentId};

use crate::access::{Access, claims, has_scope};
use crate::client::client;
use crate::echo::{bounded, echoed};
use crate::form::Form;
use crate::key_header::key_of;
use crate::problem::{Problem, ProblemKind};
use crate::problem_page;
use crate::query::{Query, invalid_parameter};
use crate::routes::{self, Route, RouteSpec};
use crate::scope::Scope;

/// The header of an encoded body, as problems name it.
pub(crate) const ENCODING: &str = "Content-Encoding";

/// The longest name of a person that is kept, in bytes.
const MAX_PERSON_BYTES: usize = 256;

/// The highest version that `If-Match` takes: nine digits, as `openapi.yaml` says. No payment has as many.
const MAX_IF_MATCH: u32 = 999_999_999;

/// An authorized request to one of the API's routes. `Request::from_event` is the only way to get one.
#[derive(Debug, Clone, Copy)]
pub struct Request<'e> {
    event: &'e ApiGatewayV2httpRequest,
    route: Route,
}

impl<'e> Request<'e> {
    /// The page of a problem, if the request in `event` asks for one.
    pub(crate) fn page(event: &ApiGatewayV2httpRequest) -> Option<String> {
        let is_get = event.request_context.http.method == Method::GET;
        let is_route = event.route_key.as_deref().and_then(routes::by_key).is_some();
        problem_page::at(event.raw_path.as_deref()?).filter(|_| is_get && !is_route)
    }

    /// Authorizes the request in `event`.
    ///
    /// # Errors
    /// [`ProblemKind::NoSuchRoute`] or [`ProblemKind::MethodNotAllowed`] if it came through `$default`, and the
    /// problems of [`Access::check`].
    pub(crate) fn from_event(event: &'e ApiGatewayV2httpRequest, access: &Access) -> Result<Self, Problem> {
        if let Some(spec) = event.route_key.as_deref().and_then(routes::by_key) {
            access.check(event, spec)?;
            return Ok(Self { event, route: spec.route });
        }
        let path = event.raw_path.as_deref().unwrap_or_default();
        let mut methods: Vec<&str> = routes::at_path(path).map(|spec| spec.method.as_str()).collect();
        methods.sort_unstable();
        if methods.is_empty() {
            return Err(Problem::new(ProblemKind::NoSuchRoute, "The API has no route at this path; check the path."));
        }
        let methods = methods.join(", ");
        let detail = format!("The method is not allowed at this path; use {methods}.");
        Err(Problem::new(ProblemKind::MethodNotAllowed, detail).allowing(methods))
    }

    /// The route.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The client that the token was given to, if the token names one.
    fn client(&self) -> Option<&'e str> {
        // A token that names two clients was rejected.
        client(claims(self.event)?).ok().flatten()
    }

    /// The caller, as trails name it: the token's client or subject.
    pub fn caller(&self) -> Actor {
        Actor::client(self.client_name())
    }

    /// The operator, as trails name people: the token's person, or the token's client if it names no person.
    pub fn operator(&self) -> Actor {
        Actor::operator(self.person_claim().unwrap_or_else(|| self.client_name()))
    }

    fn client_name(&self) -> &'e str {
        let subject = || claims(self.event).and_then(|claims| claims.get("sub")).map(String::as_str);
        self.client().or_else(subject).unwrap_or("anonymous")
    }

    /// The token's person, if the token names one beside its client, as the provider spells it: at
    /// most 256 bytes of that.
    pub fn person(&self) -> Option<String> {
        self.person_claim().map(|name| bounded(name, MAX_PERSON_BYTES))
    }

    fn person_claim(&self) -> Option<&'e str> {
        let claims = claims(self.event)?;
        let name = claims.get("username").or_else(|| claims.get("sub"))?;
        (self.client() != Some(name)).then_some(name)
    }

    /// A claim of the token as API Gateway passes it; `None` without a token, too.
    pub fn claim(&self, name: &str) -> Option<&'e str> {
        claims(self.event)?.get(name).map(String::as_str)
    }

    /// Whether a browser says that another site sent this (*Fetch Metadata*). Programs do not say it.
    pub fn is_of_another_site(&self) -> bool {
        self.event.headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin")
    }

    /// Whether the token has a scope. On one machine a request without a token has every scope.
    pub fn has(&self, scope: Scope) -> bool {
        claims(self.event).is_none_or(|claims| has_scope(claims, scope))
    }

    /// Whether the token was given to this client. On one machine a request without a token belongs to every client.
    pub fn is_of_client(&self, client: &str) -> bool {
        claims(self.event).is_none() || self.client() == Some(client)
    }

    /// Whether the list names the request's client, as trails name it, or every client: `*`.
    pub fn is_of_one_of(&self, clients: &[String]) -> bool {
        clients.iter().any(|named| named == "*" || named == self.client_name())
    }

    /// API Gateway's id of the request, which callers cannot choose.
    pub fn gateway_id(&self) -> &'e str {
        self.event.request_context.request_id.as_deref().unwrap_or_default()
    }

    /// The account in the path, or [`ProblemKind::InvalidParameter`].
    pub fn account(&self) -> Result<AccountId, Problem> {
        self.path(RouteSpec::ACCOUNT)
    }

    /// The payment in the path, or [`ProblemKind::InvalidParameter`].
    pub fn payment(&self) -> Result<PaymentId, Problem> {
        self.path("paymentId")
    }

    /// The webhook endpoint in the path, or [`ProblemKind::InvalidParameter`].
    pub fn endpoint(&self) -> Result<EndpointId, Problem> {
        self.path("endpointId")
    }

    /// The id of the calendar in the path, as it is.
    pub fn calendar(&self) -> &'e str {
        self.event.path_parameters.get("calendarId").map_or("", String::as_str)
    }

    /// The console's asset, view, action or decision in the path, as it is.
    pub fn console_name(&self) -> &'e str {
        let names = ["asset", "view", "action", "decision"].into_iter();
        names.filter_map(|of| self.event.path_parameters.get(of)).next().map_or("", String::as_str)
    }

    fn path<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<T, Problem> {
        let text = self.event.path_parameters.get(name).map_or("", String::as_str);
        text.parse().map_err(|error| invalid_parameter(name, &error))
    }

    /// The idempotency key in the headers, without the double quotes that may be around it.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidIdempotencyKey`] if it is missing or malformed.
    pub fn idempotency_key(&self) -> Result<IdempotencyKey, Problem> {
        const NAME: &str = "Idempotency-Key";
        const MISSING: &str = "The Idempotency-Key header is missing; send a new key with each payment, and the same key \
                               with its retries.";
        const UNQUOTED: &str = "The Idempotency-Key begins with a double quote and is not a string in quotes; send the key without \
                                quotes, or end it with one and put \\ before each \" and \\ inside.";
        let problem = |detail| Problem::new(ProblemKind::InvalidIdempotencyKey, detail).at(NAME);
        let key = self.event.headers.get(NAME).ok_or_else(|| problem(MISSING.to_owned()))?;
        let value = String::from_utf8_lossy(key.as_bytes());
        let key = key_of(&value).ok_or_else(|| problem(UNQUOTED.to_owned()))?;
        key.parse().map_err(|error| problem(format!("The Idempotency-Key is invalid: {error}.")))
    }

    /// The version in the header `If-Match`, which is a payment's entity tag as its answers have it.
    ///
    /// # Errors
    /// [`ProblemKind::PreconditionRequired`] if it is missing, [`ProblemKind::InvalidPrecondition`]
    /// if it is something else, such as `*`, which would change a version that its sender has not
    /// seen.
    pub fn if_match(&self) -> Result<u32, Problem> {
        const NAME: &str = "If-Match";
        let Some(given) = self.event.headers.get(IF_MATCH) else {
            let detail = "The If-Match header is missing; read the payment, and send its ETag, such as \"1\".";
            return Err(Problem::new(ProblemKind::PreconditionRequired, detail).at(NAME));
        };
        let quoted = given.to_str().ok().and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
        let version = quoted.and_then(|text| text.parse().ok().filter(|version: &u32| version.to_string() == text));
        version.filter(|version| *version <= MAX_IF_MATCH).ok_or_else(|| {
            let detail = "The If-Match header is not a payment's ETag; read the payment, and send its ETag with its quotes, such as \
                          \"1\". It is one version: neither *, nor a list, nor W/.";
            Problem::new(ProblemKind::InvalidPrecondition, detail).at(NAME)
        })
    }

    /// The query parameters; all of them must be among `known`.
    ///
    /// The parameters come from the raw query, which API Gateway passes on as it received it. In its own map of
    /// parameters, commas join repeated ones, so a value with a comma looks like two.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidParameter`] if one is unknown.
    pub fn query(&self, known: &'static [&'static str]) -> Result<Query<'e>, Problem> {
        let raw = self.event.raw_query_string.as_deref().unwrap_or_default();
        let pairs: Vec<_> = form_urlencoded::parse(raw.as_bytes()).collect();
        match pairs.iter().map(|(name, _)| name.as_ref()).filter(|name| !known.contains(name)).min() {
            Some(name) => {
                let known = match known {
                    [] => "this route has no query parameters".to_owned(),
                    known => format!("the query parameters of this route are {}", known.join(", ")),
                };
                let detail = format!("The parameter \"{}\" is unknown; {known}.", echoed(name));
                Err(Problem::new(ProblemKind::InvalidParameter, detail).at(name))
            }
            None => Ok(Query { pairs }),
        }
    }

    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        self.event.body.as_deref().is_some_and(|body| !body.is_empty())
    }

    /// The body, at most `limit` bytes, decoded if API Gateway encoded it.
    ///
    /// # Errors
    /// [`ProblemKind::UnsupportedMediaType`] or [`ProblemKind::BodyTooLarge`]. A missing body is
    /// not an error here: it is empty.
    pub fn json_body(&self, limit: usize) -> Result<Cow<'e, [u8]>, Problem> {
        if !self.has_body() {
            return Ok(Cow::Borrowed(&[]));
        }
        self.require_json()?;
        self.body(limit)
    }

    /// The fields of a body of at most `limit` bytes: a form as a page sends it, or an object of texts.
    ///
    /// # Errors
    /// [`ProblemKind::UnsupportedMediaType`], [`ProblemKind::BodyTooLarge`], or the problems of a JSON body.
    pub fn form(&self, limit: usize) -> Result<Form, Problem> {
        if self.media_type().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Ok(Form::from_page(&self.body(limit)?));
        }
        if self.has_body() && !self.media_type().eq_ignore_ascii_case("application/json") {
            let detail = "The body is not declared as a form; send it as Content-Type: application/x-www-form-urlencoded, \
                          or as an object of texts, as application/json.";
            return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
        }
        Form::from_json(&self.json_body(limit)?)
    }

    /// The body, decoded if API Gateway encoded it.
    fn body(&self, limit: usize) -> Result<Cow<'e, [u8]>, Problem> {
        self.require_no_encoding()?;
        let body = self.event.body.as_deref().unwrap_or_default();
        let body = if self.event.is_base64_encoded {
            Cow::Owned(STANDARD.decode(body).map_err(Problem::internal)?)
        } else {
            Cow::Borrowed(body.as_bytes())
        };
        match body.len().checked_sub(limit) {
            Some(excess) if excess > 0 => {
                let bytes = body.len();
                let detail = format!("The body has {bytes} bytes, {excess} more than this route allows; send fewer.");
                Err(Problem::new(ProblemKind::BodyTooLarge, detail).excess(excess))
            }
            _ => Ok(body),
        }
    }

    /// The type of the body, without parameters.
    fn media_type(&self) -> &'e str {
        let given = self.event.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        given.split(';').next().unwrap_or_default().trim()
    }

    fn require_json(&self) -> Result<(), Problem> {
        if self.media_type().eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        let detail = "The body is not declared as JSON; send it as Content-Type: application/json.";
        Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
    }

    /// Rejects a compressed body. `identity` means that the body is not compressed.
    fn require_no_encoding(&self) -> Result<(), Problem> {
        let Some(given) = self.event.headers.get(CONTENT_ENCODING) else { return Ok(()) };
        if given.to_str().is_ok_and(|given| given.trim().is_empty() || given.trim().eq_ignore_ascii_case("identity")) {
            return Ok(());
        }
        let detail = "The body is encoded; send it as it is, without Content-Encoding.";
        Err(Problem::new(ProblemKind::UnsupportedMediaType, detail).at(ENCODING))
    }
}

/// The size of a page: 1 to 1,000 payments or events, at most the megabyte that DynamoDB reads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u16);

impl PageLimit {
    const MAX: u16 = 1_000;

    /// The default size.
    pub const DEFAULT: Self = Self(100);

    /// The largest size.
    pub const MOST: Self = Self(Self::MAX);

    /// The number of payments.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for PageLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let limit = whole_number(text).filter(|limit| (1..=Self::MAX).contains(limit));
        limit.map(Self).ok_or_else(|| format!("a limit is a whole number from 1 to {}", Self::MAX))
    }
}

/// Parses a number as JSON writes it: without a sign and without leading zeros.
pub fn whole_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number: &u16| number.to_string() == text)
}

/// The default of the last date of counts, in days after the first.
const DEFAULT_DAYS: u32 = 90;

/// The first and last date of counts: `from`, by default today, and `to`, at most `max_days` after it.
///
/// # Errors
/// [`ProblemKind::InvalidParameter`] if the range is reversed or too wide.
pub fn date_range(
    from: Option<BusinessDate>,
    to: Option<BusinessDate>,
    today: BusinessDate,
    max_days: i64,
) -> Result<(BusinessDate, BusinessDate), Problem> {
    let to = to.unwrap_or_else(|| from.unwrap_or(today).plus_days(DEFAULT_DAYS));
    let (from, to) = date_order(from, to, today)?;
    if to.days_since(from) > max_days {
        return Err(invalid_parameter("to", &format!("{to} is more than {max_days} days after {from}")));
    }
    Ok((from, to))
}

/// The first and last date of a list without a widest range: `from`, by default today, and `to`.
///
/// # Errors
/// [`ProblemKind::InvalidParameter`] if the range is reversed.
pub fn date_order(
    from: Option<BusinessDate>,
    to: BusinessDate,
    today: BusinessDate,
) -> Result<(BusinessDate, BusinessDate), Problem> {
    let is_from_today = from.is_none();
    let from = from.unwrap_or(today);
    if from > to && is_from_today {
        return Err(invalid_parameter(
            "to",
            &format!("{to} is before today, {from}, where a list without \"from\" begins"),
        ));
    }
    if from > to {
        return Err(invalid_parameter("from", &format!("{from} is after {to}")));
    }
    Ok((from, to))
}
