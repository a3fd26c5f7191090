//! Runs that an operator starts: those that a schedule starts by itself, and moves of payments whose date was closed.
//!
//! The function is invoked asynchronously, so nobody waits for its answer. The dialog asks for its last run instead.

mod redating;
mod repairing;

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::second::ALONE;
use payments_model::{ActionName, BusinessDate, Status, recount, redate};
use payments_store::Job;
use serde_json::{Map, Value};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::actions::run::redating::{Shown, numbers};
use crate::actions::standstill::Standstill;
use crate::function::Console;
use crate::guides::{PAYMENTS_OVERDUE, PAYMENTS_STUCK_PENDING, WAITING_FOR_REDATE};
use crate::html::day;
use crate::operations::Startable;
use crate::panel::panel;
use crate::runs::last;
use crate::times::Times;
use crate::views::waiting::{Late, late_table};

/// The longest date, in bytes.
const MAX_DATE_BYTES: usize = 10;

/// The longest id of a calendar, in bytes.
const MAX_CALENDAR_BYTES: usize = 20;

/// The longest number that a preview showed, in bytes.
const MAX_NUMBER_BYTES: usize = 20;

/// The longest drift that a preview showed, in bytes: 31 dates of 250.
const MAX_DRIFT_BYTES: usize = 8_000;

/// The most late payments that a preview shows.
const LATE_SHOWN: u16 = 1;

/// A run to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Run {
    /// A sweep.
    Sweep,
    /// A redrive.
    Redrive,
    /// A report.
    Report,
    /// The archive.
    Archive,
    /// A recount of the dates from the first to the last, or of those of each night.
    Recount { from: Option<BusinessDate>, to: Option<BusinessDate> },
    /// A repair of the counters of the dates from the first to the last, whose drift the preview showed.
    Repair { from: BusinessDate, to: BusinessDate, drift: Option<String> },
    /// A count of the payments that wait for a redate.
    Look,
    /// A redate: the payments of a calendar's closed dates move.
    Redate { calendar: String, from: BusinessDate, to: BusinessDate, shown: Option<Shown> },
}

impl Run {
    /// Reads the fields of the action with this name; `None` if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<Self, Problem>> {
        Some(match name {
            "start-sweep" => Ok(Self::Sweep),
            "start-redrive" => Ok(Self::Redrive),
            "start-report" => Ok(Self::Report),
            "start-archive" => Ok(Self::Archive),
            "start-recount" => date(form, "from").and_then(|from| Ok(Self::Recount { from, to: date(form, "to")? })),
            recount::REPAIR => form.get("from", MAX_DATE_BYTES).and_then(|from| {
                let (to, drift) = (form.get("to", MAX_DATE_BYTES)?, form.take("drift", MAX_DRIFT_BYTES)?);
                Ok(Self::Repair { from, to, drift: (!drift.is_empty()).then_some(drift) })
            }),
            "look-for-redates" => Ok(Self::Look),
            redate::ACTION => form.get("calendar", MAX_CALENDAR_BYTES).and_then(|calendar| {
                let (from, to) = (form.get("from", MAX_DATE_BYTES)?, form.get("to", MAX_DATE_BYTES)?);
                Ok(Self::Redate { calendar, from, to, shown: shown(form)? })
            }),
            _ => return None,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sweep => "start-sweep",
            Self::Redrive => "start-redrive",
            Self::Report => "start-report",
            Self::Archive => "start-archive",
            Self::Recount { .. } => "start-recount",
            Self::Repair { .. } => recount::REPAIR,
            Self::Look => "look-for-redates",
            Self::Redate { .. } => redate::ACTION,
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Sweep => "Start a sweep".to_owned(),
            Self::Redrive => "Start a redrive".to_owned(),
            Self::Report => "Start a report".to_owned(),
            Self::Archive => "Start the archive".to_owned(),
            Self::Recount { .. } => "Start a recount".to_owned(),
            Self::Repair { from, to, .. } => format!("Repair the counters from {} to {}", day(*from), day(*to)),
            Self::Look => "Count the payments that wait for a redate".to_owned(),
            Self::Redate { calendar, from, to, .. } => {
                format!("Move the payments of dates that {calendar} closed, from {} to {}", day(*from), day(*to))
            }
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Sweep | Self::Redrive | Self::Report | Self::Archive | Self::Look => Vec::new(),
            Self::Recount { from, to } => {
                let dates = [("from", from), ("to", to)].into_iter();
                dates.filter_map(|(name, date)| date.map(|date| (name, date.to_string()))).collect()
            }
            // The functions judge the consent to these fields.
            Self::Repair { from, to, drift } => {
                let mut fields = recount::fields((*from, *to), drift.as_deref().unwrap_or_default());
                fields.retain(|(name, _)| *name != "drift" || drift.is_some());
                fields
            }
            Self::Redate { calendar, from, to, shown } => {
                let numbers = shown.unwrap_or(Shown { dates: 0, payments: 0 });
                let mut fields = redate::fields(calendar, (*from, *to), (numbers.dates, numbers.payments));
                fields.retain(|(name, _)| shown.is_some() || !matches!(*name, "dates" | "payments"));
                fields
            }
        }
    }

    /// Whether a preview has shown the numbers of a redate.
    pub(super) fn is_previewed(&self) -> bool {
        !matches!(self, Self::Redate { shown: None, .. } | Self::Repair { drift: None, .. })
    }

    /// Whether a second person has to approve the run.
    pub(super) fn needs_second(&self) -> bool {
        match self {
            Self::Redate { shown, .. } => shown.is_some_and(|shown| shown.payments > ALONE),
            other => matches!(other, Self::Repair { .. }),
        }
    }

    /// The same as it was asked for, without the numbers of its preview.
    fn without_numbers(&self) -> Self {
        match self.clone() {
            Self::Repair { from, to, .. } => Self::Repair { from, to, drift: None },
            Self::Redate { calendar, from, to, .. } => Self::Redate { calendar, from, to, shown: None },
            other => other,
        }
    }

    /// The function, and the action that its input names.
    fn function(&self) -> (Startable, &'static str) {
        match self {
            Self::Sweep => (Startable::Sweeper, "sweep"),
            Self::Redrive => (Startable::Sweeper, "redrive"),
            Self::Report => (Startable::Report, "report"),
            Self::Archive => (Startable::Archive, "archive"),
            Self::Recount { .. } => (Startable::Recount, "recount"),
            Self::Repair { .. } => (Startable::Recount, "repair"),
            Self::Look => (Startable::Redate, "look"),
            Self::Redate { .. } => (Startable::Redate, "move"),
        }
    }

    /// The job that the function then has run.
    pub(super) fn job(&self) -> Job {
        match self {
            Self::Sweep => Job::Sweep,
            Self::Redrive => Job::Redrive,
            Self::Report => Job::Report,
            Self::Archive => Job::Archive,
            Self::Recount { .. } | Self::Repair { .. } => Job::Recount,
            Self::Look => Job::Look,
            Self::Redate { .. } => Job::Move,
        }
    }

    /// The function's input: that of its schedule, if it has one. If two persons agreed, it names their action, and what
    /// they saw.
    fn input(&self, approved: Option<ActionName>) -> String {
        let fields =
            self.without_numbers().fields().into_iter().map(|(name, value)| (name.to_owned(), Value::String(value)));
        let mut input = Map::from_iter(fields);
        input.insert("action".to_owned(), self.function().1.into());
        input.extend(approved.map(|action| ("approval".to_owned(), action.to_string().into())));
        match self {
            Self::Redate { shown: Some(shown), .. } if approved.is_some() => {
                input.insert("most".to_owned(), shown.payments.into());
            }
            Self::Repair { drift: Some(drift), .. } if approved.is_some() => {
                input.insert("drift".to_owned(), drift.as_str().into());
            }
            _ => {}
        }
        Value::Object(input).to_string()
    }
}

/// Reads the numbers that a redate's preview showed, if there was one.
fn shown(form: &mut Form) -> Result<Option<Shown>, Problem> {
    let texts = (form.take("dates", MAX_NUMBER_BYTES)?, form.take("payments", MAX_NUMBER_BYTES)?);
    if texts == (String::new(), String::new()) {
        return Ok(None);
    }
    let (dates, payments) = (texts.0.parse(), texts.1.parse());
    match (dates, payments) {
        (Ok(dates), Ok(payments)) => Ok(Some(Shown { dates, payments })),
        (Err(error), _) => Err(invalid_field("dates", &error)),
        (_, Err(error)) => Err(invalid_field("payments", &error)),
    }
}

fn date(form: &mut Form, name: &'static str) -> Result<Option<BusinessDate>, Problem> {
    let text = form.take(name, MAX_DATE_BYTES)?;
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| invalid_field(name, &error))
}

impl Console {
    /// Shows the effect of a run. All read the last runs; a sweep and a redrive read each shard once, and a redate each lane
    /// of the counters. Also returns the run with the numbers that it shows.
    pub(super) async fn preview_run(&self, run: &Run) -> Result<(Preview, Run), Problem> {
        if let Some(standstill) = self.standstill_of_run(run).await? {
            return Ok((standstill.preview(), run.clone()));
        }
        // A run that cannot be started needs no reads.
        match run {
            Run::Recount { from, to } => drop(self.recounted(*from, *to)?),
            Run::Look | Run::Redate { .. } => drop(self.plan(run)?),
            Run::Sweep | Run::Redrive | Run::Report | Run::Archive | Run::Repair { .. } => {}
        }
        let (runs, times) = (self.last_runs().await?, self.times());
        let mut seen = run.clone();
        let shown = match run {
            Run::Sweep => html! {
                p { "It claims payments that are due, the earliest first, and they are sent to the transaction service. The schedule starts one every five minutes. Start one only if none ran: beside it, a second one can double the pace of writes. See " (PAYMENTS_OVERDUE) "." }
                p class="notice" { (BY_HAND) }
                (oldest("Due for the longest time", &self.late(Status::Scheduled, LATE_SHOWN).await?, times))
            },
            Run::Redrive => html! {
                p { "It sends requests of pending payments again, if their wait is over: 1, 3, 7, 15, … hours after the payment became pending. It has the pace of a sweep, too. See " (PAYMENTS_STUCK_PENDING) "." }
                p class="notice" { (BY_HAND) }
                (oldest("Pending, and due first", &self.late(Status::Pending, LATE_SHOWN).await?, times))
            },
            Run::Report => {
                html! { p { "It writes what was settled since the last report into a file of its own. Nothing is reported twice." } }
            }
            Run::Archive => html! {
                p { "It moves heads whose day is over to the long-term table: those of cancelled payments, and of settled ones that should have expired. Its schedule runs it by night, when little else writes." }
            },
            Run::Recount { from, to } => self.recounted(*from, *to)?,
            Run::Repair { from, to, .. } => {
                let drift = self.drift(*from, *to).await?;
                seen = Run::Repair { from: *from, to: *to, drift: drift.plan(self.clock.now()) };
                drift.shown(times)
            }
            Run::Look => self.looked()?,
            Run::Redate { calendar, from, to, .. } => {
                let dates = self.closed_dates(self.plan(run)?).await?;
                let asked = calendar;
                let (calendar, shown) = (calendar.clone(), Some(numbers(&dates)));
                seen = Run::Redate { calendar, from: *from, to: *to, shown };
                self.redated(&dates, asked, (&runs, self.known_switch().await?.as_ref()))
            }
        };
        let shown = html! {
            (shown)
            p { (last(&runs, run.job(), times)) }
            p class="quiet" { "If the function is busy, this waits up to five minutes, and is then dropped. A scheduled run that comes meanwhile waits in the same way. No payment is handled twice." }
        };
        let is_final = matches!(run, Run::Redate { .. });
        let keep = if is_final { "Do not move them" } else { "Do not start it" };
        let buttons = self.button(&seen).map(|act| Buttons { act: act.to_owned(), keep, is_final });
        Ok((Preview { shown, buttons }, seen))
    }

    /// The reason not to start a run, if there is one. `Paused` pauses no redate: payments that fall due on a closed date
    /// meanwhile are moved before the pause ends, or the sweep claims them. The switch stops sweeps and redrives alone.
    async fn standstill_of_run(&self, run: &Run) -> Result<Option<Standstill>, Problem> {
        Ok(match run {
            Run::Look | Run::Redate { .. } => None,
            Run::Sweep | Run::Redrive => self.standstill().await?,
            Run::Report | Run::Archive | Run::Recount { .. } | Run::Repair { .. } => self.pause_of_all(),
        })
    }

    /// The text of the button that starts the run; `None` if there is nothing to do.
    fn button(&self, run: &Run) -> Option<&'static str> {
        match run {
            Run::Redate { .. } => {
                self.plan(run).is_ok_and(|plan| !plan.dates.is_empty()).then_some("Move the payments")
            }
            Run::Repair { drift, .. } => drift.is_some().then_some("Repair the counters"),
            _ => Some("Start"),
        }
    }

    /// Starts the function, unless a pause or a stop began meanwhile.
    pub(super) async fn start(&self, run: &Run, approved: Option<ActionName>) -> Result<String, Problem> {
        if let Some(standstill) = self.standstill_of_run(run).await? {
            return Err(standstill.problem());
        }
        match run {
            Run::Recount { from, to } => drop(self.recounted(*from, *to)?),
            Run::Look => drop(self.plan(run)?),
            Run::Repair { from, to, drift } => self.require_same_drift((*from, *to), drift.as_deref()).await?,
            Run::Redate { shown, .. } => {
                let now = numbers(&self.closed_dates(self.plan(run)?).await?);
                // Fewer payments are left if some were cancelled or amended meanwhile.
                if shown.is_none_or(|shown| shown.dates != now.dates || shown.payments < now.payments) {
                    let detail = format!(
                        "It would move payments of {}, about {} in all, and the preview showed other numbers. Preview it again.",
                        counted(now.dates, "closed date"),
                        now.payments
                    );
                    return Err(Problem::new(ProblemKind::InvalidShape, detail));
                }
            }
            Run::Sweep | Run::Redrive | Run::Report | Run::Archive => {}
        }
        let (function, _) = run.function();
        self.operations.start(function, &run.input(approved)).await?;
        Ok(format!("{}: it begins within five minutes, or is dropped", run.title()))
    }

    /// The dates of a recount or a repair, or the reason why it cannot start.
    pub(super) fn recounted_dates(
        &self,
        from: Option<BusinessDate>,
        to: Option<BusinessDate>,
    ) -> Result<Vec<BusinessDate>, Problem> {
        let asked =
            recount::Request { action: recount::Action::Recount, from, to, ticket: None, approval: None, drift: None };
        asked.dates(self.config.business_days.zone(), self.clock.now()).map_err(wrong_dates)
    }

    /// The dates that a recount compares, or the reason why it cannot start.
    fn recounted(&self, from: Option<BusinessDate>, to: Option<BusinessDate>) -> Result<Markup, Problem> {
        let dates = self.recounted_dates(from, to)?;
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(html! {}) };
        Ok(html! {
            p {
                "It compares the counters of " (counted(dates.len(), "date")) ", from " (first) " to " (last)
                ", with their payments. Bank shows what differs, under Findings of the recount, for dates up to 400 days ago. It corrects nothing."
            }
        })
    }

    /// The plan of a redate or its count, or the reason why it cannot start.
    fn plan(&self, run: &Run) -> Result<redate::Plan, Problem> {
        let mut asked = redate::Request::default();
        if let Run::Redate { calendar, from, to, .. } = run {
            asked.action = redate::Action::Move;
            (asked.calendar, asked.from, asked.to) = (Some(calendar.clone()), Some(*from), Some(*to));
        }
        let plan = asked.plan(&self.config.business_days, self.clock.now());
        plan.map_err(wrong_dates)
    }

    /// The dates that a count for a redate covers, or the reason why it cannot start.
    fn looked(&self) -> Result<Markup, Problem> {
        let plan = self.plan(&Run::Look)?;
        Ok(html! {
            p {
                "It counts the payments that a redate would move, on " (counted(plan.dates.len(), "closed date")) " of "
                (counted(plan.calendars.len(), "calendar"))
                ". It moves nothing. See " (WAITING_FOR_REDATE) "."
            }
        })
    }
}

/// The payment that is the latest, before a run that concerns it.
fn oldest(heading: &str, late: &Late, times: Times) -> Markup {
    panel(&html! { (heading) }, &html! {}, &late_table(late, times))
}

/// A limit of the console's knowledge of pauses.
const BY_HAND: &str = "The console does not know whether somebody disabled the schedule or the mapping by hand, as for a holiday that is today. Ask first.";

/// The reason why a run cannot be started.
fn wrong_dates(error: impl std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::InvalidShape, format!("This cannot be started: {error}."))
}
