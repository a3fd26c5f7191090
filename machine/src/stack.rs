//! The resources of `template.yaml` on one machine. Only here are they put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
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
    /// An embedded engine in memory that nothing serves: only clients of this process reach it, through
    /// [`Stack::client`]. It reads the time from the stack's clock.
    Unserved,
    /// An embedded engine that keeps its data in this folder.
    Folder(PathBuf),
    /// An embedded engine in a temporary folder, for more data than memory has room for.
    Scratch,
    /// Another engine, at this URL.
    Endpoint(String),
}

impl EngineChoice {
    /// Returns the engine at the URL if there is one, otherwise an embedded engine, in the folder if there is one.
    pub fn of(endpoint: Option<String>, folder: Option<PathBuf>) -> Self {
        endpoint.map(Self::Endpoint).or(folder.map(Self::Folder)).unwrap_or_default()
    }
}

/// The choices of a [`Stack`].
#[derive(Debug)]
pub struct StackBuilder {
    engine: EngineChoice,
    port: u16,
    environment: Environment,
    clock: Clock,
    receivers_clock: Option<Clock>,
    reports: Option<PathBuf>,
}

/// The tables, the queues and the report store, and the functions' settings about them.
#[derive(Debug)]
pub struct Stack {
    engine: Option<Engine>,
    /// The environment of the functions.
    pub environment: Environment,
    /// The clock.
    pub clock: Clock,
    /// The metrics that the functions emit.
    pub metrics: Metrics,
    /// The queues, which are empty at first.
    pub queues: Queues,
    /// The report store.
    pub reports: Arc<dyn ObjectStore>,
    /// The master secret of webhooks.
    pub webhook_master: WebhookMaster,
    /// The clock that receivers of webhooks go by, if they have one of their own.
    pub receivers_clock: Option<Clock>,
    /// The functions that operators started.
    pub started: Started,
    /// The links to the report store.
    pub links: ReportLinks,
}

impl StackBuilder {
    /// Changes the environment of the functions. Its endpoint is that of the engine.
    pub fn environment(mut self, change: impl FnOnce(&mut Environment)) -> Self {
        change(&mut self.environment);
        self
    }

    /// Sets the port of an embedded engine; any free one is the default.
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Sets the clock; the machine's is the default.
    pub fn clock(self, clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..self }
    }

    /// Sets the clock that receivers of webhooks go by; the clock of the stack is the default.
    pub fn receivers_clock(self, clock: Option<Clock>) -> Self {
        Self { receivers_clock: clock, ..self }
    }

    /// Sets the folder of the reports; without one they are in memory.
    pub fn reports(self, folder: &Path) -> Self {
        Self { reports: Some(folder.to_owned()), ..self }
    }

    /// Starts the engine and creates the tables that are missing.
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
        // After the engine, since the reports may be in the folder of its data: the error then names --data.
        let reports = reports.map_or_else(|| Ok(Arc::new(InMemory::new()) as _), |folder| reports_in(&folder))?;
        let (metrics, queues) = (Metrics::captured(), Queues::of(Template::ours()?)?);
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

impl Stack {
    /// Chooses the engine; the rest has defaults.
    pub fn on(engine: EngineChoice) -> StackBuilder {
        let environment = Environment::at(String::new());
        StackBuilder { engine, port: 0, environment, clock: Clock::system(), receivers_clock: None, reports: None }
    }

    /// Returns the tables over this client.
    pub fn store(&self, client: Client) -> Store {
        Store::new(client, self.environment.tables.clone())
    }

    /// Returns a client that calls an embedded engine without a socket, and another engine over HTTP.
    pub fn client(&self) -> Client {
        client_of(self.engine.as_ref(), &self.environment)
    }

    /// Returns the way to an embedded engine without a socket.
    pub fn direct(&self) -> Option<&Direct> {
        self.engine.as_ref().map(Engine::direct)
    }

    /// Returns a recorder over the way that [`client`](Self::client) takes.
    pub fn recorder(&self) -> Recorder {
        self.engine.as_ref().map_or_else(Recorder::new, |engine| Recorder::over(engine.direct().clone()))
    }

    /// Returns the stream of the hot table, read in the same way, and in the time of this stack.
    pub async fn stream(&self) -> Result<DynamoDbStream> {
        let stream = match &self.engine {
            Some(engine) => self.environment.stream_over(engine.direct().clone()).await?,
            None => self.environment.stream().await?,
        };
        if self.engine.as_ref().is_some_and(Engine::is_on_time_of_stack) {
            return Ok(stream);
        }
        let (clock, machine) = (self.clock.clone(), Clock::system());
        Ok(stream.in_time_of(move |made_at| made_at + (clock.instant() - machine.instant())))
    }

    /// Returns the stream of the log's table, read in the same way.
    pub async fn log_stream(&self) -> Result<DynamoDbStream> {
        let table = &self.environment.tables.log;
        match &self.engine {
            Some(engine) => self.environment.stream_of(table, engine.direct().clone()).await,
            None => self.environment.stream_of(table, aws_smithy_http_client::Builder::new().build_http()).await,
        }
    }

    /// Stops the engine, if it is embedded, after the calls that are under way.
    pub async fn stop(self) -> Result<()> {
        match self.engine {
            Some(engine) => engine.stop().await,
            None => Ok(()),
        }
    }
}
