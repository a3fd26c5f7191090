//! How much memory each function takes whose work grows with the payments: it must not grow with them.
//!
//! The engine, the filling of it and each function are processes of their own, so that only a
//! function's own memory is measured, and none uses what another has given back. They meet the same
//! payments, in the order of a payment's life: each finds what the one before has left.
//! `PAYMENTS=100000 cargo test -p payments-memory` takes a quarter of an hour; without the
//! variable there are fewer, so that every run can afford it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::sqs::SqsEvent;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use payments_boot::{Clock, Lookup, dynamodb_at};
use payments_local::invocation::context;
use payments_local::{Engine, EngineChoice, Environment, Function, Functions, Stack};
use payments_model::{Actor, BusinessZone, Details, Head, Instruction, Money, PaymentId, UtcSecond};
use payments_store::Store;
use serde_json::{Value, json};

/// What a process of this test is for: to be the engine, to fill it, or one of [`WORK`]. Empty for the
/// test itself.
const ROLE: &str = "PAYMENTS_MEMORY_ROLE";

/// Where the engine is, for the others.
const ENGINE: &str = "PAYMENTS_MEMORY_ENGINE";

/// What is measured.
const WORK: [&str; 5] = ["sweep", "settle", "report", "recount", "archive"];

/// How many payments there are, unless `PAYMENTS` says otherwise.
const PAYMENTS: usize = 3_000;

/// The most memory above idle, in KiB, for any number of payments: a sixteenth of the 512 MB that the
/// smallest function here has.
const MOST_KIB: u64 = 32 * 1024;

/// How often a batch is brought.
const DELIVERIES: usize = 10;

/// The payments' day.
const DAY: &str = "2026-11-20";

/// The night after.
const NOW: &str = "2026-11-21T03:00:00Z";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let lookup = Lookup::environment();
    let payments = lookup.optional::<usize>("PAYMENTS")?.unwrap_or(PAYMENTS);
    let engine = || lookup.text(ENGINE).context("no engine");
    match lookup.text(ROLE).as_deref() {
        Some("engine") => serve().await,
        Some("fill") => fill(&engine()?, payments).await,
        Some(work) => measure(work, &engine()?, payments).await,
        None if cfg!(target_os = "linux") => measure_each(),
        None => {
            println!("SKIPPED: memory is measured through /proc, which only Linux has");
            Ok(())
        }
    }
}

/// All processes, one after another.
fn measure_each() -> Result<()> {
    let mut engine = process("engine", "")?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut url = String::new();
    BufReader::new(engine.stdout.take().context("no output")?).read_line(&mut url)?;
    for role in ["fill"].iter().chain(&WORK) {
        ensure!(process(role, url.trim())?.status()?.success(), "{role} failed");
    }
    drop(engine.stdin.take());
    engine.wait()?;
    Ok(())
}

/// Another process of this program.
fn process(role: &str, engine: &str) -> Result<Command> {
    let mut process = Command::new(std::env::current_exe()?);
    process.env(ROLE, role).env(ENGINE, engine);
    Ok(process)
}

/// An engine, until nobody holds its standard input any more.
async fn serve() -> Result<()> {
    let engine = Engine::scratch().await?;
    println!("{}", engine.url());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    engine.stop().await
}

/// Fills the tables with payments that have fallen due.
async fn fill(url: &str, payments: usize) -> Result<()> {
    let environment = Environment::at(url.to_owned());
    let client = dynamodb_at(url, "local");
    payments_store::schema::create_tables(&client, &environment.tables).await?;
    let store = Store::new(client, environment.tables);
    let heads = futures::stream::iter(0..payments).map(|n| {
        let store = &store;
        async move { store.put_head(&scheduled(n)?).await.map_err(anyhow::Error::from) }
    });
    heads.buffer_unordered(32).try_for_each(|_| async { Ok(()) }).await
}

/// One payment of the day. No two have the same payee, and ids are as long as they may be, which is the
/// worst case: the report keeps a sum for each.
fn scheduled(n: usize) -> Result<Head> {
    let account = format!("account-{:040}", n / 25).parse()?;
    let payment_id = PaymentId::derive(&account, &n.to_string().parse()?);
    let instruction = Instruction {
        account,
        payee: format!("payee-{n:042}").parse()?,
        money: Money { amount: i64::try_from(n + 1)?.try_into()?, currency: "GBP".parse()? },
        scheduled_for: DAY.parse()?,
        data: None,
    };
    let (zone, created): (BusinessZone, UtcSecond) = ("Europe/London".parse()?, "2026-11-19T09:00:00Z".parse()?);
    let by = Actor::named("the test");
    Ok(Head::scheduled(&Details::accept(payment_id, instruction, zone, "10".parse()?, created, by)))
}

/// Does one function's work in this process, and compares what it took with what it may take.
async fn measure(work: &str, url: &str, payments: usize) -> Result<()> {
    let reports = tempfile::tempdir()?;
    let now: DateTime<Utc> = NOW.parse()?;
    let stack = stack(url, &reports, now).await?;
    let functions = stack.functions(&stack.environment.client())?;
    // A first tick opens the connections; a day without payments is too little for work.
    run(&functions, Function::Recount, json!({ "action": "recount", "from": "2026-01-01", "to": "2026-01-01" }), now)
        .await?;
    let idle = resident("VmRSS")?;
    std::fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")?;
    let mut done = 0;
    while done < payments {
        let some = match work {
            "sweep" => {
                tick(
                    &functions,
                    Function::DailyDueSweeper,
                    json!({ "action": "sweep" }),
                    &["/claimed", "/alreadyClaimed"],
                    now,
                )
                .await?
            }
            "settle" => settle(&functions, done, payments).await?,
            "report" => tick(&functions, Function::Report, json!({ "action": "report" }), &["/reported"], now).await?,
            "recount" => {
                let day = json!({ "action": "recount", "from": DAY, "to": DAY });
                tick(&functions, Function::Recount, day, &["/drifts/0/recounted/total"], now).await?
            }
            "archive" => {
                tick(&functions, Function::Archive, json!({ "action": "archive" }), &["/archived", "/alreadyGone"], now)
                    .await?
            }
            other => bail!("there is no {other}"),
        };
        ensure!(some > 0, "{work} stops at {done} of {payments}");
        done += some;
        // The test's own memory.
        drop(stack.metrics.take());
    }
    let above = resident("VmHWM")?.saturating_sub(idle);
    println!("{work}: {done} payments, {above} KiB above idle at the most");
    ensure!(above <= MOST_KIB, "{work} took {above} KiB above idle for {done} payments, of {MOST_KIB}");
    Ok(())
}

/// One run of a schedule's function. Says how many payments it has dealt with, which its report tells.
async fn tick(
    functions: &Functions,
    function: Function,
    input: Value,
    counted: &[&str],
    now: DateTime<Utc>,
) -> Result<usize> {
    let report = run(functions, function, input, now).await?;
    let number = |path: &&str| report.pointer(path).and_then(Value::as_u64).with_context(|| report.to_string());
    let some: u64 = counted.iter().map(number).sum::<Result<_>>()?;
    Ok(usize::try_from(some)?)
}

/// Settles the next payments, as many as a batch of the queue has; like the queue, it brings again what did
/// not go well.
async fn settle(functions: &Functions, from: usize, payments: usize) -> Result<usize> {
    let some = from..payments.min(from + 10);
    let count = some.len();
    let record = |n: usize| -> Result<Value> {
        let Head { payment_id, account, due_at, .. } = scheduled(n)?;
        let report = json!({
            "paymentId": payment_id.to_string(), "accountId": account.as_str(), "dueAt": due_at.to_string(),
            "outcome": "PROCESSED", "transactionId": format!("TX-{n:012}"),
        });
        Ok(json!({ "messageId": n.to_string(), "body": report.to_string() }))
    };
    let records: Vec<Value> = some.map(record).collect::<Result<_>>()?;
    let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
    for _ in 0..DELIVERIES {
        if functions.settle.handle(event.clone()).await.batch_item_failures.is_empty() {
            return Ok(count);
        }
    }
    bail!("payments {from} to {} are not settled", from + count)
}

async fn stack(url: &str, reports: &tempfile::TempDir, now: DateTime<Utc>) -> Result<Stack> {
    Stack::on(EngineChoice::Endpoint(url.to_owned()))
        .environment(|environment| (environment.claims_per_second, environment.moves_per_second) = (0, 0))
        .clock(&Clock::simulated(move || now, |_| {}))
        .reports(Arc::new(LocalFileSystem::new_with_prefix(reports.path())?))
        .start()
        .await
}

async fn run(functions: &Functions, function: Function, input: Value, now: DateTime<Utc>) -> Result<Value> {
    let mut context = context(now + TimeDelta::minutes(14));
    context.request_id = "memory".to_owned();
    functions.scheduled(function, input, context).await.map_err(anyhow::Error::msg)
}

/// A number of `/proc/self/status`, in KiB.
fn resident(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.with_context(|| format!("no {name}"))?.trim().parse().context("no number")
}
