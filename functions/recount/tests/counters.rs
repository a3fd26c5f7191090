//! `recount` alone over the machine: counters that are right, and counters that have drifted.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_machine::given::Given;
use payments_model::recount::{drift_of, fields};
use payments_model::{DayCounts, Status};
use payments_store::DateCounters;
use recount::{Config, Recount, RecountOutcome};
use serde_json::{Value, json};

const DATE: &str = "2026-11-20";

/// `recount` on a machine with three scheduled payments that nobody has counted.
struct Alone {
    given: Given,
    recount: Recount,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        for key in ["first", "second", "third"] {
            given.scheduled(key, DATE).await?;
        }
        let recount = given.function("recount", Config::read, Recount::new)?;
        Ok(Self { given, recount })
    }

    async fn run(&self, action: &str) -> Result<RecountOutcome> {
        self.ask(json!({ "action": action, "from": DATE, "to": DATE, "ticket": "INC-4711" })).await
    }

    async fn ask(&self, request: Value) -> Result<RecountOutcome> {
        self.recount.handle(self.given.scheduled_event(request)?).await.map_err(anyhow::Error::from_boxed)
    }

    /// Counts this many payments.
    async fn count(&self, payments: i64) -> Result<()> {
        let mut counts = DayCounts::default();
        counts.shift(Status::Scheduled, payments);
        counts.shift_sum("GBP".parse()?, Status::Scheduled, i128::from(payments) * 500);
        let counted = self.given.store.correct_counters(DATE.parse()?, &DateCounters::default(), &counts).await?;
        assert!(counted, "it is counted already");
        Ok(())
    }
}

#[tokio::test]
async fn counters_that_equal_the_payments_are_exact() -> Result<()> {
    let alone = Alone::start().await?;
    alone.count(3).await?;
    let outcome = alone.run("recount").await?;
    assert_eq!((outcome.exact, outcome.drifted, outcome.dates_left), (1, 0, 0), "{outcome:?}");
    assert!(alone.given.raised()?.contains(&"DatesExact 1".to_owned()));
    Ok(())
}

#[tokio::test]
async fn counters_that_drifted_are_repaired_a_day_later_and_not_before() -> Result<()> {
    for counted in [0, 2, 4] {
        let alone = Alone::start().await?;
        if counted > 0 {
            alone.count(counted).await?;
        }
        for (action, passes, drifted, repaired, exact) in [
            ("recount", 0, 1, 0, 0),
            ("repair", 24, 1, 0, 0),
            ("recount", 1, 1, 0, 0),
            ("repair", 0, 0, 1, 0),
            ("recount", 0, 0, 0, 1),
        ] {
            alone.given.pass(TimeDelta::hours(passes));
            let outcome = alone.run(action).await?;
            let ends = (outcome.drifted, outcome.repaired, outcome.exact);
            assert_eq!(ends, (drifted, repaired, exact), "{action} of {counted}: {outcome:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_says_where_the_next_begins() -> Result<()> {
    let alone = Alone::start().await?;
    let mut event = alone.given.scheduled_event(json!({ "action": "recount", "from": DATE, "to": "2026-11-21" }))?;
    event.context.deadline = 0;
    let outcome = alone.recount.handle(event).await.map_err(anyhow::Error::from_boxed)?;
    assert_eq!((outcome.dates_left, outcome.next.as_deref(), outcome.left_because), (2, Some(DATE), Some("deadline")));
    Ok(())
}

#[tokio::test]
async fn a_repair_needs_two_persons_or_a_ticket_which_sets_off_an_alarm() -> Result<()> {
    let alone = Alone::start().await?;
    alone.run("recount").await?;
    alone.given.pass(TimeDelta::hours(25));
    drop(alone.given.raised()?);
    let repair = async |more: &str| {
        let mut request = json!({ "action": "repair", "from": DATE, "to": DATE });
        if !more.is_empty() {
            request["ticket"] = json!(more);
        }
        alone.recount.handle(alone.given.scheduled_event(request)?).await.map_err(anyhow::Error::from_boxed)
    };
    let refused = repair("").await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("a repair needs two persons"), "{refused}");
    let repaired = repair("INC-4711").await?;
    assert_eq!((repaired.repaired, repaired.ticket.as_deref()), (1, Some("INC-4711")));
    assert!(alone.given.raised()?.contains(&"FourEyesBypassed 1".to_owned()));
    assert_eq!(alone.run("recount").await?.exact, 1);
    Ok(())
}

/// The approval of two persons, and of the drift that is repaired.
#[tokio::test]
async fn a_repair_checks_the_approval_that_it_names() -> Result<()> {
    let alone = Alone::start().await?;
    alone.run("recount").await?;
    alone.given.pass(TimeDelta::hours(25));
    let date = DATE.parse()?;
    let found = alone.given.store.evidence(date, date).await?.remove(&date).and_then(|stored| stored.evidence);
    let found_at = found.context("no finding")?.found_at;
    let drift = |at| drift_of(date, "3 instead of 0", at, "0123456789ab");
    let ask = async |persons: (&str, &str), agreed: &str, drift: &str| {
        let name = alone.given.agreed(persons, ("repair-counters", &fields((date, date), agreed))).await?.to_string();
        alone.ask(json!({ "action": "repair", "from": DATE, "to": DATE, "approval": name, "drift": drift })).await
    };
    let (drifted, other) = (drift(found_at), drift(found_at.saturating_add(TimeDelta::seconds(1))));
    for (persons, agreed, sent, why) in [
        (("ana", "ana"), &drifted, &drifted, "another person has to decide"),
        (("ana", "ben"), &other, &drifted, "this is not the plan on which two persons decided"),
    ] {
        let refused = ask(persons, agreed, sent).await.err().context("it is refused")?.to_string();
        assert!(refused.contains(why), "{refused}");
    }
    // The two persons agreed on another finding of the date.
    alone.given.pass(TimeDelta::seconds(1));
    let left = ask(("ana", "ben"), &other, &other).await?;
    assert_eq!((left.drifted, left.repaired), (1, 0), "{left:?}");
    alone.given.pass(TimeDelta::seconds(1));
    let repaired = ask(("ana", "ben"), &drifted, &drifted).await?;
    assert_eq!((repaired.repaired, repaired.ticket), (1, None));
    Ok(())
}
