//! The target of a load: the functions of this process, a `cargo local` in this process, or the API at a URL.

use std::sync::Arc;

use anyhow::{Result, bail};
use chrono::TimeDelta;
use payments_bank::Functions;
use payments_boot::Clock;
use payments_local::background::Background;
use payments_local::business_days::Dates;
use payments_local::{Options, System, TRANSACTION_SERVICE};
use payments_machine::client::Client;
use payments_machine::invocation::context;
use payments_machine::layers::client_over;
use payments_machine::triggers::Triggers;
use payments_machine::{EngineChoice, Handlers as _, Recorder, Stack};
use payments_model::{BusinessDate, BusinessZone};
use scheduled_payments::Http;
use serde_json::json;
use tempfile::TempDir;

/// The time between two sweeps in this process.
const SWEEP_PERIOD: TimeDelta = TimeDelta::seconds(10);

/// The longest that a recount may take, as on Lambda.
const RECOUNT_TIMEOUT: TimeDelta = TimeDelta::minutes(15);

/// The target of a load.
#[derive(Debug)]
pub struct Target {
    pub(crate) client: Client,
    /// Records the capacity use of the requests, if it is counted.
    pub(crate) recorder: Option<Recorder>,
    /// The target's clock, or this machine's if the target is at a URL.
    pub(crate) clock: Clock,
    /// Whether it has no payments yet.
    pub(crate) is_new: bool,
    name: &'static str,
    started: Started,
}

/// The parts that were started for the load.
#[derive(Debug)]
enum Started {
    Functions { functions: Box<Functions>, background: Background, stack: Box<Stack> },
    Local { system: Box<System>, _reports: TempDir },
    Nothing,
}

impl Target {
    /// Starts the functions in this process, over an engine. Its data is in a temporary folder unless another place is
    /// chosen. `recorder` is between the engine and the functions that answer requests.
    pub async fn in_process(engine: EngineChoice, zone: BusinessZone, recorder: Option<Recorder>) -> Result<Self> {
        let is_new = engine == EngineChoice::Memory;
        let stack = Stack::on(if is_new { EngineChoice::Scratch } else { engine })
            .environment(|environment| environment.time_zone = zone.to_string())
            .start()
            .await?;
        let (client, clock) = (stack.environment.client(), stack.clock.clone());
        let functions = Functions::on(&stack, &client)?;
        let triggers = Triggers::new(&stack, Arc::new(functions.clone()), TRANSACTION_SERVICE).await?;
        let background = Background::start(triggers.with_period("sweep", SWEEP_PERIOD), clock.clone(), None);
        let recorded = match &recorder {
            Some(recorder) => Functions::on(&stack, &client_over(&client, recorder.clone()))?,
            None => functions.clone(),
        };
        Ok(Self {
            client: Client::for_functions(Arc::new(recorded), clock.clone())?,
            recorder,
            clock,
            is_new,
            name: "in process",
            started: Started::Functions { functions: Box::new(functions), background, stack: Box::new(stack) },
        })
    }

    /// Starts all of `cargo local`, on free ports. The load goes to its HTTP API.
    pub async fn local(engine: EngineChoice, zone: BusinessZone) -> Result<Self> {
        let clock = Clock::system();
        let reports = tempfile::tempdir()?;
        let is_new = engine == EngineChoice::Memory;
        let (data, endpoint) = match engine {
            EngineChoice::Folder(folder) => (Some(folder), None),
            EngineChoice::Endpoint(url) => (None, Some(url)),
            EngineChoice::Memory | EngineChoice::Unserved | EngineChoice::Scratch => (None, None),
        };
        let options = Options {
            api_port: 0,
            dynamodb_port: 0,
            data,
            new_bank: false,
            reports: reports.path().to_owned(),
            time_zone: zone,
            dates: Dates::default(),
            paused: "none",
            max_day: None,
            endpoint,
            require_tokens: false,
            sandbox: false,
        };
        let system = System::start(&options, &clock).await?;
        let client = Client::for_url(&system.api_url(), None, Arc::new(Http::new()))?;
        let started = Started::Local { system: Box::new(system), _reports: reports };
        Ok(Self { client, recorder: None, clock, is_new, name: "local", started })
    }

    /// Returns the API at a URL as a target. `token` is an access token.
    pub fn at(url: &str, token: Option<&str>) -> Result<Self> {
        let (client, clock) = (Client::for_url(url, token, Arc::new(Http::new()))?, Clock::system());
        Ok(Self { client, recorder: None, clock, is_new: false, name: "url", started: Started::Nothing })
    }

    /// Returns the kind of target: `in process`, `local` or `url`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the URL of a target that [`local`](Self::local) started.
    pub fn url(&self) -> Option<String> {
        match &self.started {
            Started::Local { system, .. } => Some(system.api_url()),
            _ => None,
        }
    }

    /// Returns whether the counters of a date equal a recount. Only functions of this process can be asked.
    pub async fn counters_are_exact(&self, date: BusinessDate) -> Result<Option<bool>> {
        let Started::Functions { functions, .. } = &self.started else { return Ok(None) };
        let context = context(self.clock.instant() + RECOUNT_TIMEOUT);
        let input = json!({ "action": "recount", "from": date.to_string(), "to": date.to_string() });
        let recount = functions.scheduled("recount", input, context);
        // Boxed: the chain of calls is deeper than the compiler accepts in one type.
        let outcome = Box::pin(recount).await.map_err(anyhow::Error::msg)?;
        match (outcome["exact"].as_u64(), outcome["drifted"].as_u64()) {
            (Some(1), _) => Ok(Some(true)),
            (_, Some(1)) => Ok(Some(false)),
            _ => bail!("the recount of {date} did not finish: {outcome}"),
        }
    }

    /// Stops what was started, after the work in progress.
    pub async fn close(self) -> Result<()> {
        drop(self.client);
        match self.started {
            Started::Nothing => Ok(()),
            Started::Local { system, .. } => system.stop().await,
            Started::Functions { functions, background, stack } => {
                drop(functions);
                background.stop().await?;
                stack.stop().await
            }
        }
    }
}
