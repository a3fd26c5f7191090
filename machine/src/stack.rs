//! The resources of `template.yaml` on one machine: the only place that puts them together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use payments_boot::{Clock, Metrics, WebhookMaster};
use payments_delivery::DynamoDbStream;
use payments_store::Store;

use crate::engine::{Direct, Engine};
use crate::environment::{Environment, webhook_master};
use crate::handlers::Started;
use crate::layers::client_over;
use crate::layers::record::Recorder;
use crate::links::{ReportLinks, reports_in};
use crate::queues::Queues;
use crate::template::Template;

/// The engine that holds the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// An embedded engine in memory.
    #[default]
    Memory,
    /// An embedded engine in memory that listens on no port: only this process reaches the engine, through
    /// [`Stack::client`]. The engine reads the time from the stack's clock.
    Unserved,
    /// An embedded engine that keeps its data in this folder.
    Folder(PathBuf),
    /// An embedded engine in a temporary folder, for more data than memory has room for.
    Scratch,
    /// Another engine, at this URL.
    Endpoint(String),
}

impl EngineChoice {
    /// Chooses the engine at the URL, if a URL is given. Otherwise chooses an embedded engine, with its data in the
    /// folder if a folder is given, and else in memory.
    pub fn new(endpoint: Option<String>, folder: Option<PathBuf>) -> Self {
        endpoint.map(Self::Endpoint).or(folder.map(Self::Folder)).unwrap_or_default()
    }
}

/// Collects the settings of a [`Stack`].
#[derive(Debug)]
pub struct StackBuilder {
    engine: EngineChoice,
    port: u16,
    environment: Environment,
    clock: Clock,
    receivers_clock: Option<Clock>,
    reports: Option<PathBuf>,
}

/// The tables, the queues and the report store, with the functions' settings that name them.
#[derive(Debug)]
pub struct Stack {
    engine: Option<Engine>,
    /// The environment of the functions.
    pub environment: Environment,
    /// The clock of the machine's functions.
    pub clock: Clock,
    /// The metrics that the functions emit.
    pub metrics: Metrics,
    /// The queues, which are empty at first.
    pub queues: Queues,
    /// The report store.
    pub reports: Arc<dyn ObjectStore>,
    /// The master secret of webhooks.
    pub webhook_master: WebhookMaster,
    /// The clock by which receivers of webhooks check signatures, if it is not the stack's clock.
    pub receivers_clock: Option<Clock>,
    /// The functions that operators started.
    pub started: Started,
    /// The links to the report store.
    pub links: ReportLinks,
}

impl StackBuilder {
    /// Changes the environment of the functions. Its endpoint is overwritten by the engine's URL.
    pub fn environment(mut self, change: impl FnOnce(&mut Environment)) -> Self {
        change(&mut self.environment);
        self
    }

    /// Sets the port of an embedded engine. The default is any free port.
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Sets the stack's clock. The default is the system's clock.
    pub fn clock(self, clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..self }
    }

    /// Sets the clock by which receivers of webhooks check signatures. The default is the stack's clock.
    pub fn receivers_clock(self, clock: Option<Clock>) -> Self {
        Self { receivers_clock: clock, ..self }
    }

    /// Sets the folder of the reports. By default, reports are kept in memory.
    pub fn reports(self, folder: &Path) -> Self {
        Self { reports: Some(folder.to_owned()), ..self }
    }

    /// Starts the engine, creates the missing tables, and creates the queues and the report store.
    pub async fn start(self) -> Result<Stack> {
        let Self { engine, port, mut environment, clock, receivers_clock, reports } = self;
        environment.check()?;
        let engine = match engine {
            EngineChoice::Unserved => Some(Engine::unserved(&clock)?),
            EngineChoice::Memory => Some(Engine::start(port, None).await?),
            EngineChoice::Folder(folder) => Some(Engine::start(port, Some(&folder)).await?),
            EngineChoice::Scratch => Some(Engine::scratch().await?),
            EngineChoice::Endpoint(url) => {
                environment.endpoint = url;
                None
            }
        };
        if let Some(engine) = &engine {
            environment.endpoint = engine.url();
        }
        let client = client_of(engine.as_ref(), &environment);
        payments_store::schema::create_tables(&client, &environment.tables).await.with_context(|| {
            let url = &environment.endpoint;
            match engine {
                Some(_) => format!("the embedded engine at {url} cannot create the tables"),
                None => {
                    format!("the engine at {url}, from DYNAMODB_ENDPOINT, does not create the tables; is it running?")
                }
            }
        })?;
        // The reports may be in a folder below the engine's data. The engine starts first, so that an error of the data
        // folder names --data.
        let reports = reports.map_or_else(|| Ok(Arc::new(InMemory::new()) as _), |folder| reports_in(&folder))?;
        let (metrics, queues) = (Metrics::captured(), Queues::from_template(Template::ours()?)?);
        let links = ReportLinks::over(Arc::clone(&reports));
        Ok(Stack {
            engine,
            environment,
            clock,
            metrics,
            queues,
            reports,
            webhook_master: webhook_master()?,
            receivers_clock,
            started: Started::default(),
            links,
        })
    }
}

fn client_of(engine: Option<&Engine>, environment: &Environment) -> Client {
    let client = environment.client();
    engine.map_or_else(|| client.clone(), |engine| client_over(&client, engine.direct().clone()))
}

/// The age of stream records that a kept bank still delivers. DynamoDB keeps them for a day, but one machine may be off for longer. The
/// checkpoint, which knows what was counted, is kept for a week.
const STREAM_KEPT_FOR: TimeDelta = TimeDelta::days(6);

impl Stack {
    /// Begins a stack on the chosen engine. All other settings have defaults.
    pub fn on(engine: EngineChoice) -> StackBuilder {
        let environment = Environment::at(String::new());
        StackBuilder { engine, port: 0, environment, clock: Clock::system(), receivers_clock: None, reports: None }
    }

    /// Returns the store of the stack's tables, over the given client.
    pub fn store(&self, client: Client) -> Store {
        Store::new(client, self.environment.tables.clone())
    }

    /// Returns a client that calls an embedded engine without a socket, and another engine over HTTP.
    pub fn client(&self) -> Client {
        client_of(self.engine.as_ref(), &self.environment)
    }

    /// Returns the embedded engine's connection without a socket; `None` for another engine.
    pub fn direct(&self) -> Option<&Direct> {
        self.engine.as_ref().map(Engine::direct)
    }

    /// Returns a recorder of calls, which reaches the engine in the same way as [`client`](Self::client).
    pub fn recorder(&self) -> Recorder {
        self.engine.as_ref().map_or_else(Recorder::new, |engine| Recorder::over(engine.direct().clone()))
    }

    /// Returns the stream of the hot table, which is read in the same way as by [`client`](Self::client). The times of
    /// its records are those of the stack's clock.
    pub async fn stream(&self) -> Result<DynamoDbStream> {
        let stream = match &self.engine {
            Some(engine) => self.environment.stream_over(engine.direct().clone()).await?,
            None => self.environment.stream().await?,
        };
        if self.engine.as_ref().is_some_and(Engine::is_on_time_of_stack) {
            return Ok(stream);
        }
        let (clock, machine) = (self.clock.clone(), Clock::system());
        let now = machine.clone();
        let stream = stream.in_time_of(move |made_at| made_at + (clock.instant() - machine.instant()));
        Ok(stream.trimmed(move |made_at| now.instant() - made_at > STREAM_KEPT_FOR))
    }

    /// Returns the stream of the log's table, which is read in the same way as by [`client`](Self::client).
    pub async fn log_stream(&self) -> Result<DynamoDbStream> {
        let table = &self.environment.tables.log;
        match &self.engine {
            Some(engine) => self.environment.stream_of(table, engine.direct().clone()).await,
            None => self.environment.stream_of(table, aws_smithy_http_client::Builder::new().build_http()).await,
        }
    }

    /// Stops an embedded engine once the calls in progress are answered.
    pub async fn stop(self) -> Result<()> {
        match self.engine {
            Some(engine) => engine.stop().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
