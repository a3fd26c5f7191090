//! `console` alone over the machine: a public page, views for operators alone, and what each view reads and lists.

/// The operations of the console on one machine. `bank` links it with all functions.
#[path = "../../../bank/src/operations.rs"]
pub mod operations;

#[path = "views/lists.rs"]
mod lists;
#[path = "views/reads.rs"]
mod reads;
#[path = "views/sealed.rs"]
mod sealed;
#[path = "views/told.rs"]
mod told;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use console::{Config, Console};
use object_store::ObjectStore;
use operations::OneMachine;
use payments_boot::Metrics;
use payments_http::ProblemKind;
use payments_http::routes::CONSOLE_ROUTES;
use payments_machine::client::{Reply, Request};
use payments_machine::event::{DEVELOPMENT_CLIENT, all_scopes, jwt};
use payments_machine::given::Given;
use payments_machine::layers::client_over;
use payments_machine::{Environment, Recorder};
use payments_model::Settlement;
use serde_json::{Value, json};

/// Every view, and arguments with which it shows something.
const VIEWS: [&str; 25] = [
    "day",
    "ahead",
    "waiting",
    "endpoints",
    "endpoints?id=shop",
    "queues",
    "sample?queue=dispatch-failures",
    "reports",
    "report?name=2026-11-20T080203Z--2026-11-20T085959Z-run-000042",
    "bank",
    "undos",
    "run?job=sweep&since=2026-11-20T08:00:00Z",
    "audit",
    "list?date=2026-12-01&status=SCHEDULED",
    "find?text=nothing",
    "find?text=44102700&date=2026-11-20",
    "find?text=",
    "account?id=tenant",
    "account?id=tenant&show=past",
    "payment?id=00000000-0000-5000-8000-000000000000",
    "alarms",
    "alarms?at=paymentsoverdue",
    "operations",
    "restore",
    "restore?at=without-log-and-journal",
];

/// The machine's shards, and the lanes of a date's counters.
const SHARDS: usize = 10;
const LANES: usize = 8;

/// `console` on a machine, and the recorder of its calls.
struct Alone {
    given: Given,
    console: Console,
    recorder: Recorder,
}

impl Alone {
    async fn start() -> Result<Self> {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Environment)) -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", change).await?;
        let recorder = given.stack.recorder();
        let console = console(&given, &recorder, Arc::clone(&given.stack.reports))?;
        Ok(Self { given, console, recorder })
    }

    /// Reads sealed parts from another storage.
    fn read_parts_from(&mut self, files: Arc<dyn ObjectStore>) -> Result<()> {
        self.console = console(&self.given, &self.recorder, files)?;
        Ok(())
    }

    async fn send_as(&self, authorizer: &Value, request: &Request) -> Result<Reply> {
        let (_, event) = request.event("test-request", self.given.stack.clock.instant(), authorizer)?;
        Reply::from_response(self.console.handle(event).await)
    }

    async fn get_as(&self, authorizer: &Value, path: &str) -> Result<Reply> {
        self.send_as(authorizer, &Request::get(path)).await
    }

    async fn get(&self, path: &str) -> Result<Reply> {
        self.get_as(&all_scopes(DEVELOPMENT_CLIENT), path).await
    }

    async fn view(&self, view: &str) -> Result<Reply> {
        self.get(&format!("/console/views/{view}")).await
    }

    /// A view that is shown.
    async fn page(&self, wanted: &str) -> Result<String> {
        let reply = self.view(wanted).await?;
        ensure!(reply.status == 200, "{wanted}: {}", reply.text);
        Ok(reply.text)
    }

    /// The targets of the links of a list's pages, page by page. If there is a next page, the last link leads to it.
    async fn pages(&self, first: &str) -> Result<Vec<Vec<String>>> {
        let (mut pages, mut next) = (Vec::new(), Some(first.to_owned()));
        while let Some(wanted) = next {
            let text = self.page(&wanted).await?;
            let links = text.split("href=\"#").skip(1).filter_map(|link| link.split('"').next());
            let links: Vec<String> = links.map(|link| link.replace("&amp;", "&")).collect();
            next = links.iter().find(|link| link.contains("cursor=")).cloned();
            pages.push(links);
            ensure!(pages.len() < 20, "the list does not end");
        }
        Ok(pages)
    }
}

fn console(given: &Given, recorder: &Recorder, files: Arc<dyn ObjectStore>) -> Result<Console> {
    let (config, clock) = (given.config("console", Config::read)?, given.stack.clock.clone());
    let store = given.stack.store(client_over(&given.stack.client(), recorder.clone()));
    Ok(Console::new(config, store, Arc::new(OneMachine::on(&given.stack)), files, clock, Metrics::captured()))
}

fn header<'r>(reply: &'r Reply, name: &str) -> Option<&'r str> {
    reply.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The status and the last part of the problem's type.
fn problem(reply: &Reply) -> Result<(u16, String)> {
    let kind = reply.json()?["type"].as_str().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default().to_owned();
    Ok((reply.status, kind))
}

#[tokio::test]
async fn the_page_is_public_and_its_views_are_not() -> Result<()> {
    let alone = Alone::start().await?;
    let shell = alone.get_as(&Value::Null, "/console").await?;
    assert_eq!(shell.status, 200, "{}", shell.text);
    let assets: Vec<&str> = shell.text.split('"').filter(|text| text.starts_with("/console/assets/")).collect();
    assert_eq!(assets.len(), 3, "{}", shell.text);
    for asset in assets {
        let asset = alone.get_as(&Value::Null, asset).await?;
        assert_eq!(asset.status, 200);
        assert_eq!(header(&asset, "cache-control"), Some("public, max-age=31536000, immutable"));
    }
    let forbidden = ProblemKind::Forbidden.slug();
    let others = "payments/read payments/write payments/feed payments/webhooks payments/operate";
    for wanted in VIEWS {
        for (authorizer, status, kind) in [
            (Value::Null, 401, ProblemKind::TokenRequired.slug()),
            (jwt(&json!({ "scope": others })), 403, forbidden),
            (jwt(&json!({ "scope": "payments/inspect", "custom:accounts": "tenant" })), 403, forbidden),
        ] {
            let reply = alone.get_as(&authorizer, &format!("/console/views/{wanted}")).await?;
            assert_eq!(problem(&reply)?, (status, kind.to_owned()), "{wanted}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_kept_framed_or_run_inline() -> Result<()> {
    let alone = Alone::start().await?;
    for path in ["/console", "/console/views/day", "/console/views/unknown", "/console/assets/unknown"] {
        let reply = alone.get(path).await?;
        assert_eq!(header(&reply, "cache-control"), Some("no-store"), "{path}");
        assert_eq!(header(&reply, "x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(header(&reply, "x-content-type-options"), Some("nosniff"), "{path}");
        let policy = header(&reply, "content-security-policy").context("a policy")?;
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.split("; ").any(|known| known == part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
    for view in VIEWS {
        let text = alone.view(view).await?.text;
        for inline in ["<script", "<style", " style=", " onclick=", "javascript:"] {
            assert!(!text.contains(inline), "{view}: {inline}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_bank_without_a_console_has_none_of_its_routes() -> Result<()> {
    let alone = Alone::with(|environment| environment.console = false).await?;
    for spec in &CONSOLE_ROUTES {
        let request = Request::new(spec.method.clone(), &spec.path.replace(['{', '}'], ""));
        let reply = alone.send_as(&all_scopes(DEVELOPMENT_CLIENT), &request).await?;
        assert_eq!(problem(&reply)?, (404, "no-such-route".to_owned()), "{}", spec.path);
    }
    Ok(())
}

#[tokio::test]
async fn a_transaction_that_looks_like_a_payment_is_found() -> Result<()> {
    let alone = Alone::start().await?;
    let transaction = "3fa85f64-5717-4562-b3fc-2c963f66afa6";
    let processed = Settlement::Processed(transaction.parse()?);
    let id = alone.given.settled_as("rent-1", processed, |_| {}).await?.payment_id;
    assert!(alone.page(&format!("find?text={transaction}")).await?.contains(&format!("data-copy=\"{id}\"")));
    Ok(())
}

#[tokio::test]
async fn today_stays_today() -> Result<()> {
    let alone = Alone::start().await?;
    let today = alone.page("day").await?;
    assert!(today.contains(r#"data-hx-get="/console/views/day""#), "{today}");
    let chosen = alone.page("day?date=2026-12-01").await?;
    assert!(chosen.contains(r#"data-hx-get="/console/views/day?date=2026-12-01""#), "{chosen}");
    Ok(())
}

#[tokio::test]
async fn a_closed_date_has_the_name_of_its_holiday() -> Result<()> {
    let alone = Alone::with(|environment| environment.calendars = "EUR=T2,GBP=GB".to_owned()).await?;
    let ahead = alone.page("ahead?from=2026-12-24").await?;
    for (date, closed) in [
        ("Thu 24 Dec", ""),
        ("Fri 25 Dec", "closed: Christmas Day"),
        ("Sat 26 Dec", "closed: weekend"),
        ("Mon 28 Dec", "GB closed: Boxing Day (observed)"),
    ] {
        let mark = if closed.is_empty() { String::new() } else { format!(" <small>{closed}</small>") };
        assert!(ahead.contains(&format!(">{date}</a>{mark}</th>")), "{date}: {ahead}");
    }
    let day = alone.page("day?date=2026-12-28").await?;
    assert!(day.contains(">Mon 28 Dec</h1>") && day.contains("GB closed: Boxing Day (observed)"), "{day}");
    assert!(
        day.contains("Nothing is due on Mon 28 Dec: GB closed, Boxing Day (observed).</b> Next open date"),
        "{day}"
    );
    // A date that no calendar covers is not shown as open.
    let after = alone.page("day?date=2098-12-31").await?;
    assert!(after.contains("unknown: the calendar ends"), "{after}");
    Ok(())
}
