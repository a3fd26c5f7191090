//! How much memory reporting and archiving take, beside how many payments there are: it must not
//! grow with them.
//!
//! The engine, and the filling of it, are processes of their own, so that only the functions'
//! memory is measured. `PAYMENTS=100000 cargo test -p payments-tests --test memory` takes some
//! minutes; without the variable there are fewer, so that every run can afford it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _};
use lambda_runtime::Context;
use object_store::local::LocalFileSystem;
use payments_boot::{Clock, Lookup, Metrics, dynamodb};
use payments_local::{Engine, Environment, Functions, Outside};
use payments_model::{Actor, BusinessZone, Details, Head, Instruction, Money, PaymentId, State, TrailEntry, UtcSecond};
use payments_queue::TransactionQueue;
use payments_queue::in_process::{Queue, QueueSettings};
use payments_store::Store;
use serde_json::{Value, json};

/// What a process of this test is for; empty for the test itself.
const ROLE: &str = "PAYMENTS_MEMORY_ROLE";

/// How many payments there are, unless `PAYMENTS` says otherwise.
const PAYMENTS: usize = 3_000;

/// The most memory above idle, in KiB: half of what the smallest sensible Lambda function has.
const MOST_KIB: u64 = 64 * 1024;

/// A night after the payments' day.
const NOW: &str = "2026-11-21T03:00:00Z";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let lookup = Lookup::environment();
    let payments = lookup.optional::<usize>("PAYMENTS")?.unwrap_or(PAYMENTS);
    match lookup.text(ROLE).as_deref() {
        Some("engine") => serve().await,
        Some(url) => fill(url, payments).await,
        None if cfg!(target_os = "linux") => measure(payments).await,
        None => {
            println!("SKIPPED: memory is measured through /proc, which only Linux has");
            Ok(())
        }
    }
}

/// Another process of this program.
fn process(role: &str) -> Result<Child> {
    let program = std::env::current_exe()?;
    let process = Command::new(program).env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    Ok(process)
}

/// An engine, until nobody holds its standard input any more.
async fn serve() -> Result<()> {
    let engine = Engine::start(0, None).await?;
    println!("{}", engine.url());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    engine.stop().await
}

/// Fills the tables with payments that were settled, and that no report has taken yet.
async fn fill(url: &str, payments: usize) -> Result<()> {
    let environment = Environment::at(url.to_owned());
    let client = dynamodb(Some(url)).await;
    payments_store::schema::create_tables(&client, &environment.tables).await?;
    let store = Store::new(client, environment.tables);
    let heads = futures::stream::iter(0..payments).map(|n| {
        let store = &store;
        async move { store.put_head(&settled(n)?).await.map_err(anyhow::Error::from) }
    });
    heads.buffer_unordered(32).try_for_each(|_| async { Ok(()) }).await
}

/// One payment that was settled during the day. No two have the same payee, which is the worst case:
/// the report keeps a sum for each.
fn settled(n: usize) -> Result<Head> {
    let account = format!("account-{}", n / 25).parse()?;
    let payment_id = PaymentId::derive(&account, &n.to_string().parse()?);
    let instruction = Instruction {
        account,
        payee: format!("payee-{n}").parse()?,
        money: Money { amount: i64::try_from(n + 1)?.try_into()?, currency: "GBP".parse()? },
        scheduled_for: "2026-11-20".parse()?,
        data: None,
    };
    let (zone, created): (BusinessZone, UtcSecond) = ("Europe/London".parse()?, "2026-11-19T09:00:00Z".parse()?);
    let by = Actor::named("the test");
    let details = Details::accept(payment_id, instruction, zone, "10".parse()?, created, by.clone());
    let settled_at = details.due_at.saturating_add(TimeDelta::seconds(i64::try_from(n % 80_000)?));
    let state = State::Processed(format!("TX-{n:012}").parse()?);
    let entry = |status, at| TrailEntry { status, at, by: by.clone() };
    let moved = vec![entry(payments_model::Status::Pending, details.due_at), entry(state.status(), settled_at)];
    let dispatch_attempt = Some(1);
    Ok(Head { state, moved, version: 3, dispatch_attempt, unreported: true, ..Head::scheduled(&details) })
}

async fn measure(payments: usize) -> Result<()> {
    let mut engine = process("engine")?;
    let mut url = String::new();
    BufReader::new(engine.stdout.take().context("no output")?).read_line(&mut url)?;
    let url = url.trim();
    ensure!(process(url)?.wait()?.success(), "the tables were not filled");

    let reports = tempfile::tempdir()?;
    let now: DateTime<Utc> = NOW.parse()?;
    let functions = functions(url, &reports, now).await?;
    // A first tick opens the connections; a second of Lambda's time is too little for work.
    run(&functions, "recount", json!({ "action": "recount", "from": "2026-01-01", "to": "2026-01-01" }), now).await?;
    for (function, counted) in [("report", "reported"), ("archive", "archived")] {
        let idle = resident("VmRSS")?;
        std::fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")?;
        let mut done = 0;
        while done < u64::try_from(payments)? {
            let report = run(&functions, function, json!({ "action": function }), now).await?;
            let some = report[counted].as_u64().unwrap_or(0);
            ensure!(some > 0, "{function} stops at {done} of {payments}: {report}");
            done += some;
        }
        let above = resident("VmHWM")?.saturating_sub(idle);
        println!("{function}: {done} payments, {above} KiB above idle at the most");
        ensure!(above <= MOST_KIB, "{function} took {above} KiB above idle for {done} payments, of {MOST_KIB}");
    }
    drop(engine.stdin.take());
    engine.wait()?;
    Ok(())
}

async fn functions(url: &str, reports: &tempfile::TempDir, now: DateTime<Utc>) -> Result<Functions> {
    let environment = Environment { moves_per_second: 0, ..Environment::at(url.to_owned()) };
    let outside = Outside {
        requests: TransactionQueue::InProcess(Queue::new(QueueSettings::named("payment-requests"))),
        clock: Clock::simulated(move || now, |_| {}),
        metrics: Metrics::captured(),
        reports: Arc::new(LocalFileSystem::new_with_prefix(reports.path())?),
    };
    environment.functions(&outside).await
}

async fn run(functions: &Functions, function: &str, input: Value, now: DateTime<Utc>) -> Result<Value> {
    let mut context = Context::default();
    context.request_id = "memory".to_owned();
    context.deadline = u64::try_from((now + TimeDelta::minutes(14)).timestamp_millis())?;
    functions.scheduled(function, input, context).await.map_err(anyhow::Error::msg)
}

/// A number of `/proc/self/status`, in KiB.
fn resident(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.with_context(|| format!("no {name}"))?.trim().parse().context("no number")
}
