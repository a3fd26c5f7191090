//! The switch: stop all claims and sends, resume them, and hold and release due dates.

pub(super) mod freed;
mod freeing;

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{Actor, BusinessDate, Hold, MAX_HOLDS, Switch, SwitchChange, UtcSecond};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::actions::reason::{REASON, Reason, asked};
use crate::actions::switch::freed::{Freed, Seen};
use crate::function::Console;
use crate::guides::{CLOSE_GATE, INCIDENT};
use crate::html::{day, fact, grouped};
use crate::operations::BankQueue;
use crate::views::switch::changed;

/// The longest date, in bytes.
const MAX_DATE_BYTES: usize = 10;

/// The dates before today whose payments a resume's preview counts. The sweep claims older ones, too.
pub(super) const DAYS_BACK: u32 = 31;

/// The most dates that the preview of a hold counts.
pub(super) const DAYS_COUNTED: u32 = 400;

/// The most tries of a change, if other changes of the switch are faster.
const TRIES: usize = 2;

/// A turn of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Stop all claims, redrives and sends.
    Stop,
    /// Resume them, as the preview showed.
    Resume(Option<Seen>),
    /// Claim no payment of these due dates.
    Hold(BusinessDate, BusinessDate),
    /// End the hold of exactly these due dates, as the preview showed.
    Release(BusinessDate, BusinessDate, Option<Seen>),
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
            RESUME => Seen::read(form).map(Turn::Resume),
            HOLD => dates(form).map(|(from, to)| Turn::Hold(from, to)),
            RELEASE => dates(form).and_then(|(from, to)| Ok(Turn::Release(from, to, Seen::read(form)?))),
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
            Turn::Release(from, to, _) => format!("Release the payments due {}", dates_in_words(from, to)),
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let dates = match self.turn {
            Turn::Stop | Turn::Resume(_) => None,
            Turn::Hold(from, to) | Turn::Release(from, to, _) => Some((from, to)),
        };
        let dates = dates.map(|(from, to)| [("from", from.to_string()), ("to", to.to_string())]);
        let mut fields: Vec<_> = dates.into_iter().flatten().collect();
        fields.extend(self.turn.seen().into_iter().flat_map(Seen::fields));
        fields.extend(self.reason.iter().map(|reason| (REASON, reason.as_str().to_owned())));
        fields
    }

    /// Whether it can be confirmed.
    pub(super) fn is_previewed(&self) -> bool {
        self.reason.is_some() && !matches!(self.turn, Turn::Resume(None) | Turn::Release(_, _, None))
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }

    /// Whether payments are claimed or sent after it that were not before.
    pub(super) fn frees(&self) -> bool {
        matches!(self.turn, Turn::Resume(_) | Turn::Release(..))
    }
}

impl Turn {
    /// The state that the preview of a resume or a release showed.
    pub(super) fn seen(self) -> Option<Seen> {
        match self {
            Self::Resume(seen) | Self::Release(_, _, seen) => seen,
            Self::Stop | Self::Hold(..) => None,
        }
    }

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
            Self::Resume(seen) if seen.map(|seen| seen.version) != Some(known.version) => {
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
            Self::Release(from, to, seen) => match hold(from, to) {
                Some(_) if seen.map(|seen| seen.version) != Some(known.version) => {
                    Err("not released, the switch changed since the preview".to_owned())
                }
                None if known.freed_at.is_some_and(|at| at >= since)
                    && seen.is_some_and(|seen| seen.version < known.version) =>
                {
                    Err(self.done())
                }
                None => Err("not released, no hold has exactly these dates".to_owned()),
                Some(released) => {
                    // Others of the same dates stay, as that of an undo.
                    let holds = known.holds.iter().filter(|hold| *hold != released).cloned().collect();
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
                html! { p { "From five seconds later on, nothing is claimed, redriven or sent until somebody resumes. Creates, amendments, cancels and settlement results go on. The transaction service still receives the requests that are in the queue: close its gate, too, if they are wrong. See " (CLOSE_GATE) " and " (INCIDENT) "." } },
                "Stop all",
                "Do not stop",
            ),
            Turn::Resume(_) => {
                let freed = self.freed(turn.turn, &known).await?;
                seen.turn = Turn::Resume(Some(Seen { version: known.version, freed }));
                (self.resumed(&known, freed).await?, "Resume", "Keep it stopped")
            }
            Turn::Hold(from, to) => (
                html! {
                    p { "Their payments are not claimed until the hold is released, also after their date. They can be amended and cancelled. What was claimed before is sent and redriven: only a stop ends that." }
                    (self.counted(from, to, "Scheduled").await?)
                },
                "Hold them",
                "Do not hold them",
            ),
            Turn::Release(from, to, _) => {
                let freed = self.freed(turn.turn, &known).await?;
                seen.turn = Turn::Release(from, to, Some(Seen { version: known.version, freed }));
                let hold = known.holds.iter().find(|hold| (hold.from, hold.to) == (from, to));
                let shown = html! {
                    @if let Some(hold) = hold { p { "Held " (changed(&hold.change, self.times())) } }
                    p { "The next sweep claims those that are due, if no other hold covers their date." }
                    @if known.stopped { p class="notice" { "All claims and sends are stopped, so this waits until somebody resumes." } }
                    (self.pause_notice())
                    (self.counted(from, to, "Scheduled").await?)
                };
                (shown, "Release them", "Keep them held")
            }
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
    async fn resumed(&self, known: &Switch, freed: Freed) -> Result<Markup, Problem> {
        let waiting = self.operations.queue(BankQueue::Requests).await?.waiting;
        Ok(html! {
            section class="panel" { dl class="facts" {
                (fact("To claim", &html! { b { (grouped(freed.claims.into())) } " scheduled, due today or in the 31 days before, and not held. The sweep claims those that are due, and older ones" }))
                (fact("Pending", &html! { (grouped(freed.pending.into())) ": redrives send those whose request was skipped, an hour or more after their claim" }))
                (fact("In the queue", &html! { "about " (grouped(waiting.into())) " requests, which the stop left there" }))
                (fact("Held", &html! { (counted(known.holds.len(), "hold")) @if known.holds.len() == 1 { " stays" } @else { " stay" } }))
            } }
            (self.pause_notice())
            p { "What is sent cannot be taken back. Before you resume, cancel or hold the wrong payments. See " (INCIDENT) "." }
        })
    }

    /// The outcome of a turn, and the reason why payments still wait.
    fn done(&self, turn: Turn, switch: &Switch) -> String {
        let (done, is_paused) = (turn.done(), self.pause_of_all().is_some());
        match turn {
            Turn::Resume(_) | Turn::Release(..) if is_paused => format!("{done}, once Paused is none"),
            Turn::Release(..) if switch.stopped => format!("{done}, once somebody resumes"),
            _ => done,
        }
    }

    pub(super) fn pause_notice(&self) -> Markup {
        html! {
            @if self.pause_of_all().is_some() {
                p class="notice" { "The parameter Paused is set, so this waits until it is none." }
            }
        }
    }

    /// The scheduled payments of some dates.
    async fn counted(&self, from: BusinessDate, to: BusinessDate, name: &str) -> Result<Markup, Problem> {
        let (scheduled, (first, last)) = self.scheduled(from, to).await?;
        Ok(html! {
            section class="panel" { dl class="facts" {
                (fact(name, &html! { b { (grouped(scheduled.into())) } @if (first, last) != (from, to) { " from " (day(first)) " to " (day(last)) ", and others before or after" } }))
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
            self.require_no_more(turn.turn, &known).await?;
            if self.store.change_switch(&next).await? {
                return Ok(self.done(turn.turn, &next));
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

/// `on Tue 1 Dec`, or `from Tue 1 Dec to Wed 2 Dec`.
pub(crate) fn dates_in_words(from: BusinessDate, to: BusinessDate) -> String {
    if from == to { format!("on {}", day(from)) } else { format!("from {} to {}", day(from), day(to)) }
}
