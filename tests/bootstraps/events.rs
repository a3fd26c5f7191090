//! Every event, delivered to its bootstrap: the answer must equal the snapshot of the handler in process.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use chrono::{DateTime, TimeDelta};
use libtest_mimic::Trial;
use payments_tests::events::files::{answer, function_of};
use payments_tests::events::requests::{NOW, http_events, request_text};
use payments_tests::events::triggers;
use payments_tests::events::triggers::{
    deadline_of, delivered, found_by, in_order_of_ids, now_of, snapshot_text, trigger_events,
};
use payments_tests::{Reply, World, given};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::deployed::{Deployed, Places};
use crate::sandbox::{Sandbox, Times};
use crate::services::Services;
use crate::tools::Tools;
use crate::trial::trial;

/// The beginning of the runtime's message about an event that it cannot parse for the function.
const NOT_READ: &str = "failed to deserialize the incoming data into the function's payload type: ";

/// The type of that failure.
const NOT_READ_TYPE: &str = "&lambda_runtime::deserializer::DeserializeError";

/// The emulator's status when the bootstrap has ended: it did not find the emulator, or it cannot start.
const NO_FUNCTION: u16 = 502;

/// The timeout of API Gateway.
const HTTP_TIME: TimeDelta = TimeDelta::seconds(30);

/// One trial for each event.
pub(crate) fn trials(tools: &Arc<Tools>) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for name in http_events()? {
        let tools = Arc::clone(tools);
        trials.push(trial(name.clone(), move || async move { answers_http(&tools, &name).await }));
    }
    for name in trigger_events()? {
        let tools = Arc::clone(tools);
        trials.push(trial(name.clone(), move || async move { does_its_work(&tools, &name).await }));
    }
    Ok(trials)
}

/// An HTTP event is answered as in process.
async fn answers_http(tools: &Tools, name: &str) -> Result<()> {
    let arranged = Arranged::for_event(name).await?;
    let delivery = arranged.deliver(tools).await?;
    let Value::Object(fields) = &delivery.answer else { anyhow::bail!("no answer of HTTP: {}", delivery.answer) };
    for (field, empty) in [("isBase64Encoded", json!(false)), ("cookies", json!([])), ("multiValueHeaders", json!({}))]
    {
        let found = fields.get(field).unwrap_or(&Value::Null);
        ensure!(found.is_null() || *found == empty, "{field} is {found}, which is not in the snapshot");
    }
    let response: ApiGatewayV2httpResponse = serde_json::from_value(delivery.answer)?;
    assert_as_in_snapshot(name, &Reply::from_response(response)?.to_string())?;
    Ok(())
}

/// A trigger's event leads to the same as in process.
async fn does_its_work(tools: &Tools, name: &str) -> Result<()> {
    let arranged = Arranged::for_event(name).await?;
    let delivery = arranged.deliver(tools).await?;
    let answer = answered(&delivery.answer)?;
    for file in answer["published"].as_array().into_iter().flatten() {
        let path = arranged.reports.path().join(file.as_str().context("a file without a name")?);
        ensure!(path.is_file(), "{} is not there", path.display());
    }
    let happened = snapshot_text(&arranged.world, &in_order_of_ids(answer), &delivery.measured).await?;
    assert_as_in_snapshot(name, &happened)?;
    Ok(())
}

/// A world as an event finds it, and all that its function needs.
pub(crate) struct Arranged {
    pub(crate) world: World,
    pub(crate) function: Deployed,
    pub(crate) event: String,
    pub(crate) times: Times,
    /// Variables that differ from the template's.
    pub(crate) other: BTreeMap<String, String>,
    reports: TempDir,
    /// Until the test ends.
    _services: Services,
}

/// The result of an event.
struct Delivery {
    answer: Value,
    /// The lines of metrics.
    measured: Vec<String>,
}

impl Arranged {
    /// Prepares the world.
    pub(crate) async fn for_event(name: &str) -> Result<Self> {
        let instant = |text: &str| DateTime::parse_from_rfc3339(text).map(|at| at.to_utc());
        let (world, times, event) = if http_events()?.contains(name) {
            let now = instant(NOW)?;
            (given::world_of(name).await?, Times { now, deadline: now + HTTP_TIME }, request_text(name)?)
        } else {
            let times = Times { now: instant(now_of(name))?, deadline: deadline_of(name)? };
            let world = triggers::world_of(found_by(name)).await?;
            let event = delivered(&world, name)?;
            (world, times, event)
        };
        let services = Services::start(world.outside.operations.queues.clone(), times.now).await?;
        let function = Deployed::for_package(function_of(name))?;
        let other = BTreeMap::from(services.variables());
        Ok(Self { world, function, event, times, other, reports: tempfile::tempdir()?, _services: services })
    }

    /// Starts a sandbox with this program and the function's variables.
    pub(crate) async fn sandbox(&self, tools: &Tools, program: &Path) -> Result<Sandbox> {
        let places = Places { reports: text(self.reports.path())? };
        let mut variables = self.function.variables(&self.world.environment, places)?;
        variables.extend(self.other.clone());
        Sandbox::start(tools, program, self.times, &variables).await
    }

    /// Delivers the event to the function's bootstrap in a new sandbox. Beside other work the emulator itself ended now
    /// and then, or did not listen to the bootstrap yet. That says nothing of the bootstrap, so the event is delivered once
    /// more.
    async fn deliver(&self, tools: &Tools) -> Result<Delivery> {
        let delivered = self.deliver_once(tools).await;
        let lost = delivered.as_ref().err().and_then(|error| error.downcast_ref::<std::io::Error>());
        match lost.map(std::io::Error::kind) {
            Some(ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) => self.deliver_once(tools).await,
            _ => delivered,
        }
    }

    async fn deliver_once(&self, tools: &Tools) -> Result<Delivery> {
        let bootstrap = tools.bootstrap(&self.function.id, &self.function.package)?;
        let sandbox = self.sandbox(tools, &bootstrap).await?;
        let answer = sandbox.invoke(&self.event).await?;
        let said = sandbox.said()?;
        if answer.status == NO_FUNCTION {
            return Err(std::io::Error::new(ErrorKind::ConnectionRefused, format!("no function: {said}")).into());
        }
        ensure!(answer.status == 200, "the emulator answers {}: {said}", answer.status);
        let answer = serde_json::from_str(&answer.body).with_context(|| format!("not JSON: {}", answer.body))?;
        Ok(Delivery { answer, measured: metrics(&said)? })
    }
}

/// Returns the metrics among the lines of a bootstrap. Every line must be a JSON object.
fn metrics(said: &str) -> Result<Vec<String>> {
    let mut metrics = Vec::new();
    for line in said.lines() {
        let object: Value = serde_json::from_str(line).with_context(|| format!("a line that is not JSON: {line}"))?;
        ensure!(object.is_object(), "a line that is not a JSON object: {line}");
        if !object["_aws"].is_null() {
            metrics.push(line.to_owned());
        }
    }
    Ok(metrics)
}

/// The rule of errors. A handler in process returns an error, or is not called. Lambda's runtime makes an answer of
/// either, with a type. It adds words of its own to a parse error, and names the place twice: `[action] action:
/// unknown variant …`.
fn answered(answer: &Value) -> Result<Value> {
    let Some(kind) = answer["errorType"].as_str() else { return Ok(answer.clone()) };
    let message = answer["errorMessage"].as_str().context("an error without a message")?;
    if kind == NOT_READ_TYPE {
        let reason = message.strip_prefix(NOT_READ).with_context(|| format!("the runtime says: {message}"))?;
        let place = reason.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let reason = place.and_then(|(place, rest)| rest.strip_prefix(place)?.strip_prefix(": ")).unwrap_or(reason);
        return Ok(json!({ "notParsed": reason.trim_end() }));
    }
    Ok(json!({ "error": message }))
}

fn assert_as_in_snapshot(name: &str, found: &str) -> Result<()> {
    let (wanted, found) = (answer(name)?, found.trim_end());
    ensure!(wanted == found, "in process:\n{wanted}\n\nthe bootstrap:\n{found}\n");
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("not a text: {}", path.display()))
}
