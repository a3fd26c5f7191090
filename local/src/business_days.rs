//! Checks a stack's parameters of business days before they are deployed.
//!
//! CloudFormation accepts what the functions reject when they start.

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_machine::Environment;
use payments_model::UtcSecond;

/// A bank's calendars, cut-offs and date rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Dates {
    /// Currencies with a calendar each, such as EUR=T2,GBP=GB: the stack's `Calendars`. Without it, a local bank has
    /// EUR=T2,GBP=GB,USD=FED, and a stack none.
    #[arg(long, value_name = "CURRENCY=CALENDAR,…")]
    pub calendars: Option<String>,

    /// Times from 04:00 to 23:59 by each calendar's clock, such as T2=16:00: the stack's `CutOffs`.
    #[arg(long, value_name = "CALENDAR=hh:mm,…")]
    pub cut_offs: Option<String>,

    /// Minutes before a cut-off by which a payment has to be created and due, 10 by default: the stack's `CutOffLeadMinutes`.
    #[arg(long, value_name = "MINUTES")]
    pub cut_off_lead_minutes: Option<String>,

    /// The rule for closed dates: none (by default), following, preceding or refuse: the stack's `DateRule`.
    #[arg(long, value_name = "RULE")]
    pub date_rule: Option<String>,
}

impl Dates {
    /// Sets what was chosen, and else these calendars.
    pub(crate) fn tell(&self, environment: &mut Environment, calendars: &str) {
        environment.calendars = self.calendars.clone().unwrap_or_else(|| calendars.to_owned());
        let chosen = [
            (&mut environment.cut_offs, &self.cut_offs),
            (&mut environment.cut_off_lead_minutes, &self.cut_off_lead_minutes),
            (&mut environment.date_rule, &self.date_rule),
        ];
        for (variable, chosen) in chosen {
            if let Some(chosen) = chosen {
                variable.clone_from(chosen);
            }
        }
    }
}

/// The parameters of a stack, as `sam deploy` gets them. Without calendars, every day is open.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Parameters {
    /// The stack's `BusinessTimeZone`, such as Europe/London.
    #[arg(long, value_name = "ZONE")]
    pub time_zone: String,

    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields are the flags")]
    pub dates: Dates,
}

impl Parameters {
    /// Reads them as the functions do. Returns the next last instant for a payment of each calendar, one line each.
    ///
    /// # Errors
    /// The error of a function that starts with these settings.
    pub fn check(&self, now: UtcSecond) -> Result<String> {
        let mut environment = Environment::at(String::new());
        environment.time_zone.clone_from(&self.time_zone);
        self.dates.tell(&mut environment, "");
        let get = |name: &str| environment.get("ingest", name);
        let days = Lookup::new(&get).business_days().context("the functions would not start")?;
        if days.is_always_open() {
            return Ok("The parameters are valid. Every day is open.".to_owned());
        }
        let mut lines = vec![format!("The parameters are valid. Without a dateRule, the rule is {}.", days.rule())];
        for (id, (rail, currencies)) in days.calendars() {
            let currencies = currencies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let last = days.next_last_call(&rail, now);
            let last = last.map_or("has no cut-off".to_owned(), |last| format!("takes the next payment until {last}"));
            lines.push(format!("{id} ({currencies}) {last}"));
        }
        Ok(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(time_zone: &str, calendars: &str, cut_offs: &str) -> Result<String> {
        let [calendars, cut_offs, date_rule] = [calendars, cut_offs, "following"].map(|text| Some(text.to_owned()));
        let dates = Dates { calendars, cut_offs, cut_off_lead_minutes: None, date_rule };
        Parameters { time_zone: time_zone.to_owned(), dates }.check("2026-11-25T10:00:00Z".parse()?)
    }

    #[test]
    fn what_the_functions_reject_is_rejected_before_it_is_deployed() {
        let rejected = check("America/Los_Angeles", "EUR=T2", "T2=08:00").expect_err("before the day");
        let rejected = format!("{rejected:#}");
        assert!(
            rejected.starts_with(
                "the functions would not start: the environment variable CUT_OFFS is \"T2=08:00\": on 2026-01-02 the cut-off of T2 comes before"
            ),
            "{rejected}"
        );
        assert!(check("Europe/Berlin", "EUR=T9", "").is_err() && check("Europe/Berln", "", "").is_err());
        let valid = "The parameters are valid. Without a dateRule, the rule is following.\n\
                     GB (GBP) has no cut-off\nT2 (EUR) takes the next payment until 2026-11-25T14:50:00Z";
        assert_eq!(check("Europe/Berlin", "EUR=T2,GBP=GB", "T2=16:00").ok().as_deref(), Some(valid));
        let open = "The parameters are valid. Every day is open.";
        assert_eq!(check("Europe/Berlin", "", "T2=16:00").ok().as_deref(), Some(open));
    }
}
