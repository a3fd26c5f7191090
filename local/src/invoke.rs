//! Invokes a function by hand, as Lambda's API does: docs/commands.sh uses it to train operators on one machine.
//!
//! An invocation needs no token, even if the bank's API does: on AWS, too, invocations are another
//! API with other rights.

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, HeaderValue, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::TimeDelta;
use payments_bank::Functions;
use payments_boot::Clock;
use payments_machine::invocation::context;
use payments_machine::{Handlers as _, Template};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// The longest time of a run. On AWS each function has its own timeout, of up to 15 minutes.
const TIMEOUT: TimeDelta = TimeDelta::minutes(5);

/// The path at which Lambda takes invocations, outside of the bank's API.
const PATH: (&str, &str) = ("/2015-03-31/functions/", "/invocations");

/// Lambda's header of an answer that is an error.
const ERROR: (&str, &str) = ("x-amz-function-error", "Unhandled");

/// Returns the name of the function that a request invokes. A browser's page invokes none: its requests name their origin.
pub(crate) fn invoked(request: &Parts) -> Option<&str> {
    let name = request.uri.path().strip_prefix(PATH.0)?.strip_suffix(PATH.1)?;
    (request.method == Method::POST && !request.headers.contains_key(ORIGIN)).then_some(name)
}

/// Invokes a function with a request's body, and answers as Lambda does.
pub(crate) async fn answer(functions: &Functions, clock: &Clock, name: &str, body: &Bytes) -> Response {
    // The functions that a schedule or an operator invokes, by their names or by their logical ids
    // in the template, as docs/commands.sh has them.
    let deployed = Template::ours().map_or(&[] as &[_], |template| &template.functions);
    let invoked = deployed.iter().filter(|function| !function.schedules.is_empty());
    let Some(function) = invoked.clone().find(|function| [&function.package, &function.id].contains(&&name.to_owned()))
    else {
        let names: Vec<&str> = invoked.map(|function| function.package.as_str()).collect();
        let message = format!("No such function; there are {}", names.join(", "));
        return with_status(StatusCode::NOT_FOUND, &json!({ "Type": "User", "Message": message }));
    };
    let Ok(input) = serde_json::from_slice::<Value>(body) else {
        return with_status(StatusCode::BAD_REQUEST, &json!({ "Type": "User", "Message": "The payload is not JSON" }));
    };
    let functions = functions.clone();
    let context = context(clock.instant() + TIMEOUT);
    let runtime = Handle::current();
    // On a thread of its own, as in Lambda.
    let run = spawn_blocking(move || runtime.block_on(functions.scheduled(&function.package, input, context)));
    match run.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(outcome) => with_status(StatusCode::OK, &outcome),
        Err(message) => {
            let mut answer = with_status(StatusCode::OK, &json!({ "errorType": "Error", "errorMessage": message }));
            answer.headers_mut().insert(ERROR.0, HeaderValue::from_static(ERROR.1));
            answer
        }
    }
}

fn with_status(status: StatusCode, json: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}
