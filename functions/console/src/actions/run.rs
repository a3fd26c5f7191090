//! Runs that an operator starts: what a schedule starts by itself, and moves of payments whose date was closed.
//!
//! The function is invoked asynchronously, so nobody waits for its answer. Its log has it.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{BusinessDate, Status, recount, redate};
use serde_json::{Map, Value};

use crate::actions::preview::{Preview, counted};
use crate::config::Paused;
use crate::function::Console;
use crate::html::{fact, instant};
use crate::operations::Startable;
use crate::views::bank::report;
use crate::views::waiting::late_table;

/// The longest date, in bytes.
const MAX_DATE_BYTES: usize = 10;

/// The longest id of a calendar, in bytes.
const MAX_CALENDAR_BYTES: usize = 20;

/// How many late payments a preview shows.
const LATE_SHOWN: u16 = 1;

/// What is started.
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
    /// A count of the payments that wait for a redate.
    Look,
    /// A redate: the payments of a calendar's closed dates move.
    Redate { calendar: String, from: BusinessDate, to: BusinessDate },
}

impl Run {
    /// Reads the fields of the action of this name; none if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<Self, Problem>> {
        Some(match name {
            "start-sweep" => Ok(Self::Sweep),
            "start-redrive" => Ok(Self::Redrive),
            "start-report" => Ok(Self::Report),
            "start-archive" => Ok(Self::Archive),
            "start-recount" => date(form, "from").and_then(|from| Ok(Self::Recount { from, to: date(form, "to")? })),
            "look-for-redates" => Ok(Self::Look),
            "redate" => form.get("calendar", MAX_CALENDAR_BYTES).and_then(|calendar| {
                let (from, to) = (form.get("from", MAX_DATE_BYTES)?, form.get("to", MAX_DATE_BYTES)?);
                Ok(Self::Redate { calendar, from, to })
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
            Self::Look => "look-for-redates",
            Self::Redate { .. } => "redate",
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Sweep => "Start a sweep".to_owned(),
            Self::Redrive => "Start a redrive".to_owned(),
            Self::Report => "Start a report".to_owned(),
            Self::Archive => "Start the archive".to_owned(),
            Self::Recount { .. } => "Start a recount".to_owned(),
            Self::Look => "Count the payments that wait for a redate".to_owned(),
            Self::Redate { calendar, from, to } => {
                format!("Move the payments of dates that {calendar} closed, from {from} to {to}")
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
            Self::Redate { calendar, from, to } => {
                vec![("calendar", calendar.clone()), ("from", from.to_string()), ("to", to.to_string())]
            }
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
            Self::Look => (Startable::Redate, "look"),
            Self::Redate { .. } => (Startable::Redate, "move"),
        }
    }

    /// The function's input, as a schedule has it.
    fn input(&self) -> String {
        let fields = self.fields().into_iter().map(|(name, value)| (name.to_owned(), Value::String(value)));
        let mut input = Map::from_iter(fields);
        input.insert("action".to_owned(), self.function().1.into());
        Value::Object(input).to_string()
    }

    /// Whether a pause forbids it. A look moves nothing. What fell due on a closed date while sending is paused is moved before the
    /// pause ends, or the sweep claims it.
    fn is_forbidden_while(&self, paused: Paused) -> bool {
        match paused {
            Paused::None => false,
            Paused::Sending => !matches!(self, Self::Look | Self::Redate { .. }),
            Paused::Settling => !matches!(self, Self::Look),
        }
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
    /// Shows what a run would do: for a sweep and a redrive it reads each shard once, for a report the last run, for others nothing.
    pub(super) async fn preview_run(&self, run: &Run) -> Result<Preview, Problem> {
        if run.is_forbidden_while(self.config.paused) {
            return Ok(Preview { shown: html! { p class="warn" { (PAUSED) } }, button: None });
        }
        let shown = match run {
            Run::Sweep => html! {
                p { "It claims payments that are due, the earliest first, and they are sent to the transaction service." }
                (late_table(&self.late(Status::Scheduled, LATE_SHOWN).await?, "The payment that has been due for the longest time"))
            },
            Run::Redrive => html! {
                p { "It sends the requests of pending payments again whose wait is over: an hour after the first dispatch, then three, seven, …" }
                (late_table(&self.late(Status::Pending, LATE_SHOWN).await?, "The pending payment that was due first"))
            },
            Run::Report => {
                let last = self.store.last_report_run().await?;
                html! {
                    p { "It writes what was settled since the last report into a file of its own. Nothing is reported twice." }
                    dl { (fact("Last report", &report(last.as_ref()))) }
                }
            }
            Run::Archive => {
                html! { p { "It moves what is over into the long-term table: cancelled payments, and settled ones that did not expire." } }
            }
            Run::Recount { from, to } => self.recounted(*from, *to)?,
            Run::Look | Run::Redate { .. } => self.redated(run)?,
        };
        let shown = html! {
            (shown)
            p class="quiet" { "It is invoked as its schedule does it, so it may run beside that one: both together do nothing twice." }
        };
        Ok(Preview { shown, button: Some("Start".to_owned()) })
    }

    /// Lets the function run, unless a pause began meanwhile.
    pub(super) async fn start(&self, run: &Run) -> Result<String, Problem> {
        if run.is_forbidden_while(self.config.paused) {
            return Err(Problem::new(ProblemKind::InvalidShape, PAUSED));
        }
        match run {
            Run::Recount { from, to } => drop(self.recounted(*from, *to)?),
            Run::Look | Run::Redate { .. } => drop(self.redated(run)?),
            Run::Sweep | Run::Redrive | Run::Report | Run::Archive => {}
        }
        let (function, action) = run.function();
        self.operations.start(function, &run.input()).await?;
        Ok(format!("{action}: begins within five minutes, or not at all; the function's log says what it did"))
    }

    /// What a recount recounts, if it can.
    fn recounted(&self, from: Option<BusinessDate>, to: Option<BusinessDate>) -> Result<Markup, Problem> {
        let asked = recount::Request { action: recount::Action::Recount, from, to };
        let dates = asked.dates(self.config.business_days.zone(), self.clock.now()).map_err(wrong_dates)?;
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(html! {}) };
        Ok(html! {
            p {
                "It compares the counters of " (counted(dates.len(), "date")) ", from " (first) " to " (last)
                ", with their payments. What differs is among the findings under Bank. It corrects nothing."
            }
        })
    }

    /// What a redate moves, or counts, if it can.
    fn redated(&self, run: &Run) -> Result<Markup, Problem> {
        let asked = match run {
            Run::Redate { calendar, from, to } => redate::Request {
                action: redate::Action::Move,
                calendar: Some(calendar.clone()),
                from: Some(*from),
                to: Some(*to),
            },
            _ => redate::Request { action: redate::Action::Look, calendar: None, from: None, to: None },
        };
        let plan = asked.plan(&self.config.business_days, self.config.amendments, self.clock.now());
        let plan = plan.map_err(wrong_dates)?;
        let closed = counted(plan.dates.len(), "closed date");
        Ok(html! {
            @match plan.action {
                redate::Action::Look => p {
                    "It counts the payments that are due on a closed date, as the metric WaitingForRedate says it every four hours: "
                    (closed) " of " (counted(plan.calendars.len(), "calendar")) "."
                },
                redate::Action::Move => {
                    p {
                        "Payments that are due on these dates, and whose rule is " code { "following" } " or " code { "preceding" }
                        ", move to an open one. Each move is an amendment of the bank, and an event. Nothing moves them back."
                    }
                    dl {
                        (fact("Closed", &html! { (closed) @for date in &plan.dates { ", " (date) } }))
                        (fact("Now", &instant(self.clock.now())))
                    }
                }
            }
        })
    }
}

/// Why nothing starts during a pause.
const PAUSED: &str =
    "The bank is paused, and this would go on in spite of it. End the pause first, with the parameter Paused.";

fn wrong_dates(error: impl std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::InvalidShape, format!("This cannot be started: {error}."))
}
