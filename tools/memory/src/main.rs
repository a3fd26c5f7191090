//! The memory of each function that handles all payments: it must not grow with their number.
//!
//! The engine, the filling of the tables and each function are separate processes, so that only one function's memory
//! is measured. They run in the order of a payment's life, so each finds what the one before has left. `PAYMENTS=100000
//! cargo test -p payments-memory` takes a quarter of an hour. The default is fewer payments, for `just others`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::sqs::SqsEvent;
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_bank::Functions;
use payments_boot::{Clock, Lookup};
use payments_load::process::{EngineProcess, memory_kib, served};
use payments_machine::invocation::context;
use payments_machine::layers::client_over;
use payments_machine::payload::DataKind;
use payments_machine::{EngineChoice, Handlers as _, Recorder, Stack};
use payments_model::{
    Actor, BusinessZone, DayCounts, Details, Head, Instruction, JsonText, Money, PaymentId, Status, UtcSecond,
};
use payments_store::{Committed, CountsCommit, LogHead, Store};
use serde_json::{Value, json};

/// The variable that says what a process of this program does: `fill`, or one of [`WORK`].
const ROLE: &str = "PAYMENTS_MEMORY_ROLE";

/// The variable with the folder of the files.
const FILES: &str = "PAYMENTS_MEMORY_FILES";

/// The variable with the engine's URL.
const ENGINE: &str = "PAYMENTS_MEMORY_ENGINE";

/// The work that is measured.
const WORK: [&str; 8] = ["undo", "sweep", "settle", "report", "recount", "archive", SEAL, CLEAR];

/// The work that reads the payments' data, after all others.
const SEAL: &str = "seal";

/// The clear of the sealed payments' data, by the same function.
const CLEAR: &str = "clear";

/// The number of payments, unless `PAYMENTS` sets another.
const PAYMENTS: usize = 3_000;

/// The most memory above idle, in KiB, for any number of payments: an eighth of the 1,024 MB of the scheduled functions.
const MAX_KIB: u64 = 128 * 1024;

/// The same of the seal, a quarter of its 2,048 MB: it holds a whole part, with the data.
const MAX_KIB_OF_SEAL: u64 = 512 * 1024;

/// The bytes of the sealed payments' data.
const DATA_BYTES: usize = 7_400;

/// The number of shards, as in the template. The sweep and the archive hold a page of each.
const SHARDS: u16 = 32;

/// The most deliveries of a batch.
const DELIVERIES: usize = 10;

/// The due date of the payments.
const DAY: &str = "2026-11-20";

/// The due date of the payments that are undone.
const UNDONE: &str = "2026-11-27";

/// The undo.
const UNDO: &str = "0123456789abcdef";

/// The night after.
const NOW: &str = "2026-11-24T03:00:00Z";

/// A night in which the payments are sealed.
const SEALED: &str = "2027-01-12T04:10:00Z";

/// A night in which their data is cleared.
const CLEARED: &str = "2027-02-20T04:10:00Z";

fn main() -> Result<()> {
    if served()? {
        return Ok(());
    }
    let lookup = Lookup::environment();
    let payments = lookup.optional::<usize>("PAYMENTS")?.unwrap_or(PAYMENTS);
    let Some(role) = lookup.text(ROLE) else { return measure_each() };
    let url = lookup.text(ENGINE).context("no engine")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let files = lookup.text(FILES).context("no folder of files")?;
        let night = match &*role {
            SEAL => SEALED,
            CLEAR => CLEARED,
            _ => NOW,
        };
        let now: DateTime<Utc> = night.parse()?;
        let stack = Stack::on(EngineChoice::Endpoint(url))
            .environment(|environment| {
                (environment.claims_per_second, environment.moves_per_second) = (0, 0);
                environment.shards = SHARDS;
            })
            .clock(&Clock::simulated(move || now, |_| {}))
            .reports(Path::new(&files))
            .start()
            .await?;
        if role == "fill" { fill(&stack, payments).await } else { measure(&role, &stack, now, payments).await }
    })
}

/// Runs all processes, one after another.
fn measure_each() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: memory is measured through /proc, which only Linux has");
        return Ok(());
    }
    let (engine, files) = (EngineProcess::start()?, tempfile::tempdir()?);
    for role in ["fill"].iter().chain(&WORK) {
        let mut process = Command::new(std::env::current_exe()?);
        let process = process.env(ROLE, role).env(ENGINE, engine.url()).env(FILES, files.path());
        ensure!(process.status()?.success(), "{role} failed");
    }
    Ok(())
}

/// Fills the tables with due payments.
async fn fill(stack: &Stack, payments: usize) -> Result<()> {
    let store = &Store::new(stack.environment.client(), stack.environment.tables.clone());
    let dates = [DAY, UNDONE].into_iter().flat_map(|date| (0..payments).map(move |n| (n, date)));
    let heads = futures::stream::iter(dates).map(|(n, date)| async move {
        let details = details(n, date)?;
        if date == DAY {
            store.put_details(&details).await?;
        }
        anyhow::Ok(store.put_head(&Head::scheduled(&details)).await?)
    });
    heads.buffer_unordered(32).try_for_each(|_| async { Ok(()) }).await
}

/// Counts the payments as settled.
async fn count(store: &Store, payments: usize) -> Result<()> {
    let mut counts = DayCounts::default();
    counts.shift(Status::Processed, payments.try_into()?);
    let now: UtcSecond = NOW.parse()?;
    let log = LogHead::first("a stream", now);
    let deltas = BTreeMap::from([(DAY.parse()?, counts)]);
    let commit = CountsCommit { deltas, unparsed: 0, events: Vec::new(), last: log.next.into() };
    let committed = store.commit_counts("a shard", None, &commit, &log, now).await?;
    ensure!(committed == Committed::Done, "nothing is counted: {committed:?}");
    Ok(())
}

/// Returns the details of a due payment. Each has its own payee, and ids have their maximum length, which is the worst case:
/// the report keeps a sum for each payee.
fn details(n: usize, date: &str) -> Result<Details> {
    let account = format!("account-{:040}", n / 25).parse()?;
    let payment_id = PaymentId::derive(&account, &format!("{n}-{date}").parse()?);
    let text = DataKind::default().text(&mut Rng::with_seed(n.try_into()?), DATA_BYTES);
    let instruction = Instruction {
        account,
        payee: format!("payee-{n:042}").parse()?,
        money: Money { amount: i64::try_from(n + 1)?.try_into()?, currency: "GBP".parse()? },
        scheduled_for: date.parse()?,
        date_rule: None,
        reference: None,
        data: Some(JsonText::from_stored(text)?.into()),
    };
    let (zone, created): (BusinessZone, UtcSecond) = ("Europe/London".parse()?, "2026-11-19T09:00:00Z".parse()?);
    let by = Actor::client("the test");
    Ok(Details::accept(payment_id, instruction, zone, SHARDS.to_string().parse()?, created, by))
}

/// Runs one function until it has handled all payments, and checks its peak memory.
async fn measure(work: &str, stack: &Stack, now: DateTime<Utc>, payments: usize) -> Result<()> {
    let recorder = Recorder::new();
    let client = stack.environment.client();
    let client = if [SEAL, CLEAR].contains(&work) { client_over(&client, recorder.clone()) } else { client };
    let functions = Functions::on(stack, &client)?;
    if work == SEAL {
        count(&stack.store(stack.environment.client()), payments).await?;
    }
    // Opens the connections. A day without payments is hardly any work.
    run(&functions, "recount", json!({ "action": "recount", "from": "2026-01-01", "to": "2026-01-01" }), now).await?;
    let idle = memory_kib("VmRSS")?;
    std::fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")?;
    let began = Instant::now();
    let (mut done, mut plan) = (0, Value::Null);
    if work == "undo" {
        let request = json!({ "action": "plan", "id": UNDO, "select": { "dueDate": UNDONE } });
        plan = run(&functions, "undo", request, now).await?;
        println!("undo: planned within {:?}", began.elapsed());
    }
    while done < payments {
        let action = json!({ "action": if work == CLEAR { SEAL } else { work } });
        let (function, input, counts): (_, _, &[&str]) = match work {
            "sweep" => ("daily-due-sweeper", action, &["/claimed", "/alreadyClaimed"]),
            "report" => ("report", action, &["/reported"]),
            "recount" => ("recount", json!({ "action": work, "from": DAY, "to": DAY }), &["/drifts/0/recounted/total"]),
            "undo" => {
                let approved =
                    json!({ "action": "run", "id": UNDO, "plan": 1, "sha256": plan["sha256"], "ticket": "a test" });
                ("undo", approved, &["/runs/0/ends/cancelled"])
            }
            "archive" => ("archive", action, &["/archived", "/alreadyGone"]),
            SEAL => (SEAL, action, &["/sealed"]),
            CLEAR => (SEAL, action, &["/cleared"]),
            _ => ("settle", action, &[]),
        };
        let handled = match function {
            "settle" => settle(&functions, done, payments).await?,
            _ => {
                let outcome = run(&functions, function, input, now).await?;
                let count = |path: &&str| outcome.pointer(path).and_then(Value::as_u64);
                let counts = counts.iter().map(|path| count(path).with_context(|| format!("no {path} in {outcome}")));
                usize::try_from(counts.sum::<Result<u64>>()?)?
            }
        };
        ensure!(handled > 0, "{work} stops at {done} of {payments}");
        done += handled;
        // Otherwise their memory would count.
        drop(stack.metrics.take());
    }
    let above = memory_kib("VmHWM")?.saturating_sub(idle);
    println!("{work}: {done} payments within {:?}, {above} KiB above idle at the most", began.elapsed());
    let most = if [SEAL, CLEAR].contains(&work) {
        let used = recorder.take_capacity_use();
        let (writes, reads): (Vec<_>, Vec<_>) = used.iter().partition(|((operation, _), _)| operation == "UpdateItem");
        let [reads, writes] = [reads, writes].map(|used| used.into_iter().map(|(_, half)| half).sum::<u64>() / 2);
        println!("{work}: {reads} read units and {writes} write units");
        MAX_KIB_OF_SEAL
    } else {
        MAX_KIB
    };
    ensure!(above <= most, "{work} used {above} KiB above idle for {done} payments; the limit is {most}");
    Ok(())
}

/// Settles a batch of payments. Like the queue, it delivers the batch again if messages failed.
async fn settle(functions: &Functions, from: usize, payments: usize) -> Result<usize> {
    let batch = from..payments.min(from + 10);
    let count = batch.len();
    let record = |n: usize| -> Result<Value> {
        let Head { payment_id, account, payee, due_at, money, .. } = Head::scheduled(&details(n, DAY)?);
        let result = json!({
            "v": 1, "kind": "settlement", "paymentId": payment_id.to_string(),
            "amountMinor": money.amount.get(), "currency": money.currency.code(), "payeeAccountId": payee.as_str(), "accountId": account.as_str(), "dueAt": due_at.to_string(),
            "status": "PROCESSED", "transactionId": format!("TX-{n:012}"),
        });
        Ok(json!({ "messageId": n.to_string(), "body": result.to_string() }))
    };
    let records: Vec<Value> = batch.map(record).collect::<Result<_>>()?;
    let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
    for _ in 0..DELIVERIES {
        if functions.settle_batch(event.clone()).await.batch_item_failures.is_empty() {
            return Ok(count);
        }
    }
    bail!("payments {from} to {} are not settled", from + count)
}

async fn run(functions: &Functions, function: &'static str, input: Value, now: DateTime<Utc>) -> Result<Value> {
    let mut context = context(now + TimeDelta::minutes(14));
    context.request_id = "memory".to_owned();
    functions.scheduled(function, input, context).await.map_err(anyhow::Error::msg)
}
