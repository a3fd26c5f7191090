//! Functions that operators start, and dead letters that they move: once, in the audit trail, and not in a pause.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use console::{BankQueue, MoveBack, OperationError, Operations, QueueState, ReportFile, SampledMessage, Startable};
use lambda_runtime::Context;
use payments_bank::{Dependencies, Functions, OneMachine};
use payments_machine::template::ScheduleSpec;
use payments_machine::{Fate, Handlers as _, Recorder, Template};
use payments_model::OutageKind;
use payments_tests::{CrashPoints, Way, World, note_case};
use serde_json::Value;

use super::acting::{action, confirm, offered, preview, trail, troubled};
use super::page;

type Fields = &'static [(&'static str, &'static str)];

/// Every start: its action, its fields, the function, and the input.
const STARTS: [(&str, Fields, &str, &str); 8] = [
    ("start-sweep", &[], "daily-due-sweeper", r#"{"action":"sweep"}"#),
    ("start-redrive", &[], "daily-due-sweeper", r#"{"action":"redrive"}"#),
    ("start-report", &[], "report", r#"{"action":"report"}"#),
    ("start-archive", &[], "archive", r#"{"action":"archive"}"#),
    ("start-recount", &[], "recount", r#"{"action":"recount"}"#),
    (
        "start-recount",
        &[("from", "2026-11-20"), ("to", "2026-11-21")],
        "recount",
        r#"{"action":"recount","from":"2026-11-20","to":"2026-11-21"}"#,
    ),
    ("look-for-redates", &[], "redate", r#"{"action":"look"}"#),
    (
        "redate",
        &[("calendar", "GB"), ("from", "2026-12-25"), ("to", "2026-12-28")],
        "redate",
        r#"{"action":"move","calendar":"GB","from":"2026-12-25","to":"2026-12-28"}"#,
    ),
];

async fn bank() -> Result<World> {
    World::with(|environment| environment.calendars = "GBP=GB".to_owned()).await
}

async fn paused(paused: &'static str) -> Result<World> {
    World::with(|environment| {
        environment.calendars = "GBP=GB".to_owned();
        environment.paused = paused;
    })
    .await
}

/// What was started and not invoked yet.
fn started(world: &World) -> Vec<(&'static str, Value)> {
    let taken = std::iter::from_fn(|| world.outside.operations.started.take(world.now().as_chrono()));
    taken.map(|(function, input)| (function, serde_json::from_str(&input).unwrap_or_default())).collect()
}

#[tokio::test]
async fn each_start_invokes_its_function_as_a_schedule_does() -> Result<()> {
    for (name, fields, function, input) in STARTS {
        let world = bank().await?;
        let bank = page(&world, "bank").await?;
        assert!(bank.contains(&format!("<form data-action=\"{name}\"")), "{name}: {bank}");
        let offered = offered(&world, name, fields).await?;
        assert_eq!(started(&world), [], "a preview starts nothing");
        let done = confirm(&world, "first", &offered).await?;
        ensure!(done.status == 200, "{name}: {done}");
        let input: Value = serde_json::from_str(input)?;
        assert_eq!(started(&world), [(function, input.clone())], "{name}");
        let all = trail(&world).await?;
        let [entry] = all.as_slice() else { bail!("{all:?}") };
        let arguments: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!((entry.intent.action.as_str(), entry.intent.arguments.clone()), (name, arguments.join("\n")));
        let result = &entry.outcome.as_ref().context("no outcome")?.result;
        assert!(done.text.contains(result.as_str()), "{result}: {done}");
        // Again: nothing more happens.
        let again = confirm(&world, "second", &offered).await?;
        assert_eq!((again.status, &again.text, started(&world)), (200, &done.text, vec![]));
        // The function takes the input.
        let mut context = Context::default();
        context.deadline = u64::try_from(world.now().as_chrono().timestamp_millis())? + 30_000;
        let outcome = world.functions().scheduled(function, input, context).await;
        outcome.map_err(anyhow::Error::msg).with_context(|| name)?;
    }
    Ok(())
}

#[test]
fn a_start_has_the_input_of_a_schedule() -> Result<()> {
    // These two have no schedule: an operator names their dates.
    for (name, fields, function, input) in STARTS.into_iter().filter(|(_, fields, ..)| fields.is_empty()) {
        let input: Value = serde_json::from_str(input)?;
        let is_same = |spec: &ScheduleSpec| {
            spec.package == function && serde_json::from_str::<Value>(&spec.input).is_ok_and(|known| known == input)
        };
        assert!(Template::ours()?.schedules().any(is_same), "{name}: {fields:?}");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_started_or_sent_that_is_paused() -> Result<()> {
    const LETTERS: (&str, Fields) = ("move-dead-letters", &[("queue", "request-dead-letters")]);
    const RESULTS: (&str, Fields) = ("move-dead-letters", &[("queue", "result-dead-letters")]);
    let starts = STARTS.map(|(name, fields, ..)| (name, fields));
    for pause in ["sending", "settling"] {
        let (running, world) = (bank().await?, paused(pause).await?);
        assert!(page(&world, "queues").await?.contains("Paused: "));
        let (queues, now) = (&world.outside.operations.queues, world.now().as_chrono());
        queues.request_dead_letters.send("a request", now)?;
        for (name, fields) in starts.into_iter().chain([LETTERS, RESULTS]) {
            let goes_on = ["look-for-redates", "redate"].contains(&name) || (name, fields) == RESULTS;
            let shown = preview(&world, name, fields).await?;
            assert_eq!(shown.contains("<form"), goes_on, "{pause}, {name}: {shown}");
            if goes_on {
                continue;
            }
            assert!(shown.contains("Resume with Paused=none"), "{shown}");
            // The pause began after the preview.
            let offered = offered(&running, name, fields).await?;
            let done = confirm(&world, "first", &offered).await?;
            assert!(done.status == 200 && done.text.contains("refused: "), "{pause}, {name}: {done}");
        }
        assert_eq!(started(&world), []);
        assert_eq!((queues.request_dead_letters.counts(now).visible, queues.requests.counts(now).visible), (1, 0));
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_started_says_why() -> Result<()> {
    let world = bank().await?;
    let none = World::open().await?;
    for (world, name, fields, why) in [
        (&world, "start-recount", &[("from", "2026-11-21"), ("to", "2026-11-20")][..], "is after"),
        (&world, "start-recount", &[("from", "2026-01-01")], "are 414 dates, too many"),
        (&world, "start-recount", &[("from", "1 May")], "an existing date"),
        (&world, "start-recount", &[("calendar", "GB")], "is unknown"),
        (&world, "start-sweep", &[("from", "2026-11-20")], "is unknown"),
        (&world, "redate", &[("from", "2026-12-25"), ("to", "2026-12-28")], "missing or empty"),
        (&world, "redate", &[("calendar", "T2"), ("from", "2026-12-25"), ("to", "2026-12-28")], "no currency has"),
        (&world, "redate", &[("calendar", "<b>"), ("from", "2026-12-25"), ("to", "2026-12-28")], "no currency has"),
        (&world, "redate", &[("calendar", "GB"), ("from", "2026-10-25"), ("to", "2026-10-28")], "days ago"),
        (&none, "redate", &[("calendar", "GB"), ("from", "2026-12-25"), ("to", "2026-12-28")], "no calendar is in use"),
        (&world, "move-dead-letters", &[], "missing or empty"),
        (&world, "move-dead-letters", &[("queue", "requests")], "cannot be moved back"),
        (&world, "move-dead-letters", &[("queue", "dispatch-failures")], "cannot be moved back"),
        (&world, "move-dead-letters", &[("queue", "payments")], "has to be one of"),
    ] {
        let fields: Vec<_> = fields.iter().copied().chain([("step", "preview")]).collect();
        let reply = world.send(action(name, &fields)).await?;
        assert_eq!(reply.status, 400, "{name}, {fields:?}: {reply}");
        assert!(reply.field("detail").contains(why), "{name}, {fields:?}: {reply}");
    }
    assert_eq!((trail(&world).await?, started(&world)), (vec![], vec![]));
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
    assert_eq!(shown.matches("<form data-action=\"move-dead-letters\"").count(), 2, "{shown}");
    let offered = offered(&world, "move-dead-letters", &[("queue", "result-dead-letters")]).await?;
    assert_eq!(queues.results.counts(now).visible, 0, "a preview moves nothing");
    let done = confirm(&world, "first", &offered).await?;
    assert!(done.status == 200 && done.text.contains("the move has begun"), "{done}");
    assert_eq!((queues.results.counts(now).visible, queues.result_dead_letters.counts(now).visible), (2, 0));
    queues.result_dead_letters.send("later", now)?;
    let again = confirm(&world, "second", &offered).await?;
    assert_eq!((again.text, queues.results.counts(now).visible), (done.text, 2), "nothing more is moved");
    Ok(())
}

/// Where a call outside of DynamoDB fails.
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

/// How often it happened.
fn happened(world: &World, name: &str) -> usize {
    let moved = world.outside.operations.queues.results.counts(world.now().as_chrono()).visible;
    if name == "move-dead-letters" { moved } else { started(world).len() }
}

#[tokio::test]
async fn whatever_fails_the_intent_comes_first_and_it_happens_at_most_once() -> Result<()> {
    const ACTS: [(&str, Fields); 2] =
        [("start-sweep", &[]), ("move-dead-letters", &[("queue", "result-dead-letters")])];
    let mut cases = 0;
    for (name, fields) in ACTS {
        for fails in [Fails::Never, Fails::Before, Fails::After] {
            let fates = [Fate::Refuse(500, "InternalServerError"), Fate::LoseRequest, Fate::LoseReply];
            let mut points = CrashPoints::new("console-operations", fates.map(Way::lasting));
            while let Some(point) = points.next_case() {
                let world = bank().await?;
                world.outside.operations.queues.result_dead_letters.send("one", world.now().as_chrono())?;
                let offered = offered(&world, name, fields).await?;
                let (_, recorder) = troubled(&world, point).await?;
                let functions = failing(&world, &recorder, fails).await?;
                let first = world.send_named(&functions, "first", offered.ask()).await?;
                let calls = recorder.take_operations().len();
                let (times, known) = (happened(&world, name), trail(&world).await?);
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
                let repeat = confirm(&world, "second", &offered).await?;
                assert_eq!(repeat.status, 200, "{case}: {repeat}");
                let all = trail(&world).await?;
                assert_eq!(all.len(), 1, "{case}");
                let again =
                    if name == "move-dead-letters" { happened(&world, name) - times } else { happened(&world, name) };
                // Only if the trail had no intent is the repeat the first.
                assert_eq!(again, usize::from(known.is_empty()), "{case}");
                if all[0].outcome.is_none() {
                    assert!(repeat.text.contains("Unknown: it may have happened"), "{case}: {repeat}");
                }
            }
            cases += points.cases();
        }
    }
    println!("{cases} cases");
    assert!(cases >= 30, "{cases} cases");
    Ok(())
}
