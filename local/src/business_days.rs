//! Checks a stack's parameters of business days before they are deployed.
//!
//! CloudFormation accepts what the functions reject when they start.

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_model::UtcSecond;

/// The parameters of a stack, as `sam deploy` gets them.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Parameters {
    /// The stack's `BusinessTimeZone`, such as Europe/London.
    #[arg(long, value_name = "ZONE")]
    pub time_zone: String,

    /// The stack's `Calendars`: currencies with a calendar each, such as EUR=T2,GBP=GB. Without any, every day is open.
    #[arg(long, default_value = "", value_name = "CURRENCY=CALENDAR,…")]
    pub calendars: String,

    /// The stack's `CutOffs`: times from 04:00 to 23:59 by each calendar's clock, such as T2=16:00.
    #[arg(long, default_value = "", value_name = "CALENDAR=hh:mm,…")]
    pub cut_offs: String,

    /// The stack's `CutOffLeadMinutes`: how many minutes before a cut-off a payment has to be created and due.
    #[arg(long, default_value = "10", value_name = "MINUTES")]
    pub cut_off_lead_minutes: String,

    /// The stack's `DateRule`: none, following, preceding or refuse.
    #[arg(long, default_value = "none", value_name = "RULE")]
    pub date_rule: String,
}

impl Parameters {
    /// Reads them as the functions do. Returns the next last instant for a payment of each calendar, one line each.
    ///
    /// # Errors
    /// What a function would say when it starts.
    pub fn check(&self, now: UtcSecond) -> Result<String> {
        let get = |name: &str| {
            Some(match name {
                "BUSINESS_TIME_ZONE" => self.time_zone.clone(),
                "CALENDARS" => self.calendars.clone(),
                "CUT_OFFS" => self.cut_offs.clone(),
                "CUT_OFF_LEAD_MINUTES" => self.cut_off_lead_minutes.clone(),
                "DATE_RULE" => self.date_rule.clone(),
                _ => return None,
            })
        };
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
        let [time_zone, calendars, cut_offs] = [time_zone, calendars, cut_offs].map(str::to_owned);
        let (cut_off_lead_minutes, date_rule) = ("10".to_owned(), "following".to_owned());
        let parameters = Parameters { time_zone, calendars, cut_offs, cut_off_lead_minutes, date_rule };
        parameters.check("2026-11-25T10:00:00Z".parse()?)
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
