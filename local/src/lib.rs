//! The whole system in one process: an embedded DynamoDB, the HTTP API, and the handlers that run on AWS.
//!
//! As on AWS, requests, schedules, a stream and queues invoke the handlers.

mod admission;
pub mod background;
pub mod business_days;
pub mod demo;
pub mod docs;
mod example_dates;
pub mod gateway;
mod invoke;
pub mod listen;
pub mod provider;
mod reports;
pub mod sandbox;
pub mod signals;
pub mod token;
pub mod welcome;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use background::Background;
use business_days::Dates;
use chrono::TimeDelta;
use payments_bank::Functions;
use payments_boot::Clock;
use payments_machine::environment::CALENDARS;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_machine::triggers::Triggers;
use payments_machine::{EngineChoice, Stack, engine};
use payments_model::{BusinessZone, DayLimit};
use sandbox::Sandbox;
use token::Issuer;

pub use gateway::{Bank, Gateway};

/// The time between sweeps of due payments here. The five minutes of the template are long for a person who watches.
const SWEEP_PERIOD: TimeDelta = TimeDelta::minutes(1);

/// The days after which a date is sealed here: a person can wait, or move a sandbox's clock, but not by 50 days.
const SEAL_AFTER_DAYS: u32 = 5;

/// The days after which the data of a sealed date is cleared here: nothing restores the tables of one machine.
const CLEAR_AFTER_DAYS: u32 = 2;

/// The behaviour of the transaction service here: it answers within seconds, and a payment ends the same way each time.
pub const TRANSACTION_SERVICE: TransactionServiceSettings = TransactionServiceSettings {
    seed: 1,
    shortest_delay: TimeDelta::milliseconds(200),
    longest_delay: TimeDelta::seconds(3),
    failures_per_thousand: 20,
    repeats_per_thousand: 30,
    is_sandbox: false,
};

/// Its behaviour in the sandbox: it answers at once, and payments end as their references choose.
pub const SANDBOX_SERVICE: TransactionServiceSettings = TransactionServiceSettings {
    shortest_delay: TimeDelta::zero(),
    longest_delay: TimeDelta::zero(),
    failures_per_thousand: 0,
    repeats_per_thousand: 0,
    is_sandbox: true,
    ..TRANSACTION_SERVICE
};

/// The options of a system.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port of the HTTP API; 0 is any free one.
    pub api_port: u16,
    /// The port of the embedded DynamoDB; 0 is any free one.
    pub dynamodb_port: u16,
    /// The folder of the data; `None` keeps it in memory.
    pub data: Option<PathBuf>,
    /// Whether a new bank may begin beside the reports or the journal of another.
    pub new_bank: bool,
    /// The folder of the reports.
    pub reports: PathBuf,
    /// The bank's time zone.
    pub time_zone: BusinessZone,
    /// Its calendars, cut-offs and date rule.
    pub dates: Dates,
    /// The paused part: `none`, `sending` or `settling`.
    pub paused: &'static str,
    /// The limit of each due date, if there is one.
    pub max_day: Option<DayLimit>,
    /// The URL of an engine to use instead of the embedded one.
    pub endpoint: Option<String>,
    /// Whether the HTTP API requires a token.
    pub require_tokens: bool,
    /// Whether references choose how payments end, and an endpoint moves the clock.
    pub sandbox: bool,
}

/// A running system.
#[derive(Debug)]
pub struct System {
    gateway: Gateway,
    background: Background,
    stack: Stack,
}

impl System {
    /// Starts everything.
    pub async fn start(options: &Options, clock: &Clock) -> Result<Self> {
        match (&options.endpoint, &options.data) {
            (None, None) => reports::without_reports(&options.reports)?,
            (None, Some(folder)) if !options.new_bank && engine::is_new(folder) => {
                reports::without_reports_of_lost(folder, &options.reports)?;
            }
            _ => {}
        }
        let (sandbox, moves) = options.sandbox.then(|| Sandbox::new(clock)).unzip();
        let receivers_clock = sandbox.as_ref().map(|_| clock.clone());
        let clock = sandbox.as_ref().map_or_else(|| clock.clone(), Sandbox::clock);
        let stack = Stack::on(EngineChoice::new(options.endpoint.clone(), options.data.clone()))
            .port(options.dynamodb_port)
            .environment(|environment| {
                environment.time_zone = options.time_zone.to_string();
                options.dates.tell(environment, CALENDARS);
                environment.require_tokens = options.require_tokens;
                (environment.seal_after_days, environment.clear_after_days) = (SEAL_AFTER_DAYS, CLEAR_AFTER_DAYS);
                environment.paused = options.paused;
                environment.max_day = options.max_day.as_ref().map(ToString::to_string).unwrap_or_default();
            })
            .clock(&clock)
            .receivers_clock(receivers_clock)
            .reports(&options.reports)
            .start()
            .await?;
        let functions = Functions::on(&stack, &stack.client())?;
        let account_claim = &stack.environment.account_claim;
        let issuer = options.require_tokens.then(|| Issuer::new(account_claim)).transpose()?.map(Arc::new);
        let bank = Bank {
            functions: functions.clone(),
            clock: clock.clone(),
            zone: options.time_zone,
            reports: stack.links.clone(),
        };
        let gateway = Gateway::start(options.api_port, bank, issuer, sandbox.clone()).await?;
        let service = if options.sandbox { SANDBOX_SERVICE } else { TRANSACTION_SERVICE };
        let mut triggers =
            Triggers::new(&stack, Arc::new(functions), service).await?.with_period("sweep", SWEEP_PERIOD);
        if options.sandbox {
            // The recount reads hundreds of dates, which takes seconds, and sees changes that no step has counted yet.
            // Calendars are compiled in, so no date is closed while the sandbox runs.
            triggers = triggers.without("recount").without("look-for-redates");
        }
        let background = Background::start(triggers, clock, sandbox.zip(moves));
        Ok(Self { gateway, background, stack })
    }

    /// Returns the URL of the HTTP API.
    pub fn api_url(&self) -> String {
        self.gateway.url()
    }

    /// Returns the URL of the DynamoDB API.
    pub fn dynamodb_url(&self) -> &str {
        &self.stack.environment.endpoint
    }

    /// Stops everything after the requests, ticks and calls that are under way.
    pub async fn stop(self) -> Result<()> {
        self.gateway.stop().await?;
        self.background.stop().await?;
        self.stack.stop().await
    }
}
