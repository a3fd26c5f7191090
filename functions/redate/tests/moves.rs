//! `redate` alone over the machine: payments of a closed date, which it moves by their rule.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_machine::given::Given;
use payments_model::{BusinessDate, Details};
use redate::{Config, Redate, RedateOutcome};
use serde_json::{Value, json};

/// A Friday on which the calendar of Great Britain is closed. The next open date is four days later.
const CHRISTMAS: &str = "2026-12-25";

/// `redate` on a machine whose calendar closes the date of a payment that was there before.
struct Alone {
    given: Given,
    redate: Redate,
    payment: Details,
}

impl Alone {
    async fn start(rule: &str) -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |environment| {
            "GBP=GB".clone_into(&mut environment.calendars);
            rule.clone_into(&mut environment.date_rule);
        });
        let given = given.await?;
        let payment = given.scheduled("christmas", CHRISTMAS).await?;
        given.scheduled("before", "2026-12-24").await?;
        let redate = given.function("redate", Config::read, Redate::new)?;
        Ok(Self { given, redate, payment })
    }

    async fn run(&self, action: &str) -> Result<RedateOutcome> {
        self.redate.handle(self.given.scheduled_event(asked(action))?).await.map_err(anyhow::Error::from_boxed)
    }

    /// Has two persons agree on the move of at most so many payments.
    async fn agreed(&self, persons: (&str, &str), payments: u64) -> Result<String> {
        let dates = ("2026-12-24".parse()?, CHRISTMAS.parse()?);
        let fields = payments_model::redate::fields("GB", dates, (1, payments));
        Ok(self.given.agreed(persons, ("redate", &fields)).await?.to_string())
    }

    /// The payment's date as its head has it, and as its details in force have it.
    async fn dates(&self) -> Result<(BusinessDate, BusinessDate)> {
        let store = &self.given.store;
        let head = store.head(&self.payment.key()).await?.context("the head is lost")?;
        let first = store.details(self.payment.payment_id).await?.context("the details are lost")?;
        Ok((head.due_date, store.details_in_force(&head, first).await?.due_date))
    }
}

fn asked(action: &str) -> Value {
    json!({ "action": action, "calendar": "GB", "from": "2026-12-24", "to": CHRISTMAS })
}

#[tokio::test]
async fn a_payment_moves_once_to_the_date_of_its_rule() -> Result<()> {
    for (rule, date) in [("following", "2026-12-29"), ("preceding", "2026-12-24")] {
        let (alone, date) = (Alone::start(rule).await?, date.parse()?);
        let looked = alone.run("look").await?;
        assert_eq!((looked.waiting, looked.moved, looked.is_complete), (1, 0, true), "{rule}: {looked:?}");
        assert_eq!(alone.given.raised()?, ["WaitingForRedate 1"], "{rule}");
        assert_eq!(alone.dates().await?.0, CHRISTMAS.parse()?, "{rule}");

        let moved = alone.run("move").await?;
        assert_eq!((moved.waiting, moved.moved), (0, 1), "{rule}: {moved:?}");
        assert_eq!(moved.examples, [alone.payment.payment_id.to_string()], "{rule}");
        assert_eq!(alone.given.raised()?, ["Redated 1"], "{rule}");
        assert_eq!(alone.dates().await?, (date, date), "{rule}");

        let again = alone.run("move").await?;
        assert_eq!((again.looked, again.moved), (0, 0), "{rule}: {again:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_payment_whose_rule_moves_nothing_stays() -> Result<()> {
    for (rule, none, refuse, metrics) in [("none", 1, 0, vec![]), ("refuse", 0, 1, vec!["LeftOnClosedDate 1"])] {
        let alone = Alone::start(rule).await?;
        let looked = alone.run("look").await?;
        assert_eq!((looked.waiting, looked.left.none, looked.left.refuse), (0, none, refuse), "{rule}: {looked:?}");
        assert_eq!(alone.given.raised()?, metrics, "{rule}");
        alone.run("move").await?;
        let date = CHRISTMAS.parse()?;
        assert_eq!(alone.dates().await?, (date, date), "{rule}");
    }
    Ok(())
}

#[tokio::test]
async fn a_move_without_time_moves_nothing_and_says_where_the_next_begins() -> Result<()> {
    let alone = Alone::start("following").await?;
    let mut event = alone.given.scheduled_event(asked("move"))?;
    event.context.deadline = 0;
    let outcome = alone.redate.handle(event).await.map_err(anyhow::Error::from_boxed)?;
    assert_eq!((outcome.moved, outcome.next.as_deref()), (0, Some(CHRISTMAS)));
    assert_eq!(alone.given.raised()?, ["RedateUnfinished 1"]);
    assert_eq!(alone.dates().await?.0, CHRISTMAS.parse()?);
    Ok(())
}

/// On 28 December 2026 the banks of Great Britain are closed, and T2 is open.
#[tokio::test]
async fn a_payment_whose_own_calendar_is_open_is_not_looked_at() -> Result<()> {
    let given = Given::at("2026-12-20T09:00:00Z", |environment| "GBP=GB,EUR=T2".clone_into(&mut environment.calendars));
    let given = given.await?;
    let euro = "EUR".parse()?;
    given.scheduled("closed", "2026-12-28").await?;
    given.scheduled_as("open", "2026-12-28", |instruction| instruction.money.currency = euro).await?;
    let redate = given.function("redate", Config::read, Redate::new)?;
    let event = given.scheduled_event(json!({ "action": "look" }))?;
    let looked = redate.handle(event).await.map_err(anyhow::Error::from_boxed)?;
    assert_eq!((looked.looked, looked.changed_meanwhile), (1, 0), "{looked:?}");
    Ok(())
}

/// One person moves a hundred, two as many as both saw, and a ticket moves all and says so.
#[tokio::test]
async fn a_move_of_more_payments_than_its_consent_covers_moves_none() -> Result<()> {
    let alone = Alone::start("following").await?;
    let ask = async |more: Value| {
        let mut request = asked("move");
        request.as_object_mut().context("an object")?.extend(more.as_object().cloned().unwrap_or_default());
        alone.redate.handle(alone.given.scheduled_event(request)?).await.map_err(anyhow::Error::from_boxed)
    };
    // With the one that is there, a hundred and one.
    for n in 0..100 {
        alone.given.scheduled(&format!("more-{n}"), CHRISTMAS).await?;
    }
    let approval = alone.agreed(("ana", "ben"), 99).await?;
    for (consent, most) in
        [(json!({}), 100), (json!({ "most": 101 }), 100), (json!({ "approval": approval, "most": 99 }), 99)]
    {
        let refused = ask(consent.clone()).await.err().context("it is refused")?.to_string();
        assert!(refused.contains(&format!("more than {most} scheduled payments")), "{consent}: {refused}");
        assert_eq!(alone.given.raised()?, Vec::<String>::new(), "{consent}");
    }
    let moved = ask(json!({ "ticket": "INC-4711" })).await?;
    assert_eq!((moved.moved, moved.ticket.as_deref()), (101, Some("INC-4711")));
    assert_eq!(alone.given.raised()?, ["FourEyesBypassed 1", "Redated 101"]);
    Ok(())
}

/// The approval of two persons, in time, and of this move. Then the same call can be repeated.
#[tokio::test]
async fn a_move_checks_the_approval_that_it_names() -> Result<()> {
    let alone = Alone::start("following").await?;
    let ask = async |name: &str, most: u64| {
        let mut request = asked("move");
        (request["approval"], request["most"]) = (json!(name), json!(most));
        alone.redate.handle(alone.given.scheduled_event(request)?).await.map_err(anyhow::Error::from_boxed)
    };
    let nobody = "2026-11-20T09:00:00Z_00000000-0000-5000-8000-000000000001";
    let (one, two) = (alone.agreed(("ana", "ana"), 2).await?, alone.agreed(("ana", "ben"), 1).await?);
    for (name, most, why) in [
        (nobody, 1, "no action of this name asked for a second person"),
        (&one, 2, "another person has to decide"),
        (&two, 2, "this is not the plan on which two persons decided"),
    ] {
        let refused = ask(name, most).await.err().context("it is refused")?.to_string();
        assert!(refused.contains(why) && refused.contains("send \"ticket\""), "{name}: {refused}");
    }
    alone.given.pass(TimeDelta::hours(4));
    let moved = ask(&two, 1).await?;
    assert_eq!((moved.moved, moved.ticket, alone.given.raised()?), (1, None, vec!["Redated 1".to_owned()]));
    alone.given.pass(TimeDelta::hours(1));
    let late = ask(&two, 1).await.err().context("it is refused")?.to_string();
    assert!(late.contains("the four hours for a second person are over"), "{late}");
    Ok(())
}
