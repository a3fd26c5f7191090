//! The bank that the load goes to: in this process, with the stream functions beside it; a `local`
//! started for the purpose; or whatever answers at a URL.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chrono::TimeDelta;
use payments_boot::{Clock, connector};
use payments_local::background::Background;
use payments_local::client::Client;
use payments_local::functions::reports_in;
use payments_local::interceptor::client_over;
use payments_local::invocation::context;
use payments_local::{EngineChoice, Function, Functions, Options, Recorder, Stack, System, TRANSACTION_SERVICE};
use payments_model::{BusinessDate, BusinessZone};
use serde_json::json;
use tempfile::TempDir;

/// How often due payments are swept in this process.
const SWEEP_PERIOD: TimeDelta = TimeDelta::seconds(10);

/// How long a recount may take: as long as Lambda lets it.
const RECOUNT_TIMEOUT: TimeDelta = TimeDelta::minutes(15);

/// Where the bank of this process keeps its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The folder to keep data in; without one, data is not kept.
    pub data: Option<PathBuf>,
    /// Another engine to use instead of the embedded one.
    pub endpoint: Option<String>,
}

/// A bank, open.
#[derive(Debug)]
pub struct Bank {
    pub(crate) client: Client,
    /// The wire under the functions that the client asks, if what they spend is counted.
    pub(crate) wire: Option<Recorder>,
    /// The bank's clock, as far as this process knows it.
    pub(crate) clock: Clock,
    /// Whether nothing was put in before.
    pub(crate) is_new: bool,
    what: &'static str,
    works: Works,
}

#[derive(Debug)]
enum Works {
    Here { functions: Box<Functions>, background: Background, stack: Box<Stack>, _reports: TempDir },
    Local(Box<System>, TempDir),
    Elsewhere,
}

impl Bank {
    /// The functions in this process, over an embedded engine. With a wire, it is between them and the
    /// engine, and counts what requests spend.
    ///
    /// # Errors
    /// Where the engine does not start; the message says what to do.
    pub async fn in_process(place: &Place, zone: BusinessZone, wire: Option<Recorder>) -> Result<Self> {
        let engine = match place {
            Place { endpoint: None, data: None } => EngineChoice::Scratch,
            Place { endpoint, data } => EngineChoice::of(endpoint.clone(), data.clone()),
        };
        let (folder, is_new) = (tempfile::tempdir()?, engine == EngineChoice::Scratch);
        let stack = Stack::on(engine)
            .environment(|environment| environment.time_zone = zone.to_string())
            .reports(reports_in(folder.path())?)
            .start()
            .await?;
        let (client, clock) = (stack.environment.client(), stack.clock.clone());
        let functions = stack.functions(&client)?;
        let triggers = stack.triggers(functions.clone(), TRANSACTION_SERVICE).await?;
        let background = Background::start(triggers.with_period("sweep", SWEEP_PERIOD), clock.clone());
        let asked = match &wire {
            Some(wire) => stack.functions(&client_over(&client, wire.clone()))?,
            None => functions.clone(),
        };
        Ok(Self {
            client: Client::of_functions(asked, clock.clone()),
            wire,
            clock,
            is_new,
            what: "in process",
            works: Works::Here { functions: Box::new(functions), background, stack: Box::new(stack), _reports: folder },
        })
    }

    /// All that `cargo local` starts, on free ports, asked over HTTP.
    ///
    /// # Errors
    /// Where it does not start; the message says what to do.
    pub async fn local(place: &Place, zone: BusinessZone) -> Result<Self> {
        let (clock, folder) = (Clock::system(), tempfile::tempdir()?);
        let options = Options {
            api_port: 0,
            dynamodb_port: 0,
            data: place.data.clone(),
            reports: folder.path().to_owned(),
            time_zone: zone,
            endpoint: place.endpoint.clone(),
            require_tokens: false,
        };
        let system = System::start(&options, &clock).await?;
        Ok(Self {
            client: Client::of_url(&system.api_url(), None, connector())?,
            wire: None,
            clock,
            is_new: *place == Place::default(),
            what: "local",
            works: Works::Local(Box::new(system), folder),
        })
    }

    /// The bank at a URL, perhaps with an access token.
    ///
    /// # Errors
    /// Where it is no URL.
    pub fn at(url: &str, token: Option<&str>) -> Result<Self> {
        let client = Client::of_url(url, token, connector())?;
        Ok(Self { client, wire: None, clock: Clock::system(), is_new: false, what: "url", works: Works::Elsewhere })
    }

    /// What kind of bank it is, in a word or two.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Where the bank answers, if it does over HTTP on this machine.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        match &self.works {
            Works::Local(system, _) => Some(system.api_url()),
            _ => None,
        }
    }

    /// Whether the counters of a date say what the `recount` function finds; nothing where only HTTP
    /// leads to the bank.
    ///
    /// # Errors
    /// Where the function fails or does not come to an end.
    pub async fn counters_are_exact(&self, date: BusinessDate) -> Result<Option<bool>> {
        let Works::Here { functions, .. } = &self.works else { return Ok(None) };
        let context = context(self.clock.instant() + RECOUNT_TIMEOUT);
        let date = date.to_string();
        let input = json!({ "action": "recount", "from": date, "to": date });
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        let report =
            Box::pin(functions.scheduled(Function::Recount, input, context)).await.map_err(anyhow::Error::msg)?;
        match (report["exact"].as_u64(), report["drifted"].as_u64()) {
            (Some(1), _) => Ok(Some(true)),
            (_, Some(1)) => Ok(Some(false)),
            _ => bail!("the recount of {date} came to no result: {report}"),
        }
    }

    /// Closes it, as far as it was opened here, after what is under way.
    ///
    /// # Errors
    /// Where a part had failed before.
    pub async fn close(self) -> Result<()> {
        drop(self.client);
        match self.works {
            Works::Elsewhere => Ok(()),
            Works::Local(system, _folder) => system.stop().await,
            Works::Here { functions, background, stack, _reports } => {
                drop(functions);
                background.stop().await?;
                stack.stop().await
            }
        }
    }
}
