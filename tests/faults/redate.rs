//! Payments of Saturdays in a bank that had no calendar when they were created, and has one now.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, TimeDelta, Weekday};
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_lab::facts::intent::Intent;
use payments_machine::invocation::context;
use payments_model::{BusinessDays, DateRule};
use payments_tests::Ask;
use redate::RedateOutcome;
use serde_json::json;

use crate::kit::fixture::{Fixture, timeout_of};

/// The first instant of the next open date after a Saturday.
fn open_after(saturday: NaiveDate) -> Result<String> {
    let zone = "Europe/London".parse()?;
    let rule = DateRule::Following;
    let lead = TimeDelta::zero();
    let days = BusinessDays::new(zone, "GBP=GB".parse()?, Default::default(), rule, lead)?;
    let now = format!("{saturday}T00:00:00Z").parse()?;
    let due = days.due(saturday.to_string().parse()?, "GBP".parse()?, None, now);
    Ok(due.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.at.to_string())
}

impl Fixture {
    /// The next Saturday after today.
    fn saturday(&self) -> NaiveDate {
        let mut date = self.time.now().date_naive() + TimeDelta::days(1);
        while date.weekday() != Weekday::Sat {
            date += TimeDelta::days(1);
        }
        date
    }

    /// Creates payments of the noon of the next Saturday.
    pub(crate) async fn of_saturday(&self, count: usize) -> Result<Vec<Intent>> {
        let (account, noon) = (self.new_name(), format!("{}T12:00:00Z", self.saturday()));
        let mut intents = Vec::new();
        for _ in 0..count {
            let mut intent = self.intent(&account);
            intent.scheduled_for.clone_from(&noon);
            let reply = self.create(&mut intent).await?;
            anyhow::ensure!(reply.status == 201, "{reply}");
            intents.push(intent);
        }
        Ok(intents)
    }

    /// Creates two payments of the next Saturday, one of which was amended, and notes that the bank moves them.
    pub(crate) async fn to_be_redated(&self) -> Result<Vec<Intent>> {
        // So that no case delivers the records of those before it again.
        self.dispatch_all().await?;
        let mut intents = self.of_saturday(2).await?;
        let place = self.want_amended(&mut intents[0], 1, 30)?;
        self.amend(&mut intents[0], place).await?;
        let before = intents[0].amendments[place].name(intents[0].id()?).unwrap_or_default();
        self.want_redated(&mut intents[0], (2, &before))?;
        self.want_redated(&mut intents[1], (1, ""))?;
        Ok(intents)
    }

    /// Notes that the bank moves a payment that has this version, and the content of the details of this name.
    pub(crate) fn want_redated(&self, intent: &mut Intent, (seen, before): (u64, &str)) -> Result<usize> {
        let id = intent.id()?.to_owned();
        let content = intent.in_force(&id, before).context("no such content")?;
        let date = content.due().context("no due time")?.date_naive();
        intent.amendments.push(content.redated((seen, before), open_after(date)?));
        Ok(intent.amendments.len() - 1)
    }

    /// Advances the time to noon of the next Saturday.
    pub(crate) fn pass_to_saturday(&self) -> Result<()> {
        self.pass_to(self.saturday(), 12)
    }

    /// Advances the time to a morning in the week after the last Saturday, when all moved payments are due.
    pub(crate) fn pass_over_the_weekend(&self) -> Result<()> {
        let now = self.time.now().date_naive();
        self.pass_to(now + TimeDelta::days(5), 9)
    }

    fn pass_to(&self, date: NaiveDate, hour: u32) -> Result<()> {
        let time = NaiveTime::from_hms_opt(hour, 0, 0).context("an hour")?;
        let until: DateTime<chrono::Utc> = date.and_time(time).and_utc();
        self.time.pass(until - self.time.now());
        Ok(())
    }

    /// Moves payments of the date for which these are scheduled.
    pub(crate) async fn redate(&self, functions: &Functions, intents: &[Intent]) -> Result<RedateOutcome> {
        let date = intents.first().and_then(|intent| intent.scheduled_for.get(..10)).context("no date")?;
        let context = context(self.time.now() + timeout_of("redate")?);
        let request = json!({ "action": "move", "calendar": "GB", "from": date, "to": date });
        let event = LambdaEvent::new(serde_json::from_value(request)?, context);
        let outcome = functions.redate.handle(event).await;
        outcome.map_err(|error| anyhow::Error::from_boxed(error).context("redate failed"))
    }

    /// Notes which of the bank's amendments are in force.
    pub(crate) async fn note_redates(&self, intents: &mut [Intent]) -> Result<()> {
        for intent in intents {
            let path = format!("/accounts/{}/payments/{}", intent.account, intent.id()?);
            let payment = self.world.send(Ask::get(&path)).await?;
            for amendment in intent.amendments.iter_mut().filter(|amendment| amendment.redates.is_some()) {
                let is_due = amendment.wanted.due_at().is_some_and(|due_at| payment.field("dueAt") == due_at);
                amendment.accepted |= is_due && payment.body["version"] == amendment.seen + 1;
            }
        }
        Ok(())
    }
}
