//! Functions that operators start, and dead letters that they move: once, in the audit trail, and not in a pause.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use console::{BankQueue, MoveBack, OperationError, Operations, QueueState, ReportFile, SampledMessage, Startable};
use lambda_runtime::Context;
use payments_bank::{Dependencies, Functions, OneMachine};
use payments_machine::Template;
use payments_machine::schedule::ScheduleSpec;
use payments_machine::{Handlers as _, Recorder};
use payments_model::OutageKind;
use payments_queue::Queue;
use payments_store::{Job, LastRun};
use payments_tests::tables::audited;
use payments_tests::{CrashPoints, World, note_case};
use serde_json::{Value, json};

use super::acting::{LASTING, confirm, offered, only_entry, preview, preview_of};
use super::{assert_statuses, page};

/// Every start: its action, its form, the function, and the input.
const STARTS: [(&str, &str, &str, &str); 8] = [
    ("start-sweep", "", "daily-due-sweeper", r#"{"action":"sweep"}"#),
    ("start-redrive", "", "daily-due-sweeper", r#"{"action":"redrive"}"#),
    ("start-report", "", "report", r#"{"action":"report"}"#),
    ("start-archive", "", "archive", r#"{"action":"archive"}"#),
    ("start-recount", "", "recount", r#"{"action":"recount"}"#),
    (
        "start-recount",
        "from=2026-11-20&to=2026-11-21",
        "recount",
        r#"{"action":"recount","from":"2026-11-20","to":"2026-11-21"}"#,
    ),
    ("look-for-redates", "", "redate", r#"{"action":"look"}"#),
    (
        "redate",
        "calendar=GB&from=2026-12-25&to=2026-12-28",
        "redate",
        r#"{"action":"move","calendar":"GB","from":"2026-12-25","to":"2026-12-28"}"#,
    ),
];

/// The job of a start, whose last run shows its outcome.
fn job(name: &str) -> &str {
    match name {
        "look-for-redates" => "look",
        "redate" => "move",
        start => start.trim_start_matches("start-"),
    }
}

/// Moves of dead letters: those of requests stop while sending is paused, those of results continue.
const MOVE_REQUESTS: (&str, &str) = ("move-dead-letters", "queue=request-dead-letters");
const MOVE_RESULTS: (&str, &str) = ("move-dead-letters", "queue=result-dead-letters");

async fn bank() -> Result<World> {
    paused("none").await
}

async fn paused(paused: &'static str) -> Result<World> {
    World::with(|environment| {
        environment.calendars = "GBP=GB".to_owned();
        environment.paused = paused;
    })
    .await
}

/// The number of messages in a queue.
fn waiting(world: &World, queue: &Queue) -> usize {
    queue.counts(world.now().as_chrono()).visible
}

/// The functions that were started and are not invoked yet.
fn started(world: &World) -> Vec<(&'static str, Value)> {
    let taken = std::iter::from_fn(|| world.outside.operations.started.take(world.now().as_chrono()));
    taken.map(|(function, input)| (function, serde_json::from_str(&input).unwrap_or_default())).collect()
}

#[tokio::test]
async fn each_start_invokes_its_function_as_a_schedule_does() -> Result<()> {
    for (name, form, function, input) in STARTS {
        let world = bank().await?;
        let bank = page(&world, "bank").await?;
        assert!(bank.contains(&format!("<form data-action=\"{name}\"")), "{name}: {bank}");
        let offered = offered(&world, name, form).await?;
        assert_eq!(started(&world), [], "a preview starts nothing");
        let done = confirm(&world, "first", &offered).await?;
        let input: Value = serde_json::from_str(input)?;
        assert_eq!(started(&world), [(function, input.clone())], "{name}");
        let entry = only_entry(&world).await?;
        let shown = if name == "redate" { "\ndates: 4\npayments: 0" } else { "" };
        let arguments = format!("{}{shown}", form.replace('=', ": ").replace('&', "\n"));
        assert_eq!((entry.intent.action.as_str(), &entry.intent.arguments), (name, &arguments));
        let follow = format!("data-follow=\"run?job={}&amp;since=2026-11-20T09%3A00%3A00Z\"", job(name));
        assert!(audited(&entry).ends_with("it begins within five minutes, or is dropped"), "{entry:?}");
        assert!(done.text.contains("it begins within five minutes") && done.text.contains(&follow), "{follow}: {done}");
        // Again: nothing more happens.
        let again = confirm(&world, "second", &offered).await?;
        assert_eq!((again.text, started(&world)), (done.text, vec![]));
        // The function takes the input.
        let mut context = Context::default();
        context.deadline = u64::try_from(world.now().as_chrono().timestamp_millis())? + 30_000;
        let outcome = world.functions().scheduled(function, input, context).await;
        outcome.map_err(anyhow::Error::msg).with_context(|| name)?;
    }
    Ok(())
}

#[tokio::test]
async fn the_dialog_of_a_start_asks_for_its_run_until_it_has_ended() -> Result<()> {
    let world = bank().await?;
    let run = |began: &str, claimed: u64| -> Result<LastRun> {
        let times = (began.parse()?, "2026-11-20T09:00:07Z".parse()?);
        Ok(LastRun::new(Job::Sweep, times, Some(&json!({ "claimed": claimed }))))
    };
    let view = "run?job=sweep&since=2026-11-20T09:00:00Z";
    for (began, claimed, wanted) in [
        (None, 0, "It has not ended yet."),
        // The scheduled run before.
        (Some("2026-11-20T08:59:54Z"), 3, "It has not ended yet."),
        // Clocks differ by up to five seconds.
        (Some("2026-11-20T08:59:55Z"), 1_234, "claimed 1,234"),
    ] {
        if let Some(began) = began {
            world.store().await.put_last_run(&run(began, claimed)?).await?;
        }
        let shown = page(&world, view).await?;
        assert_eq!(shown.contains("data-pending"), !wanted.starts_with("claimed"), "{shown}");
        assert!(shown.contains(wanted), "{shown}");
    }
    let failed = run("2026-11-20T09:00:00Z", 5)?.with_failure(Some("<script>window.pwned=1</script>"));
    world.store().await.put_last_run(&failed).await?;
    for view in [view, "bank", "waiting"] {
        let shown = page(&world, view).await?;
        assert!(shown.contains("Failed") && shown.contains("&lt;script&gt;") && !shown.contains("<script"), "{shown}");
    }
    // Dropped, as Lambda drops it if the function is busy.
    world.set_clock("2026-11-20T09:20:01Z")?;
    let dropped = page(&world, "run?job=redrive&since=2026-11-20T09:00:00Z").await?;
    assert!(dropped.contains("it was dropped") && !dropped.contains("data-pending"), "{dropped}");
    let wrong = ["run", "run?job=sweep", "run?job=sweeps&since=2026-11-20T09:00:00Z", "run?job=sweep&since=now"];
    assert_statuses(&world, &wrong.map(|wanted| (wanted, 400))).await
}

#[test]
fn a_start_has_the_input_of_a_schedule() -> Result<()> {
    // The two starts with a form have no schedule: an operator names their dates.
    for (name, _, function, input) in STARTS.into_iter().filter(|(_, form, ..)| form.is_empty()) {
        let input: Value = serde_json::from_str(input)?;
        let is_same = |spec: &ScheduleSpec| {
            spec.package == function && serde_json::from_str::<Value>(&spec.input).is_ok_and(|known| known == input)
        };
        assert!(Template::ours()?.schedules().any(is_same), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_started_or_sent_that_is_paused() -> Result<()> {
    let starts = STARTS.map(|(name, form, ..)| (name, form));
    for pause in ["sending", "settling"] {
        let (running, world) = (bank().await?, paused(pause).await?);
        for view in ["queues", "waiting", "bank"] {
            assert!(page(&world, view).await?.contains(" paused</h2>"), "{view}");
        }
        let queues = &world.outside.operations.queues;
        queues.request_dead_letters.send("a request", world.now().as_chrono())?;
        for (name, form) in starts.into_iter().chain([MOVE_REQUESTS, MOVE_RESULTS]) {
            let goes_on = ["look-for-redates", "redate"].contains(&name) || (name, form) == MOVE_RESULTS;
            let shown = preview(&world, name, form).await?;
            assert_eq!(shown.contains("<form"), goes_on, "{pause}, {name}: {shown}");
            if goes_on {
                continue;
            }
            assert!(shown.contains("Resume with Paused=none"), "{shown}");
            // The pause began after the preview.
            let offered = offered(&running, name, form).await?;
            let done = confirm(&world, "first", &offered).await?;
            assert!(done.text.contains("<h3>Refused</h3>"), "{pause}, {name}: {done}");
        }
        assert_eq!(started(&world), []);
        assert_eq!((waiting(&world, &queues.request_dead_letters), waiting(&world, &queues.requests)), (1, 0));
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_started_says_why() -> Result<()> {
    let world = bank().await?;
    let none = World::open().await?;
    for (world, name, form, why) in [
        (&world, "start-recount", "from=2026-11-21&to=2026-11-20", "is after"),
        (&world, "start-recount", "from=2026-01-01", "are 414 dates, too many"),
        (&world, "start-recount", "from=1+May", "an existing date"),
        (&world, "start-recount", "calendar=GB", "is unknown"),
        (&world, "start-sweep", "from=2026-11-20", "is unknown"),
        (&world, "redate", "from=2026-12-25&to=2026-12-28", "missing or empty"),
        (&world, "redate", "calendar=T2&from=2026-12-25&to=2026-12-28", "no currency has"),
        (&world, "redate", "calendar=%3Cb%3E&from=2026-12-25&to=2026-12-28", "no currency has"),
        (&world, "redate", "calendar=GB&from=2026-10-25&to=2026-10-28", "days ago"),
        (&none, "redate", "calendar=GB&from=2026-12-25&to=2026-12-28", "no calendar is in use"),
        (&world, "move-dead-letters", "", "missing or empty"),
        (&world, "move-dead-letters", "queue=requests", "cannot be moved back"),
        (&world, "move-dead-letters", "queue=dispatch-failures", "cannot be moved back"),
        (&world, "move-dead-letters", "queue=payments", "has to be one of"),
    ] {
        let reply = world.answered(preview_of(name, form), 400).await?;
        assert!(reply.field("detail").contains(why), "{name}, {form}: {reply}");
    }
    assert_eq!((world.audit_trail().await?, started(&world)), (vec![], vec![]));
    Ok(())
}

#[tokio::test]
async fn a_redate_of_other_numbers_than_were_shown_is_refused() -> Result<()> {
    const OTHER: &str = "the preview showed other numbers";
    let (name, form) = ("redate", "calendar=GB&from=2026-12-25&to=2026-12-28");
    let world = bank().await?;
    let before = offered(&world, name, form).await?;
    let rent = json!({ "payeeAccountId": "shop", "amountMinor": 7, "currency": "GBP", "scheduledFor": "2026-12-25" });
    world.create("tenant", "late", &rent).await?;
    world.count_all().await?;
    let refused = confirm(&world, "before", &before).await?;
    assert!(refused.text.contains("about 1 in all") && refused.text.contains(OTHER), "{refused}");
    // Fewer payments than were shown are moved, and other dates are not.
    for (at, field, shown, is_refused) in [
        ("2026-11-20T09:01:00Z", "dates", "3", true),
        ("2026-11-20T09:02:00Z", "payments", "0", true),
        ("2026-11-20T09:03:00Z", "payments", "2", false),
    ] {
        world.set_clock(at)?;
        let offered = offered(&world, name, form).await?.with(field, shown);
        let done = confirm(&world, at, &offered).await?;
        assert_eq!(done.text.contains(OTHER), is_refused, "{field} {shown}: {done}");
        assert_eq!(started(&world).len(), usize::from(!is_refused), "{field} {shown}");
    }
    for wrong in ["dates=4", "dates=4&payments=-1"] {
        let reply = world.answered(preview_of(name, &format!("{form}&{wrong}")), 400).await?;
        assert!(reply.field("detail").contains("payments"), "{wrong}: {reply}");
    }
    Ok(())
}

#[tokio::test]
async fn dead_letters_go_back_to_where_they_came_from() -> Result<()> {
    let world = bank().await?;
    let (queues, now) = (&world.outside.operations.queues, world.now().as_chrono());
    for body in ["one", "two"] {
        queues.result_dead_letters.send(body, now)?;
    }
    queues.dispatch_failures.send("three", now)?;
    let shown = page(&world, "queues").await?;
    // The other queue is empty.
    assert_eq!(shown.matches("<form data-action=\"move-dead-letters\"").count(), 1, "{shown}");
    assert!(shown.contains("name=\"queue\" value=\"result-dead-letters\""), "{shown}");
    let offered = offered(&world, MOVE_RESULTS.0, MOVE_RESULTS.1).await?;
    assert_eq!(waiting(&world, &queues.results), 0, "a preview moves nothing");
    let done = confirm(&world, "first", &offered).await?;
    assert!(done.text.contains("the move has begun"), "{done}");
    assert_eq!((waiting(&world, &queues.results), waiting(&world, &queues.result_dead_letters)), (2, 0));
    queues.result_dead_letters.send("later", now)?;
    let again = confirm(&world, "second", &offered).await?;
    assert_eq!((again.text, waiting(&world, &queues.results)), (done.text, 2), "nothing more is moved");
    Ok(())
}

/// The place where a call outside of DynamoDB fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    Never,
    Before,
    After,
}

/// Operations whose changes fail.
#[derive(Debug)]
struct Failing(OneMachine, Fails);

impl Failing {
    fn check(&self, at: Fails) -> Result<(), OperationError> {
        let cause = Arc::new(std::io::Error::other("no answer"));
        let error = OperationError { service: "any", call: "any", kind: OutageKind::Unavailable, cause };
        if self.1 == at { Err(error) } else { Ok(()) }
    }
}

#[async_trait]
impl Operations for Failing {
    async fn start(&self, function: Startable, input: &str) -> Result<(), OperationError> {
        self.check(Fails::Before)?;
        self.0.start(function, input).await?;
        self.check(Fails::After)
    }

    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError> {
        self.0.queue(queue).await
    }

    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError> {
        self.0.sample(queue).await
    }

    async fn move_back(&self, dead_letters: BankQueue) -> Result<MoveBack, OperationError> {
        self.check(Fails::Before)?;
        let moved = self.0.move_back(dead_letters).await?;
        self.check(Fails::After).map(|()| moved)
    }

    async fn reports(&self, after: &str, most: usize) -> Result<Vec<ReportFile>, OperationError> {
        self.0.reports(after, most).await
    }

    async fn report_link(&self, path: &str) -> Result<Option<String>, OperationError> {
        self.0.report_link(path).await
    }
}

async fn failing(world: &World, recorder: &Recorder, fails: Fails) -> Result<Functions> {
    let operations = Arc::new(Failing(world.outside.operations.clone(), fails));
    world.functions_in(&Dependencies { operations, ..world.dependencies_over(recorder).await })
}

/// Returns how often it happened since the last time.
fn happened(world: &World) -> usize {
    let results = &world.outside.operations.queues.results;
    let moved = results.receive(10, world.now().as_chrono());
    for message in &moved {
        results.delete(&message.receipt_handle);
    }
    moved.len() + started(world).len()
}

#[tokio::test]
async fn whatever_fails_the_intent_comes_first_and_it_happens_at_most_once() -> Result<()> {
    let mut cases = 0;
    for (name, form) in [("start-sweep", ""), MOVE_RESULTS] {
        for fails in [Fails::Never, Fails::Before, Fails::After] {
            let mut points = CrashPoints::new("console-operations", LASTING);
            while let Some(point) = points.next_case() {
                let world = bank().await?;
                world.outside.operations.queues.result_dead_letters.send("one", world.now().as_chrono())?;
                let offered = offered(&world, name, form).await?;
                let recorder = point.recorder();
                let functions = failing(&world, &recorder, fails).await?;
                let first = world.send_named(&functions, "first", offered.ask()).await?;
                let calls = recorder.take_operations().len();
                let (times, known) = (happened(&world), world.audit_trail().await?);
                let case = format!("{name}, {fails:?}, {point:?}: {first}");
                assert!(times <= 1 && (times == 0 || known.len() == 1), "nothing is done without an intent: {case}");
                let is_last = calls <= point.call;
                if is_last && fails == Fails::Never {
                    assert_eq!((first.status, times), (200, 1), "{case}");
                    continue;
                }
                if is_last {
                    // Only the operation fails.
                    note_case("console-operations", format_args!("{name} {fails:?} Pass"), point.call)?;
                    cases += 1;
                } else {
                    points.failed(format_args!("{name} {fails:?} {:?}", point.way.fate))?;
                }
                assert_eq!(first.status, 503, "{case}");
                // Later, so that it cannot be under way any more.
                world.set_clock("2026-11-20T09:10:00Z")?;
                let repeat = confirm(&world, "second", &offered).await.with_context(|| case.clone())?;
                let entry = only_entry(&world).await.with_context(|| case.clone())?;
                // Only if the trail had no intent is the repeat the first.
                assert_eq!(happened(&world), usize::from(known.is_empty()), "{case}");
                if entry.outcome.is_none() {
                    assert!(repeat.text.contains("Unknown: it may have happened"), "{case}: {repeat}");
                }
            }
            cases += points.cases();
        }
    }
    assert!(cases >= 30, "{cases} cases");
    Ok(())
}
