//! The outcomes that scheduled runs leave: the last run of each job, and the figures of a day.

use chrono::TimeDelta;
use payments_machine::{Handlers as _, Template};
use payments_model::{DayCounts, Status, UtcSecond};
use payments_store::{Job, LastRun, Store};
use payments_tests::prelude::*;

use crate::redate;

const TODAY: &str = "2026-11-20";

/// The last run of a job.
async fn last(store: &Store, job: Job) -> Result<LastRun> {
    let runs: Vec<LastRun> = store.last_runs().await?.into_iter().collect::<Result<_, _>>()?;
    runs.into_iter().find(|run| run.job == job).with_context(|| format!("no last run of {job}"))
}

fn run_of(job: Job, ended_at: &str, claimed: u64) -> Result<LastRun> {
    let ended_at: UtcSecond = ended_at.parse()?;
    Ok(LastRun::new(job, (ended_at, ended_at), Some(&json!({ "claimed": claimed }))))
}

#[tokio::test]
async fn each_schedule_leaves_the_outcome_that_its_function_answers() -> Result<()> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    let store = world.store().await;
    let mut jobs = BTreeSet::new();
    for spec in Template::ours()?.schedules() {
        let input: Value = serde_json::from_str(&spec.input)?;
        let answer = world.run(spec.package.as_str(), input.clone()).await?;
        // An undo has items of its own, which say how far it is.
        if spec.package.as_str() == "undo" {
            continue;
        }
        let job = input["action"].as_str().and_then(Job::from_name).with_context(|| format!("no job: {input}"))?;
        let run = last(&store, job).await?;
        assert_eq!((run.outcome, run.failed), (Some(answer), None), "{input}");
        assert_eq!(run.began_at, world.now());
        jobs.insert(job);
    }
    // Only an operator moves payments.
    assert!(jobs.insert(Job::Move));
    assert_eq!(jobs.into_iter().collect::<Vec<_>>(), Job::ALL);
    let bank = redate::bank(&world, &world.recorder, redate::england).await?;
    redate::run(&bank, "move").await?;
    assert_eq!(last(&store, Job::Move).await?.outcome.context("no outcome")?["isComplete"], true);
    Ok(())
}

#[tokio::test]
async fn of_two_runs_at_once_the_later_end_stays() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    for (ended_at, claimed) in [
        ("2026-11-20T09:00:05Z", 1),
        // A run that ends in the same second or later replaces the first one.
        ("2026-11-20T09:00:05Z", 2),
        ("2026-11-20T09:00:04Z", 3),
    ] {
        store.put_last_run(&run_of(Job::Sweep, ended_at, claimed)?).await?;
    }
    store.put_last_run(&run_of(Job::Archive, "2026-11-20T09:00:00Z", 4)?).await?;
    assert_eq!(last(&store, Job::Sweep).await?, run_of(Job::Sweep, "2026-11-20T09:00:05Z", 2)?);
    // A later run without the attributes of an earlier one.
    let failed = run_of(Job::Sweep, "2026-11-20T09:00:06Z", 5)?.with_failure(Some("no table"));
    for run in [failed, run_of(Job::Sweep, "2026-11-20T09:00:07Z", 6)?] {
        store.put_last_run(&run).await?;
        assert_eq!(last(&store, Job::Sweep).await?, run);
    }
    Ok(())
}

/// Functions whose calls about this partition fail.
async fn failing_at(world: &World, partition: &'static str) -> Result<Functions> {
    world.functions_meeting(Fate::LoseRequest, move |call| call.input().to_string().contains(partition)).await
}

#[tokio::test]
async fn a_run_whose_outcome_cannot_be_put_succeeds() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    for partition in ["RUNS#", "COUNTS#"] {
        let functions = failing_at(&world, partition).await?;
        // These two work with the counters.
        let needs = |package: &str| partition == "COUNTS#" && ["recount", "seal"].contains(&package);
        for spec in Template::ours()?.schedules().filter(|spec| !needs(&spec.package)) {
            let run = functions.scheduled(&spec.package, serde_json::from_str(&spec.input)?, context(NO_DEADLINE));
            run.await.map_err(anyhow::Error::msg).with_context(|| format!("{} without {partition}", spec.name))?;
        }
        let runs = store.last_runs().await?.len();
        assert_eq!(runs == 0, partition == "RUNS#", "{partition}: {runs} last runs");
    }
    assert_eq!(store.figures(TODAY.parse()?).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_failed_run_leaves_its_error() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    let refused = Fate::Refuse(400, "ValidationException");
    let functions = world.functions_meeting(refused, |call| call.input()["IndexName"].is_string()).await?;
    for (function, job) in [
        ("daily-due-sweeper", Job::Sweep),
        ("daily-due-sweeper", Job::Redrive),
        ("archive", Job::Archive),
        ("report", Job::Report),
    ] {
        let input = json!({ "action": job.as_str() });
        ensure!(functions.scheduled(function, input, context(NO_DEADLINE)).await.is_err(), "{job} succeeds");
        let run = last(&store, job).await?;
        assert!(run.failed.as_ref().is_some_and(|failed| failed.starts_with("DynamoDB rejected Query: ")), "{run:?}");
        assert!(run.outcome.is_some(), "{run:?}");
    }
    Ok(())
}

#[tokio::test]
async fn publish_puts_its_outcome_each_minute() -> Result<()> {
    let (world, pass) = (World::open().await?, |world: &World| world.passing()(TimeDelta::minutes(1)));
    let store = world.store().await;
    for _ in 0..3 {
        pass(&world);
        world.run("publish", json!({ "action": "publish" })).await?;
        assert_eq!(last(&store, Job::Publish).await?.ended_at, world.now());
    }
    Ok(())
}

#[tokio::test]
async fn each_sweep_leaves_a_sample_of_todays_counts() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    let mut counting = Counting::start(&world).await?;
    let today = TODAY.parse()?;
    world.set_clock("2026-11-20T09:00:07Z")?;
    world.create("tenant", "a", &order(TODAY)).await?;
    world.create("tenant", "b", &order("2026-11-21")).await?;
    let mut want = BTreeMap::new();
    for (at, scheduled, pending) in
        [("2026-11-20T09:00:07Z", 1, 0), ("2026-11-20T09:05:00Z", 0, 1), ("2026-11-20T09:10:01Z", 0, 1)]
    {
        world.set_clock(at)?;
        counting.count(world.functions()).await?;
        world.sweep().await?;
        let mut counts = DayCounts::default();
        counts.shift(Status::Scheduled, scheduled);
        counts.shift(Status::Pending, pending);
        want.insert(at.parse()?, counts);
        assert_eq!(store.figures(today).await?.context("no figures")?.samples, want);
    }
    // A second sweep of the same five minutes replaces the sample of the first.
    world.set_clock("2026-11-20T09:14:00Z")?;
    world.sweep().await?;
    let samples = store.figures(today).await?.context("no figures")?.samples;
    assert_eq!(samples.into_keys().map(|at| at.to_string()).collect::<Vec<_>>()[2..], ["2026-11-20T09:14:00Z"]);
    assert_eq!(store.figures("2026-11-21".parse()?).await?, None, "a date that is not today");
    Ok(())
}

#[tokio::test]
async fn a_run_of_the_report_adds_its_failures_once() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    let today = TODAY.parse()?;
    let failures = [("AM04".parse()?, 2), ("AC01".parse()?, 1)].into();
    for run in [1, 1, 3, 2, 3] {
        store.add_failures(today, run, &failures).await?;
    }
    store.add_sample(today, "2026-11-20T09:00:00Z".parse()?, &DayCounts::default()).await?;
    let figures = store.figures(today).await?.context("no figures")?;
    assert_eq!(figures.failures, [("AM04", 4), ("AC01", 2)].map(|(code, count)| (code.to_owned(), count)).into());
    assert_eq!((figures.reported_run, figures.samples.len()), (Some(3), 1));
    Ok(())
}

/// An outcome costs as much for a thousand payments as for one: no payment's life has a unit more.
#[tokio::test]
async fn a_run_costs_one_unit_and_a_sweep_also_a_sample() -> Result<()> {
    let world = World::open().await?;
    for number in 0..30 {
        world.create("tenant", &number.to_string(), &order(TODAY)).await?;
    }
    for (function, action, want) in [
        ("daily-due-sweeper", "sweep", 2),
        ("daily-due-sweeper", "sweep", 2),
        ("daily-due-sweeper", "redrive", 1),
        ("report", "report", 1),
        ("archive", "archive", 1),
        ("recount", "recount", 1),
        ("redate", "look", 1),
        ("publish", "publish", 1),
    ] {
        world.forget();
        world.run(function, json!({ "action": action })).await?;
        let runs = world.take_units().into_iter().filter(|((_, place), _)| place == "history#RUNS");
        assert_eq!(runs.map(|(_, units)| units).sum::<u64>(), want, "{action}");
    }
    Ok(())
}

/// The failures of three payments: two codes, of two due dates.
#[tokio::test]
async fn a_report_that_is_finished_twice_adds_its_failures_once() -> Result<()> {
    for (fate, stops_at) in [
        (Fate::Pass, "nothing"),
        // The run ends before the figures, after the first date's, after both, and before it is marked as finished.
        (Fate::LoseRequest, r#""S":"2026-11-20""#),
        (Fate::LoseReply, r#""S":"2026-11-20""#),
        (Fate::LoseRequest, r#""S":"2026-11-21""#),
        (Fate::LoseReply, r#""S":"2026-11-21""#),
        (Fate::LoseRequest, "finished = :true"),
        (Fate::LoseReply, "finished = :true"),
    ] {
        let world = World::open().await?;
        for (date, codes) in [(TODAY, &["AM04", "NONE"][..]), ("2026-11-21", &["AC01"])] {
            world.set_clock(&format!("{date}T09:00:00Z"))?;
            let mut results = Vec::new();
            for code in codes {
                let id = world.create("tenant", code, &order(date)).await?;
                results.push(failed(&id, &order(date), code, "no"));
            }
            world.sweep().await?;
            world.settle(&results).await?;
        }
        let is_there = move |call: &Call| call.operation == "UpdateItem" && call.input().to_string().contains(stops_at);
        let functions = world.functions_meeting(fate, is_there).await?;
        let input = || json!({ "action": "report" });
        let first = functions.scheduled("report", input(), context(NO_DEADLINE)).await;
        for _ in 0..2 {
            world.run("report", input()).await?;
        }
        let store = world.store().await;
        let figures =
            async |date: &str| Ok::<_, anyhow::Error>(store.figures(date.parse()?).await?.unwrap_or_default());
        let (one, other) = (figures(TODAY).await?.failures, figures("2026-11-21").await?.failures);
        let named = format!("{fate:?} at {stops_at}: {first:?}");
        let whole = [("AM04".to_owned(), 1), ("NARR".to_owned(), 1)].into();
        // The report does not wait for figures that cannot be written, nor for those of later dates.
        let lacks = [
            fate == Fate::LoseRequest && stops_at.contains("-20"),
            fate == Fate::LoseRequest && stops_at.contains("\"S"),
        ];
        assert_eq!(one, if lacks[0] { BTreeMap::new() } else { whole }, "{named}");
        assert_eq!(other, if lacks[1] { BTreeMap::new() } else { [("AC01".to_owned(), 1)].into() }, "{named}");
        assert!(store.last_report_run().await?.is_some_and(|run| run.finished && run.number == 1), "{named}");
    }
    Ok(())
}

/// Creates a payment of today, which fails.
async fn fail_one(world: &World, key: &str) -> Result<()> {
    let id = world.create("tenant", key, &order(TODAY)).await?;
    world.sweep().await?;
    world.settle(&[failed(&id, &order(TODAY), "AM04", "no")]).await.map(drop)
}

#[tokio::test]
async fn figures_that_cannot_be_written_do_not_hold_up_reports_and_the_day_says_what_they_lack() -> Result<()> {
    let world = World::open().await?;
    let is_of_figures =
        |call: &Call| call.operation == "UpdateItem" && call.input().to_string().contains("reportedRun");
    let functions = world.functions_meeting(Fate::Refuse(400, "ThrottlingException"), is_of_figures).await?;
    let (store, input) = (world.store().await, || json!({ "action": "report" }));
    for (number, key) in [(1, "a"), (2, "b")] {
        fail_one(&world, key).await?;
        let outcome = functions.scheduled("report", input(), context(NO_DEADLINE)).await.map_err(anyhow::Error::msg)?;
        assert_eq!(outcome["moreWaits"], false, "{outcome}");
        let last = store.last_report_run().await?.context("no run")?;
        assert_eq!((last.number, last.finished), (number, true));
    }
    fail_one(&world, "c").await?;
    world.run("report", input()).await?;
    world.count_all().await?;
    let figures = store.figures(TODAY.parse()?).await?.context("no figures")?;
    assert_eq!(figures.failures, [("AM04".to_owned(), 1)].into());
    let day = world.send(Ask::get("/console/views/day")).await?;
    assert!(day.text.contains("Not counted by reason</span></td><td class=\"num\">2</td>"), "{day}");
    Ok(())
}

#[tokio::test]
async fn damaged_figures_do_not_stop_the_report() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "a", &order(TODAY)).await?;
    world.sweep().await?;
    world.settle(&[failed(&id, &order(TODAY), "AM04", "no")]).await?;
    let history = world.environment.tables.history.clone();
    let figures = payments_tests::tables::key("RUNS#FIGURES", TODAY);
    world.set(&history, &figures, "failures", Some(text("damaged"))).await?;
    assert_eq!(world.run("report", json!({ "action": "report" })).await?["moreWaits"], false);
    assert!(world.store().await.last_report_run().await?.is_some_and(|run| run.finished));
    Ok(())
}

#[tokio::test]
async fn a_redrive_tells_pending_payments_by_their_last_request_and_names_stuck_ones() -> Result<()> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    let id = world.create("tenant", "a", &order(TODAY)).await?;
    world.sweep().await?;
    let store = world.store().await;
    for (now, pending) in [
        ("2026-11-20T09:59:00Z", json!([{ "attempt": 1, "payments": 1, "oldest": "2026-11-20T09:00:00Z" }])),
        ("2026-11-20T10:00:00Z", json!([{ "attempt": 2, "payments": 1, "oldest": "2026-11-20T09:00:00Z" }])),
        ("2026-11-20T11:00:00Z", json!([{ "attempt": 2, "payments": 1, "oldest": "2026-11-20T09:00:00Z" }])),
        ("2026-11-27T09:00:00Z", json!([{ "attempt": 8, "payments": 1, "oldest": "2026-11-20T09:00:00Z" }])),
        ("2026-12-02T09:00:00Z", json!([{ "attempt": 8, "payments": 1, "oldest": "2026-11-20T09:00:00Z" }])),
    ] {
        world.set_clock(now)?;
        world.run("daily-due-sweeper", json!({ "action": "redrive" })).await?;
        let outcome = last(&store, Job::Redrive).await?.outcome.context("no outcome")?;
        assert_eq!(outcome["requests"], pending, "{now}");
        let is_stuck = now > "2026-12";
        let named = json!([{
            "pendingSince": "2026-11-20T09:00:00Z", "paymentId": id, "accountId": "tenant",
            "amountMinor": order(TODAY)["amountMinor"], "currency": order(TODAY)["currency"], "dueDate": TODAY,
        }]);
        let want = if is_stuck { named } else { json!([]) };
        assert_eq!((&outcome["stuck"], &outcome["stuckPayments"]), (&json!(u64::from(is_stuck)), &want), "{now}");
    }
    Ok(())
}

#[tokio::test]
async fn a_sweep_tells_for_how_long_the_payments_left_could_have_been_claimed() -> Result<()> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    world.create("tenant", "a", &order(TODAY)).await?;
    world.set_clock("2026-11-20T09:20:00Z")?;
    let claims = |call: &Call| call.operation == "UpdateItem" && !call.input().to_string().contains("RUNS#");
    let throttled = world.functions_meeting(Fate::Refuse(400, "ThrottlingException"), claims).await?;
    let input = json!({ "action": "sweep" });
    let sweep = throttled.scheduled("daily-due-sweeper", input, context(NO_DEADLINE)).await;
    sweep.map_err(anyhow::Error::msg)?;
    let outcome = last(&world.store().await, Job::Sweep).await?.outcome.context("no outcome")?;
    assert_eq!((&outcome["remaining"], &outcome["claimed"]), (&json!(1), &json!(0)), "{outcome}");
    let left = outcome["oldestLeftSeconds"].as_u64().context("no time")?;
    assert!((1_200..1_300).contains(&left), "{outcome}");
    world.sweep().await?;
    let outcome = last(&world.store().await, Job::Sweep).await?.outcome.context("no outcome")?;
    assert_eq!(outcome["oldestLeftSeconds"], Value::Null, "{outcome}");
    Ok(())
}

#[tokio::test]
async fn a_look_tells_what_waits_by_date_and_calendar() -> Result<()> {
    let world = World::open().await?;
    // A bank with another calendar accepts rules, and does not know the holiday.
    let other = |environment: &mut Environment| environment.calendars = "USD=FED".to_owned();
    let before = redate::bank(&world, &world.recorder, other).await?;
    for (number, rule) in ["following", "preceding", "none"].into_iter().enumerate() {
        let order = order_with(redate::HOLIDAY, json!({ "dateRule": rule }));
        let ask = Ask::create("tenant", &number.to_string(), &order);
        world.send_to(&before, ask).await?.with_status(201)?;
    }
    let bank = redate::bank(&world, &world.recorder, redate::england).await?;
    redate::run(&bank, "look").await?;
    let outcome = last(&world.store().await, Job::Look).await?.outcome.context("no outcome")?;
    let waiting = json!([{ "date": redate::HOLIDAY, "calendar": "GB", "count": 2 }]);
    assert_eq!((&outcome["waiting"], &outcome["waitingDates"]), (&json!(2), &waiting));
    redate::run(&bank, "move").await?;
    let outcome = last(&world.store().await, Job::Move).await?.outcome.context("no outcome")?;
    assert_eq!((&outcome["moved"], &outcome["waitingDates"]), (&json!(2), &json!([])));
    Ok(())
}
