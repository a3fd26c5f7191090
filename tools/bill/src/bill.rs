//! The lines of a bill: quantities of a day, for a month, at list prices.

use anyhow::{Context as _, Result};
use payments_alarms::Alarm;
use payments_machine::{Template, template, yaml};
use payments_sealed::MAX_PART_ROWS;
use serde_json::Value;

use crate::prices::{DOLLAR, Prices};
use crate::quantities::Quantities;
use crate::sealed::{CLEARED_AFTER, CLEARS_PER_SECOND, SEALED_AFTER, parts_archived_after};

/// The days of a month.
const DAYS: u64 = 30;

/// The months of a bill.
pub const MONTHS: [u64; 3] = [1, 12, 60];

/// The days for which a head is in the hot table. A test compares them with whole days. On AWS an expired item may stay longer.
pub(crate) const HEAD_DAYS: u64 = 2;

/// The days after which a segment of the log expires.
const SEGMENT_DAYS: u64 = 37;

/// The gets of a part: after its put, and before its payments are cleared.
const GETS_OF_PART: u64 = 2;

/// The milliseconds of an invocation besides its calls, of each call, and of a webhook's receiver. Assumed: Lambda's own
/// cannot be measured here. Calls that run at once are counted one after the other.
const INVOCATION_MS: u64 = 10;
const CALL_MS: u64 = 5;
const RECEIVER_MS: u64 = 200;

/// The bytes that Lambda logs of each invocation, START, END and REPORT, and API Gateway of each request. Assumed.
const BYTES_OF_LAMBDA: u64 = 450;
const BYTES_OF_ACCESS: u64 = 400;

/// CloudWatch compresses what it keeps to some 15 percent.
const KEPT_OF_LOG: u64 = 15;

/// Lambda keeps five pollers on a queue. Each waits 20 seconds for a message.
const POLLS_PER_DAY: u64 = 5 * 24 * 60 * 60 / 20;

/// The detailed metrics of a route: its count, two kinds of errors, two latencies, and the bytes.
const METRICS_OF_ROUTE: u64 = 6;

/// The encrypted resources of prod, whose data keys AWS keeps for five minutes. Assumed.
const ENCRYPTED: u64 = 12;
const KEYS_PER_DAY: u64 = 24 * 12;

/// A client that keeps its token until it expires asks for one each hour.
const TOKENS_PER_DAY: u64 = 24;

/// The assumptions, in words.
pub const ASSUMPTIONS: &str = "\
Assumed, because this machine cannot measure it: a call takes 5 ms, calls run one after the other, an invocation has
10 ms more, and a receiver of webhooks takes 200 ms; a head stays in the hot table for 2 days; Lambda logs 450 bytes of
an invocation, API Gateway 400 of a request, and CloudWatch keeps 15 % of that; five pollers; machine clients keep
their tokens for an hour. DynamoDB does not report units of failed conditions. Without free tiers and taxes.";

/// A stage of the deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// As `samconfig.toml` deploys it for payments: monitored, with a key and three machine clients.
    Prod,
    /// As `samconfig.toml` deploys it by default: with one machine client, and not monitored.
    Dev,
}

/// A line of a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The service.
    pub service: &'static str,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The quantity of each of [`MONTHS`].
    pub quantities: [u64; 3],
    /// The cost of each of [`MONTHS`], in billionths of a dollar.
    pub costs: [u64; 3],
}

/// The bill of a stage.
#[derive(Debug)]
pub struct Bill {
    /// Its lines, those of a service together.
    pub lines: Vec<Line>,
}

/// The lines so far.
struct Lines<'d> {
    day: &'d Quantities,
    prices: Prices,
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn add(&mut self, service: &'static str, name: &str, price: &str, quantities: [u64; 3]) -> Result<()> {
        let price = self.prices.get(price)?;
        let (name, unit) = (name.to_owned(), price.unit.clone());
        self.lines.push(Line {
            service,
            name,
            unit,
            quantities,
            costs: quantities.map(|quantity| price.cost(quantity)),
        });
        Ok(())
    }

    /// Adds what each day takes as much of.
    fn daily(&mut self, service: &'static str, name: &str, price: &str, a_day: u64) -> Result<()> {
        self.add(service, name, price, [a_day * DAYS; 3])
    }

    fn fixed(&mut self, service: &'static str, name: &str, price: &str, quantity: u64) -> Result<()> {
        self.add(service, name, price, [quantity; 3])
    }

    /// Adds the bytes of each day, which are kept for some days or for good.
    fn kept(&mut self, service: &'static str, name: &str, price: &str, (bytes, days): (u64, u64)) -> Result<()> {
        self.add(service, name, price, MONTHS.map(|month| bytes * half_days(month, days) / 2))
    }

    fn tables(&mut self) -> Result<()> {
        let tables = [
            ("payments", "", HEAD_DAYS),
            ("payment-history", "history ", u64::MAX),
            ("payments-log", "", SEGMENT_DAYS),
        ];
        for (table, class, days) in tables {
            let get = |kind: &str| self.day.get(&format!("{table}, {kind}"));
            let [writes, reads] = ["writes", "reads"].map(get);
            let [bytes, backed_up] = ["bytes", "bytes backed up"].map(get);
            self.daily("DynamoDB", &format!("{table}, writes"), &format!("{class}write"), writes)?;
            self.daily("DynamoDB", &format!("{table}, reads"), &format!("{class}read"), reads)?;
            // The long-term table keeps data until they are cleared, and what is left for good.
            let [left, left_backed_up] = [", bytes once cleared", ", bytes backed up once cleared"]
                .map(|kind| self.day.get(&format!("{table}{kind}")));
            let kept = |bytes: u64, left: u64| match days {
                u64::MAX => MONTHS.map(|month| {
                    let before = half_days(month, CLEARED_AFTER);
                    (bytes * before + left * (half_days(month, days) - before)) / 2
                }),
                _ => MONTHS.map(|month| bytes * half_days(month, days) / 2),
            };
            let (stored, backed_up) = (kept(bytes, left), kept(backed_up, left_backed_up));
            self.add("DynamoDB", &format!("{table}, storage"), &format!("{class}storage"), stored)?;
            self.add("DynamoDB", &format!("{table}, recovery"), "recovery", backed_up)?;
        }
        for (name, price) in [
            ("payment-history, writes of the clear", "history write"),
            ("payment-history, reads of the seal", "history read"),
            ("payments, reads of the seal", "read"),
        ] {
            self.sealing("DynamoDB", name, price, self.day.get(name))?;
        }
        Ok(())
    }

    /// Adds what the seal and the clear take a day. They begin after the first month.
    fn sealing(&mut self, service: &'static str, name: &str, price: &str, a_day: u64) -> Result<()> {
        self.add(service, name, price, [0, a_day * DAYS, a_day * DAYS])
    }

    /// Adds the parts of sealed payments.
    fn parts(&mut self) -> Result<()> {
        let bytes = self.day.get("bytes of parts");
        let parts = self.day.get("payments cleared").div_ceil(MAX_PART_ROWS.into());
        self.sealing("S3", "parts, puts", "put", parts)?;
        self.sealing("S3", "parts, gets", "get", GETS_OF_PART * parts)?;
        self.sealing("S3", "parts, transitions", "transition", parts)?;
        let archived_after = SEALED_AFTER + parts_archived_after()?;
        let between =
            |from: u64, until: u64| MONTHS.map(|month| bytes * (half_days(month, until) - half_days(month, from)) / 2);
        self.add("S3", "parts, storage", "file storage", between(SEALED_AFTER, archived_after))?;
        self.add("S3", "parts, archived", "archived file storage", between(archived_after, u64::MAX))
    }

    /// Adds the functions. Returns their invocations of a day.
    fn functions(&mut self) -> Result<u64> {
        let (mut invocations, mut mb_ms) = (0, 0);
        let mut of_seal = 0;
        for function in &Template::ours()?.functions {
            let get = |what: &str| self.day.get(&format!("{}, {what}", function.package));
            let receivers = if function.package == "publish" { self.day.get("webhooks") * RECEIVER_MS } else { 0 };
            let own = get("invocations");
            let memory = u64::from(function.memory);
            invocations += own;
            if function.package == "seal" {
                // Its calls run at once, within its paces: the waits are those of the seal alone.
                let clear = self.day.get("payments cleared") * 1_000 / CLEARS_PER_SECOND;
                of_seal = (own * INVOCATION_MS + get("ms of waits") + clear) * memory;
                continue;
            }
            mb_ms += (own * INVOCATION_MS + get("calls") * CALL_MS + get("ms of waits") + receivers) * memory;
        }
        self.daily("Lambda", "invocations", "invocation", invocations)?;
        self.daily("Lambda", "memory for its time", "compute", mb_ms / 1_024 / 1_000)?;
        self.sealing("Lambda", "memory for the time of the seal", "compute", of_seal / 1_024 / 1_000)?;
        Ok(invocations)
    }

    fn log(&mut self, invocations: u64, days: u64) -> Result<()> {
        let own = self.day.get("bytes of log");
        let of_lambda = invocations * BYTES_OF_LAMBDA;
        let of_access = self.day.get("requests, access log") * BYTES_OF_ACCESS;
        self.daily("CloudWatch", "log of functions", "log", own)?;
        self.daily("CloudWatch", "log of Lambda itself", "log", of_lambda)?;
        self.daily("CloudWatch", "log of access", "log", of_access)?;
        let kept = (own + of_lambda + of_access) * KEPT_OF_LOG / 100;
        self.kept("CloudWatch", "log that is kept", "log storage", (kept, days))
    }

    fn monitoring(&mut self) -> Result<()> {
        let routes = self.day.metrics.keys().filter(|(function, _)| function == "route").count();
        let hours = self.day.metrics.iter().filter(|((function, _), _)| function != "route");
        let hours: u64 = hours.map(|(_, hours)| u64::try_from(hours.len()).unwrap_or(24)).sum();
        let (alarms, mappings) = series()?;
        self.fixed("CloudWatch", "metrics of functions", "metric", hours.div_ceil(24))?;
        self.fixed("CloudWatch", "metrics of mappings", "metric", mappings)?;
        self.fixed("CloudWatch", "metrics of routes", "metric", u64::try_from(routes)? * METRICS_OF_ROUTE)?;
        self.fixed("CloudWatch", "metrics of alarms", "alarm metric", alarms)?;
        self.fixed("CloudWatch", "dashboard", "dashboard", 1)
    }
}

/// Returns for how many half days, on average of a month, each day's bytes are kept.
fn half_days(month: u64, kept: u64) -> u64 {
    let days = (DAYS * (month - 1))..(DAYS * month);
    days.map(|day| if day < kept { 2 * day + 1 } else { 2 * kept }).sum::<u64>() / DAYS
}

/// Returns the numbers of metrics of alarms, and of mappings that have metrics.
fn series() -> Result<(u64, u64)> {
    let template: Value = yaml::from_str(template::OURS).map_err(|error| anyhow::anyhow!("template.yaml, {error}"))?;
    let alarms: usize = Alarm::all(&template)?.iter().map(|alarm| alarm.series().len()).sum();
    let resources = template["Resources"].as_object().context("no resources")?.values();
    let events =
        resources.flat_map(|it| it["Properties"]["Events"].as_object().into_iter().flat_map(|all| all.values()));
    let mappings = events.filter(|event| !event["Properties"]["MetricsConfig"].is_null()).count();
    Ok((u64::try_from(alarms)?, u64::try_from(mappings)?))
}

impl Bill {
    /// Returns the bill of a stage for a day's quantities, monitored or not.
    ///
    /// # Errors
    /// If a price or a part of the template is missing.
    pub fn new(day: &Quantities, stage: Stage, is_monitored: bool) -> Result<Self> {
        let environment = if stage == Stage::Prod { "prod" } else { "dev" };
        let overrides = template::overrides(environment)?;
        let days = overrides
            .get("LogRetentionDays")
            .cloned()
            .map_or_else(|| Template::ours().and_then(|it| it.default_of("LogRetentionDays")), Ok)?;
        let clients = if stage == Stage::Prod { 3 } else { 1 };
        let mut lines = Lines { day, prices: Prices::list()?, lines: Vec::new() };
        lines.tables()?;
        lines.fixed("DynamoDB", "streams, which Lambda reads free of charge", "read", 0)?;
        let invocations = lines.functions()?;
        lines.daily("API Gateway", "requests", "request", day.get("requests"))?;
        let calls = day.get("calls of queues") + POLLS_PER_DAY;
        lines.daily("SQS", "calls", "call of a queue", calls)?;
        lines.daily("S3", "journal and reports, puts", "put", day.get("files put"))?;
        lines.kept("S3", "journal and reports, storage", "file storage", (day.get("bytes of files"), u64::MAX))?;
        lines.parts()?;
        lines.log(invocations, days.parse()?)?;
        if is_monitored {
            lines.monitoring()?;
        }
        if stage == Stage::Prod {
            lines.fixed("KMS", "key", "key", 1)?;
            lines.daily("KMS", "calls", "call of a key", ENCRYPTED * KEYS_PER_DAY)?;
        }
        lines.daily("Scheduler", "scheduled runs", "schedule", day.get("schedules"))?;
        lines.fixed("Secrets Manager", "master secret of webhooks", "secret", 1)?;
        lines.fixed("Cognito", "machine clients", "client", clients)?;
        let tokens = if day.get("requests") > 0 { clients * TOKENS_PER_DAY } else { 0 };
        lines.daily("Cognito", "tokens", "token", tokens)?;
        lines.daily("Transfer", "to the Internet", "transfer", day.get("bytes to the Internet"))?;
        Ok(Self { lines: lines.lines })
    }

    /// Returns the sum of each of [`MONTHS`], in billionths of a dollar.
    #[must_use]
    pub fn sums(&self) -> [u64; 3] {
        [0, 1, 2].map(|month| self.lines.iter().map(|line| line.costs[month]).sum())
    }

    /// Returns the largest line of a month, by its place in [`MONTHS`].
    #[must_use]
    pub fn largest(&self, month: usize) -> Option<&Line> {
        self.lines.iter().max_by_key(|line| line.costs[month])
    }

    /// Returns the bill as an aligned table.
    #[must_use]
    pub fn table(&self) -> String {
        let width = |of: fn(&Line) -> &str| self.lines.iter().map(|line| of(line).chars().count()).max().unwrap_or(0);
        let (names, units) = (width(|line| &line.name), width(|line| &line.unit));
        let row = |service: &str, name: &str, quantity: &str, unit: &str, [first, year, end]: [&str; 3]| {
            let row = format!("{service:<16}{name:<names$}{quantity:>17} {unit:<units$}{first:>11}{year:>11}{end:>11}");
            row.trim_end().to_owned() + "\n"
        };
        let mut text = row("$, of a month", "", "in month 1", "", ["month 1", "month 12", "month 60"]);
        let mut last = "";
        for Line { service, name, unit, quantities, costs } in &self.lines {
            let shown = if *service == last { "" } else { service };
            last = service;
            let costs = costs.map(cents);
            text += &row(shown, name, &grouped(quantities[0]), unit, costs.each_ref().map(String::as_str));
        }
        let sums = self.sums().map(cents);
        text + &row("in all", "", "", "", sums.each_ref().map(String::as_str))
    }
}

/// Returns `648,000` for 648000.
#[must_use]
pub fn grouped(number: u64) -> String {
    let text = number.to_string();
    let from_end = text.chars().rev().enumerate();
    let grouped =
        from_end.flat_map(|(place, digit)| (place > 0 && place % 3 == 0).then_some(',').into_iter().chain([digit]));
    grouped.collect::<String>().chars().rev().collect()
}

/// Returns `1,234.56` for an amount in billionths of a dollar.
#[must_use]
pub fn cents(amount: u64) -> String {
    let cents = (amount + DOLLAR / 200) / (DOLLAR / 100);
    format!("{}.{:02}", grouped(cents / 100), cents % 100)
}
