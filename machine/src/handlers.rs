//! The functions that a machine invokes: values that its caller gives it.

pub mod invocation;
mod started;

use std::fmt::Debug;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use futures::FutureExt as _;
use futures::future::ready;
use lambda_runtime::Context;
use payments_http::HttpFunction;
use serde_json::Value;

use invocation::{LocalRun, Run};

pub use started::Started;

/// The handlers of one or more functions. The invocation of any other fails with an error that names the function.
pub trait Handlers: Debug + Send + Sync {
    /// Invokes a scheduled function with a schedule's input, and returns its outcome.
    fn scheduled(
        &self,
        function: &'static str,
        _input: Value,
        _context: Context,
    ) -> LocalRun<'_, Result<Value, String>> {
        ready(Err(format!("no schedule invokes {function}"))).boxed_local()
    }

    /// Invokes a function with the event of a stream or a queue, and returns its response.
    fn deliver(&self, function: &'static str, _event: Value) -> Run<'_, Result<Value, String>> {
        ready(Err(format!("no stream and no queue invokes {function}"))).boxed()
    }

    /// Invokes an HTTP function with an API Gateway event.
    fn invoke(&self, function: HttpFunction, _event: ApiGatewayV2httpRequest) -> Run<'_, ApiGatewayV2httpResponse> {
        let mut response = ApiGatewayV2httpResponse::default();
        response.status_code = 404;
        response.body = Some(Body::Text(format!("no route invokes {}", function.name())));
        ready(response).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl Handlers for Nothing {}

    #[test]
    fn a_function_without_a_handler_is_named() {
        let scheduled = Nothing.scheduled("report", json!({}), Context::default()).now_or_never().unwrap();
        assert_eq!(scheduled, Err("no schedule invokes report".to_owned()));
        let delivered = Nothing.deliver("settle", json!({})).now_or_never().unwrap();
        assert_eq!(delivered, Err("no stream and no queue invokes settle".to_owned()));
        let invoked = Nothing.invoke(HttpFunction::Ingest, ApiGatewayV2httpRequest::default()).now_or_never().unwrap();
        assert_eq!(invoked.body, Some(Body::Text("no route invokes ingest".to_owned())));
    }
}
