//! The API's clients: closed, open for creates, or open.

use anyhow::Result;
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::call::Call;
use crate::note::Note;
use crate::stack::StackNow;
use crate::stages::{fact, step};
use crate::step::{Fact, Step, Want};

/// The requests that clients may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// Only reads.
    Reads,
    /// Reads and creates.
    Creates,
    /// All: the limits of the template.
    All,
}

/// A route that writes, whether it creates, and the template's parameter of its requests a second and its burst.
type Route = (&'static str, bool, Option<&'static str>);

/// The routes that write. The console's has no parameter.
const ROUTES: [Route; 7] = [
    ("POST /accounts/{accountId}/payments", true, Some("CreatesPerSecond")),
    ("POST /payment-batches", true, Some("BatchesPerSecond")),
    ("POST /accounts/{accountId}/payment-batches", true, Some("AccountBatchesPerSecond")),
    ("POST /accounts/{accountId}/payments/{paymentId}/cancel", false, Some("CancelsPerSecond")),
    ("PUT /accounts/{accountId}/payments/{paymentId}", false, Some("AmendmentsPerSecond")),
    ("POST /console/actions/{action}", false, None),
    ("POST /console/approvals/{decision}", false, None),
];

/// The console's actions a second, and their burst.
const ACTIONS: (u64, u64) = (2, 4);

/// The step that opens or closes the API.
///
/// # Errors
/// If the stack is not this system's.
pub fn clients(note: &Note, stack: &StackNow, allowed: Allowed) -> Result<Vec<Step>> {
    let settings = settings(stack, allowed)?;
    let api = stack.resource("PaymentsApi")?;
    let call = Call::aws_with("apigatewayv2 update-stage --api-id {} --stage-name", &[api]);
    let call = call.with("$default").with("--route-settings").with(settings.to_string());
    let (what, needs) = match allowed {
        Allowed::Reads => (
            "Close the API for creates, amendments and cancels: clients get a 429, and may try again later",
            stack.paused()?,
        ),
        Allowed::Creates => ("Open the API for creates alone", has_new_tables(note, stack)),
        Allowed::All => ("Open the API for creates, amendments and cancels", has_new_tables(note, stack)),
    };
    Ok(vec![Step { needs, ..step(what, call, vec![limits(api, settings)]) }])
}

/// The API has these limits.
fn limits(api: &str, settings: Value) -> Fact {
    fact("the API's RouteSettings", read(api), "/RouteSettings", Want::Is(settings), "run this again")
}

fn read(api: &str) -> Call {
    Call::aws_with("apigatewayv2 get-stage --api-id {} --stage-name", &[api]).with("$default")
}

/// No client can create, amend or cancel.
pub(super) fn closed(stack: &StackNow) -> Result<Fact> {
    let remedy = "close the API first: `cargo restore close`".to_owned();
    Ok(Fact { remedy, ..limits(stack.resource("PaymentsApi")?, settings(stack, Allowed::Reads)?) })
}

/// The API's limits were last changed by this instant.
pub(super) fn closed_until(stack: &StackNow, until: UtcSecond) -> Result<Fact> {
    let call = read(stack.resource("PaymentsApi")?);
    let remedy = "run this again three minutes after the API was closed";
    Ok(fact("the API's LastUpdatedDate", call, "/LastUpdatedDate", Want::Until(until), remedy))
}

fn has_new_tables(note: &Note, stack: &StackNow) -> Vec<Fact> {
    note.each().map(|(kind, table)| stack.has_table(kind, &table.new)).to_vec()
}

fn settings(stack: &StackNow, allowed: Allowed) -> Result<Value> {
    let has_metrics = stack.parameter("Monitoring")? == "on";
    let mut settings = serde_json::Map::new();
    for (route, is_create, parameter) in ROUTES {
        let is_open = allowed == Allowed::All || (is_create && allowed == Allowed::Creates);
        let (rate, burst) = match parameter {
            _ if !is_open => (0, 0),
            Some(parameter) => stack.number(parameter).map(|number| (number, number))?,
            None => ACTIONS,
        };
        let limit = json!({
            "DetailedMetricsEnabled": has_metrics, "ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst
        });
        settings.insert(route.to_owned(), limit);
    }
    Ok(settings.into())
}
