//! The release of a due date that its limit holds: two persons raise its limit to what its payments need.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{Actor, BusinessDate, DayLimit, SwitchChange, UtcSecond};
use payments_store::DayRelease;

use crate::actions::preview::{Buttons, Preview};
use crate::actions::reason::{REASON, Reason, asked};
use crate::actions::switch::freed::Now;
use crate::function::Console;
use crate::html::{day, limit_in_words};

/// The action's name.
pub(super) const NAME: &str = "release-day";

/// The longest date, the longest version and the longest numbers, in bytes: those of a hundred and fifty currencies.
const MAX_DATE_BYTES: usize = 10;
const MAX_VERSION_BYTES: usize = 20;
const MAX_NUMBERS_BYTES: usize = 4_096;

/// The most tries of a release, if another one is faster.
const TRIES: usize = 2;

/// The refusal to release a date of which an item is damaged.
const UNREADABLE: &str = "What was claimed of this date, or its release, cannot be read, so the date stays held. The function's log names the item; correct it.";

/// The release of a date, with its reason, which the confirmation has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReleaseDay {
    date: BusinessDate,
    seen: Option<Seen>,
    reason: Option<Reason>,
}

/// The state that a preview showed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// The last release of the date; 0 if there was none.
    version: u64,
    /// The numbers of its payments, claimed and scheduled, that exceed the limit.
    need: DayLimit,
}

impl ReleaseDay {
    pub(super) fn read(form: &mut Form) -> Result<Self, Problem> {
        let (date, reason) = (form.get("date", MAX_DATE_BYTES)?, Reason::read(form)?);
        let need = form.take("need", MAX_NUMBERS_BYTES)?;
        if need.is_empty() {
            return Ok(Self { date, seen: None, reason });
        }
        let need = need.parse().map_err(|error| invalid_field("need", &error))?;
        let seen = Seen { version: form.get("version", MAX_VERSION_BYTES)?, need };
        let up_to: DayLimit = form.get("up-to", MAX_NUMBERS_BYTES)?;
        if up_to != seen.need.with_margin() {
            return Err(invalid_field("up-to", &"it has to be the numbers that the preview showed"));
        }
        Ok(Self { date, seen: Some(seen), reason })
    }

    pub(super) fn title(&self) -> String {
        let up_to = self.seen.as_ref().map(|seen| format!(" up to {}", limit_in_words(&seen.need.with_margin())));
        format!("Release the payments due on {}{}", day(self.date), up_to.unwrap_or_default())
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("date", self.date.to_string())];
        if let Some(Seen { version, need }) = &self.seen {
            let numbers = [("need", need.to_string()), ("up-to", need.with_margin().to_string())];
            fields.extend([("version", version.to_string())].into_iter().chain(numbers));
        }
        fields.extend(self.reason.iter().map(|reason| (REASON, reason.as_str().to_owned())));
        fields
    }

    /// Whether it can be confirmed.
    pub(super) fn is_previewed(&self) -> bool {
        self.seen.is_some() && self.reason.is_some()
    }

    fn done(&self) -> String {
        let up_to = self.seen.as_ref().map(|seen| limit_in_words(&seen.need.with_margin())).unwrap_or_default();
        format!("released up to {up_to}; the sweep claims what is due, unless it is stopped")
    }
}

impl Console {
    /// Shows the numbers of a date beside its limit, and asks for the reason: three reads, and the switch. Also returns the release with the
    /// numbers that it shows.
    pub(super) async fn preview_release_day(&self, release: &ReleaseDay) -> Result<(Preview, ReleaseDay), Problem> {
        let nothing = |shown: Markup| Ok((Preview { shown, buttons: None }, release.clone()));
        let Some(limited) = self.limited(release.date).await? else {
            return nothing(html! { p class="notice" { (UNREADABLE) } });
        };
        if let Some(why) = limited.refusal() {
            return nothing(
                html! { p class="notice" { "It is not released: " (why) "." } (limited.shown(None, self.times())) },
            );
        }
        let version = limited.release.as_ref().map_or(0, |known| known.version);
        let seen = Seen { version, need: limited.excess() };
        let waits = self.known_switch().await?.is_none_or(|switch| switch.stopped || switch.is_held(release.date));
        let shown = html! {
            p { "The next sweep claims those that are due, and they are sent. “Up to” has room for a hundredth more, of the number at least a hundred; beyond it the date is held again." }
            @if waits { p class="notice" { "A stop, or a hold of this date, is on in Bank, too: this waits until it ends." } }
            (self.pause_notice())
            (limited.shown(Some(&seen.need.with_margin()), self.times()))
            (asked(true))
        };
        let buttons = Buttons { act: "Release them".to_owned(), keep: "Keep them held", is_final: true };
        let seen = ReleaseDay { date: release.date, seen: Some(seen), reason: None };
        Ok((Preview { shown, buttons: Some(buttons) }, seen))
    }

    /// Raises the limit of a date to what the preview showed, unless the date or its numbers have changed since.
    pub(super) async fn release_day(
        &self,
        release: &ReleaseDay,
        by: &Actor,
        since: UtcSecond,
    ) -> Result<String, Problem> {
        let refused = |detail: String| Problem::new(ProblemKind::InvalidShape, detail);
        let Some(Seen { version, need }) = &release.seen else { return Err(refused("Preview it again.".to_owned())) };
        let reason = release.reason.as_ref().map(|reason| reason.as_str().to_owned()).unwrap_or_default();
        let change = SwitchChange { by: by.clone(), at: self.clock.now(), reason };
        let next = DayRelease { version: version + 1, up_to: need.with_margin(), change };
        for _ in 0..TRIES {
            let limited = self.limited(release.date).await?.ok_or_else(|| refused(UNREADABLE.to_owned()))?;
            if let Some(known) = limited.release.as_ref().filter(|known| known.version > *version) {
                let (past, own) = (&known.change, &next.change);
                // The same confirmation came again, or its first reply was lost.
                let is_own = past.at >= since && (&past.by, &past.reason) == (&own.by, &own.reason);
                let is_done = is_own && (known.version, &known.up_to) == (next.version, &next.up_to);
                let other = || "not released, the date was released since the preview".to_owned();
                return Ok(if is_done { release.done() } else { other() });
            }
            if let Some(why) = limited.refusal() {
                return Ok(format!("not released, {why}"));
            }
            limited.require_about(need)?;
            if self.store.release_day(release.date, &next).await? {
                return Ok(release.done());
            }
        }
        Err(Problem::repeat())
    }

    /// The numbers of a date as they are now, beside those that the first person saw.
    pub(super) async fn need_now(&self, release: &ReleaseDay) -> Result<Option<Now>, Problem> {
        let (Some(seen), Some(limited)) = (&release.seen, self.limited(release.date).await?) else { return Ok(None) };
        Ok(Some(Now { named: limited.named(), is_beyond: limited.require_about(&seen.need).is_err() }))
    }
}
