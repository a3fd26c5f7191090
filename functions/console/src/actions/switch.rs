//! The switch: stop all claims and sends, resume them, and hold and release due dates.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{Actor, BusinessDate, Hold, MAX_HOLDS, Status, Switch, SwitchChange, UtcSecond};

use crate::actions::preview::{Buttons, Preview};
use crate::actions::reason::{REASON, Reason, asked};
use crate::function::Console;
use crate::guides::INCIDENT;
use crate::html::{day, fact, grouped};
use crate::operations::BankQueue;

/// The longest date and the longest version of a switch, in bytes.
const MAX_DATE_BYTES: usize = 10;
const MAX_VERSION_BYTES: usize = 20;

/// The dates before today whose payments a resume's preview counts. The sweep claims older ones, too.
const DAYS_BACK: u32 = 31;

/// The most dates that the preview of a hold counts.
const DAYS_COUNTED: u32 = 400;

/// The most tries of a change, if other changes of the switch are faster.
const TRIES: usize = 2;

/// A turn of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Stop all claims, redrives and sends.
    Stop,
    /// Resume them. The preview showed the switch at this version.
    Resume(Option<u64>),
    /// Claim no payment of these due dates.
    Hold(BusinessDate, BusinessDate),
    /// End the hold of exactly these due dates.
    Release(BusinessDate, BusinessDate),
}

/// A turn of the switch with its reason, which the confirmation has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnSwitch {
    turn: Turn,
    reason: Option<Reason>,
}

/// Every action's name.
const STOP: &str = "stop";
const RESUME: &str = "resume";
const HOLD: &str = "hold-dates";
const RELEASE: &str = "release-dates";

impl TurnSwitch {
    /// Reads the fields of the action with this name; `None` if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<Self, Problem>> {
        let turn = match name {
            STOP => Ok(Turn::Stop),
            RESUME => version(form).map(Turn::Resume),
            HOLD => dates(form).map(|(from, to)| Turn::Hold(from, to)),
            RELEASE => dates(form).map(|(from, to)| Turn::Release(from, to)),
            _ => return None,
        };
        Some(turn.and_then(|turn| Ok(Self { turn, reason: Reason::read(form)? })))
    }

    pub(super) fn name(&self) -> &'static str {
        match self.turn {
            Turn::Stop => STOP,
            Turn::Resume(_) => RESUME,
            Turn::Hold(..) => HOLD,
            Turn::Release(..) => RELEASE,
        }
    }

    pub(super) fn title(&self) -> String {
        match self.turn {
            Turn::Stop => "Stop all claims and sends".to_owned(),
            Turn::Resume(_) => "Resume claims and sends".to_owned(),
            Turn::Hold(from, to) => format!("Hold the payments due {}", dates_in_words(from, to)),
            Turn::Release(from, to) => format!("Release the payments due {}", dates_in_words(from, to)),
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = match self.turn {
            Turn::Stop => Vec::new(),
            Turn::Resume(version) => version.into_iter().map(|version| ("version", version.to_string())).collect(),
            Turn::Hold(from, to) | Turn::Release(from, to) => vec![("from", from.to_string()), ("to", to.to_string())],
        };
        fields.extend(self.reason.iter().map(|reason| (REASON, reason.as_str().to_owned())));
        fields
    }

    /// Whether it can be confirmed.
    pub(super) fn is_previewed(&self) -> bool {
        self.reason.is_some() && self.turn != Turn::Resume(None)
    }
}

impl Turn {
    /// The switch after this turn; or a line that says why it stays as it is.
    fn applied(self, known: &Switch, change: &SwitchChange, since: UtcSecond) -> Result<Switch, String> {
        // The same confirmation came again, or its first reply was lost.
        let is_own = |past: &SwitchChange| past.at >= since && (&past.by, &past.reason) == (&change.by, &change.reason);
        let next = Switch { version: known.version + 1, ..known.clone() };
        let last = known.change.as_ref();
        let hold = |from, to| known.holds.iter().find(move |hold| (hold.from, hold.to) == (from, to));
        match self {
            Self::Stop if known.stopped => Err(match last {
                Some(last) if !is_own(last) => format!("not stopped again, it is stopped by {}", last.by.name()),
                _ => self.done(),
            }),
            Self::Resume(_) if !known.stopped => Err(match last {
                Some(last) if is_own(last) => self.done(),
                _ => "not resumed, nothing is stopped".to_owned(),
            }),
            Self::Resume(seen) if seen != Some(known.version) => {
                Err("not resumed, the switch changed since the preview".to_owned())
            }
            Self::Stop => {
                let stopped_at = Some(known.stop_begins(change.at));
                Ok(Switch { stopped: true, change: Some(change.clone()), stopped_at, ..next })
            }
            Self::Resume(_) => {
                Ok(Switch { stopped: false, change: Some(change.clone()), freed_at: Some(change.at), ..next })
            }
            Self::Hold(from, to) => match hold(from, to) {
                Some(hold) if is_own(&hold.change) => Err(self.done()),
                Some(hold) => Err(format!("not held again, they are held by {}", hold.change.by.name())),
                None if known.holds.len() >= MAX_HOLDS => {
                    Err(format!("not held, there are {MAX_HOLDS} holds; release one, or stop all"))
                }
                None => {
                    let holds =
                        known.holds.iter().cloned().chain([Hold { from, to, change: change.clone() }]).collect();
                    Ok(Switch { holds, ..next })
                }
            },
            Self::Release(from, to) => match hold(from, to) {
                None if known.freed_at.is_some_and(|at| at >= since) => Err(self.done()),
                None => Err("not released, no hold has exactly these dates".to_owned()),
                Some(_) => {
                    let holds = known.holds.iter().filter(|hold| (hold.from, hold.to) != (from, to)).cloned().collect();
                    Ok(Switch { holds, freed_at: Some(change.at), ..next })
                }
            },
        }
    }

    fn done(self) -> String {
        match self {
            Self::Stop => "stopped; nothing is claimed or sent from five seconds later on",
            Self::Resume(_) => "resumed; the next sweep claims, and redrives send what was skipped",
            Self::Hold(..) => "held; no claims from five seconds later on",
            Self::Release(..) => "released; the next sweep claims what is due",
        }
        .to_owned()
    }
}

impl Console {
    /// Shows the effect of a turn, and asks for the reason. All read the switch; others than a stop read the counters, and a resume the
    /// queue of requests. Also returns the turn with the version that it shows.
    pub(super) async fn preview_switch(&self, turn: &TurnSwitch) -> Result<(Preview, TurnSwitch), Problem> {
        let Some(known) = self.known_switch().await? else {
            return Ok((Preview { shown: html! { p class="notice" { (UNREADABLE) } }, buttons: None }, turn.clone()));
        };
        let mut seen = TurnSwitch { reason: None, ..turn.clone() };
        let (shown, act, keep) = match turn.turn {
            Turn::Stop => (
                html! { p { "From five seconds later on, nothing is claimed, redriven or sent until somebody resumes. Creates, amendments, cancels and settlement results go on. Requests in the queue stay there, and the transaction service still receives them. See " (INCIDENT) "." } },
                "Stop all",
                "Do not stop",
            ),
            Turn::Resume(_) => {
                seen.turn = Turn::Resume(Some(known.version));
                (self.resumed(&known).await?, "Resume", "Keep it stopped")
            }
            Turn::Hold(from, to) => (
                html! {
                    p { "Their payments are not claimed until the hold is released, also after their date. They can be amended and cancelled. What was claimed before is sent and redriven: only a stop ends that." }
                    (self.counted(from, to, "Scheduled").await?)
                },
                "Hold them",
                "Do not hold them",
            ),
            Turn::Release(from, to) => (
                html! {
                    p { "The next sweep claims those that are due, if no other hold covers their date." }
                    (self.counted(from, to, "Scheduled").await?)
                },
                "Release them",
                "Keep them held",
            ),
        };
        let change = SwitchChange { by: Actor::sweep(), at: self.clock.now(), reason: String::new() };
        let (shown, buttons) = match seen.turn.applied(&known, &change, UtcSecond::MAX) {
            Ok(_) => {
                let buttons = Buttons { act: act.to_owned(), keep, is_final: matches!(turn.turn, Turn::Resume(_)) };
                (html! { (shown) (asked(true)) }, Some(buttons))
            }
            Err(why) => (html! { p { (why) "." } }, None),
        };
        Ok((Preview { shown, buttons }, seen))
    }

    /// The payments that a resume has claimed and sent.
    async fn resumed(&self, known: &Switch) -> Result<Markup, Problem> {
        let today = self.today();
        let counters = self.store.counters(today.minus_days(DAYS_BACK), today).await?;
        let count = |status, held: bool| -> i64 {
            let dates = counters.iter().filter(|(date, _)| !held || !known.is_held(**date));
            dates.map(|(_, counters)| counters.counts.count(status).max(0)).sum()
        };
        let waiting = self.operations.queue(BankQueue::Requests).await?.waiting;
        Ok(html! {
            section class="panel" { dl class="facts" {
                (fact("To claim", &html! { b { (grouped(count(Status::Scheduled, true).into())) } " scheduled, due today or in the 31 days before, and not held. The sweep claims those that are due, and older ones" }))
                (fact("Pending", &html! { (grouped(count(Status::Pending, false).into())) ": redrives send those whose request was skipped, an hour or more after their claim" }))
                (fact("In the queue", &html! { "about " (grouped(waiting.into())) " requests, which the stop left there" }))
                (fact("Held", &html! { (known.holds.len()) " holds stay" }))
            } }
            p { "What is sent cannot be taken back. Before you resume, cancel or hold the wrong payments. See " (INCIDENT) "." }
        })
    }

    /// The scheduled payments of some dates.
    async fn counted(&self, from: BusinessDate, to: BusinessDate, name: &str) -> Result<Markup, Problem> {
        let last = to.min(from.plus_days(DAYS_COUNTED));
        let counters = self.store.counters(from, last).await?;
        let scheduled: i64 = counters.values().map(|date| date.counts.count(Status::Scheduled).max(0)).sum();
        Ok(html! {
            section class="panel" { dl class="facts" {
                (fact(name, &html! { b { (grouped(scheduled.into())) } @if last < to { " until " (day(last)) ", and later ones" } }))
            } }
        })
    }

    /// Turns the switch, unless it stands so.
    pub(super) async fn turn_switch(&self, turn: &TurnSwitch, by: &Actor, since: UtcSecond) -> Result<String, Problem> {
        let reason = turn.reason.as_ref().map(|reason| reason.as_str().to_owned()).unwrap_or_default();
        let change = SwitchChange { by: by.clone(), at: self.clock.now(), reason };
        for _ in 0..TRIES {
            let known = self.known_switch().await?;
            let known = known.ok_or_else(|| Problem::new(ProblemKind::InvalidShape, UNREADABLE))?;
            let next = match turn.turn.applied(&known, &change, since) {
                Ok(next) => next,
                Err(line) => return Ok(line),
            };
            if self.store.change_switch(&next).await? {
                return Ok(turn.turn.done());
            }
        }
        Err(Problem::repeat())
    }
}

/// The refusal to turn a damaged switch.
const UNREADABLE: &str =
    "The switch cannot be read, so nothing is claimed or sent. Correct its item: see the alarm SwitchUnreadable.";

fn dates(form: &mut Form) -> Result<(BusinessDate, BusinessDate), Problem> {
    let (from, to): (BusinessDate, BusinessDate) = (form.get("from", MAX_DATE_BYTES)?, form.get("to", MAX_DATE_BYTES)?);
    if from > to { Err(invalid_field("to", &"it is before the first date")) } else { Ok((from, to)) }
}

/// Reads the version of the switch that a preview showed. A preview has none.
fn version(form: &mut Form) -> Result<Option<u64>, Problem> {
    const FIELD: &str = "version";
    let text = form.take(FIELD, MAX_VERSION_BYTES)?;
    let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
    parsed.map_err(|_| invalid_field(FIELD, &"it has to be the version of the switch"))
}

/// `on Tue 1 Dec`, or `from Tue 1 Dec to Wed 2 Dec`.
pub(crate) fn dates_in_words(from: BusinessDate, to: BusinessDate) -> String {
    if from == to { format!("on {}", day(from)) } else { format!("from {} to {}", day(from), day(to)) }
}
