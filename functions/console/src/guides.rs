//! The guides of operators, rendered at build by `build/main.rs`, and the places in them to which views lead.

use maud::{Markup, Render, html};

use crate::html::link;

/// A guide: a document of `docs`.
#[derive(Clone, Copy)]
pub(crate) struct Guide {
    /// The name of its file and of its view.
    pub(crate) name: &'static str,
    /// The number of sections on its first page.
    pub(crate) first: usize,
    /// The first has the title.
    pub(crate) sections: &'static [Section],
}

/// A heading with the text below it, up to the next heading.
pub(crate) struct Section {
    /// Its name in the address.
    pub(crate) at: &'static str,
    /// 1 for the title.
    pub(crate) level: usize,
    pub(crate) title: &'static str,
    /// HTML.
    pub(crate) body: &'static str,
}

/// Every guide.
pub(crate) const GUIDES: &[Guide] = &include!(concat!(env!("OUT_DIR"), "/guides.rs"));

/// The alarms, the most urgent first, each with the time within which somebody acts: the table of `docs/alarms.md`.
const PRIORITIES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/priorities.rs"));

/// The time within which somebody has to act on an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Now,
    Hours(u32),
    /// Before the closed date on which payments wait.
    BeforeDate,
    Today,
    Days(u32),
}

/// A section to which a view leads. One that does not exist does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    guide: &'static str,
    at: &'static str,
    title: &'static str,
}

impl Place {
    /// Finds a section by its title.
    const fn new(guide: &str, title: &str) -> Self {
        let mut n = 0;
        while n < GUIDES.len() && !is_same(GUIDES[n].name, guide) {
            n += 1;
        }
        assert!(n < GUIDES.len(), "there is no such guide");
        let Guide { name, sections, .. } = GUIDES[n];
        let mut m = 0;
        while m < sections.len() && !is_same(sections[m].title, title) {
            m += 1;
        }
        assert!(m < sections.len(), "the guide has no such section");
        Self { guide: name, at: sections[m].at, title: sections[m].title }
    }

    /// The row of its alarm in the table of priorities, and the time within which somebody acts. Anything else is first.
    pub(crate) fn priority(self) -> (usize, Within) {
        let row = PRIORITIES.iter().position(|(alarm, _)| *alarm == self.title);
        row.map_or((0, Within::Now), |row| (row + 1, Within::parse(PRIORITIES[row].1)))
    }
}

impl Within {
    /// Reads a cell of the table. A cell in other words means now.
    fn parse(cell: &str) -> Self {
        let mut words = cell.split(|c: char| !c.is_alphanumeric());
        match (words.next(), words.next()) {
            (Some("today"), _) => Self::Today,
            (Some("before"), _) => Self::BeforeDate,
            (Some("a"), Some("month")) => Self::Days(30),
            (Some(number), Some(unit)) => match (number.parse(), unit) {
                (Ok(hours), "hour" | "hours") => Self::Hours(hours),
                (Ok(days), "day" | "days") => Self::Days(days),
                _ => Self::Now,
            },
            _ => Self::Now,
        }
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut n = 0;
    while n < one.len() && n < other.len() && one[n] == other[n] {
        n += 1;
    }
    n == one.len() && n == other.len()
}

/// A link by the section's title.
impl Render for Place {
    fn render(&self) -> Markup {
        html! { a href=(link(self.guide, &[("at", self.at)])) { (self.title) } }
    }
}

pub(crate) const API_ERRORS: Place = Place::new("alarms", "ApiErrors");
pub(crate) const ARCHIVE_ERRORS: Place = Place::new("alarms", "ArchiveErrors");
pub(crate) const SEAL_ERRORS: Place = Place::new("alarms", "SealErrors");
pub(crate) const SEAL_DIFFERS: Place = Place::new("alarms", "SealDiffers");
pub(crate) const SEAL_BEHIND: Place = Place::new("alarms", "SealBehind");
pub(crate) const ARCHIVE_OVERDUE: Place = Place::new("alarms", "ArchiveOverdue");
pub(crate) const BUS_MISSED: Place = Place::new("alarms", "BusMissed");
pub(crate) const CANCELLED_PROCESSED: Place = Place::new("alarms", "CancelledPaymentsProcessed");
pub(crate) const CHANGES_UNPARSED: Place = Place::new("alarms", "ChangesUnparsed");
pub(crate) const CONFLICTING_RESULTS: Place = Place::new("alarms", "ConflictingResults");
pub(crate) const CLOSE_GATE: Place = Place::new("operations", "Close the gate");
pub(crate) const COUNTS_BEHIND: Place = Place::new("alarms", "CountsBehind");
pub(crate) const COUNTS_DRIFTED: Place = Place::new("alarms", "CountsDrifted");
pub(crate) const DAY_HELD: Place = Place::new("alarms", "DayHeld");
pub(crate) const DATES_UNREADABLE: Place = Place::new("alarms", "DatesUnreadable");
pub(crate) const DISPATCH_FAILURES: Place = Place::new("alarms", "DispatchFailuresAlarm");
pub(crate) const EVENTS_MISSING: Place = Place::new("alarms", "EventsMissing");
pub(crate) const FUNCTION_ERRORS: Place = Place::new("alarms", "FunctionErrors");
pub(crate) const JOURNAL_BEHIND: Place = Place::new("alarms", "JournalBehind");
pub(crate) const HELD_FOR_LONG: Place = Place::new("alarms", "HeldForLong");
pub(crate) const JOURNAL_MISSED: Place = Place::new("alarms", "JournalMissed");
pub(crate) const FOUR_EYES_BYPASSED: Place = Place::new("alarms", "FourEyesBypassed");
pub(crate) const PAYMENTS_OVERDUE: Place = Place::new("alarms", "PaymentsOverdue");
pub(crate) const PAYMENTS_STOPPED: Place = Place::new("alarms", "PaymentsStopped");
pub(crate) const PAYMENTS_STUCK_PENDING: Place = Place::new("alarms", "PaymentsStuckPending");
pub(crate) const PAYMENTS_UNREADABLE: Place = Place::new("alarms", "PaymentsUnreadable");
pub(crate) const RECOUNT_ERRORS: Place = Place::new("alarms", "RecountErrors");
pub(crate) const RECOUNT_STOPPED: Place = Place::new("alarms", "RecountStopped");
pub(crate) const RECOUNT_UNFINISHED: Place = Place::new("alarms", "RecountUnfinished");
pub(crate) const REDATE_ERRORS: Place = Place::new("alarms", "RedateErrors");
pub(crate) const REDATE_UNFINISHED: Place = Place::new("alarms", "RedateUnfinished");
pub(crate) const REDRIVE_FAILURES: Place = Place::new("alarms", "RedriveFailures");
pub(crate) const REDRIVE_UNFINISHED: Place = Place::new("alarms", "RedriveUnfinished");
pub(crate) const REPORTS_LATE: Place = Place::new("alarms", "ReportsLate");
pub(crate) const REPORT_ERRORS: Place = Place::new("alarms", "ReportErrors");
pub(crate) const REPORT_FAILURES: Place = Place::new("alarms", "ReportFailures");
pub(crate) const REPORT_FILE_ALTERED: Place = Place::new("alarms", "ReportFileAltered");
pub(crate) const REQUESTS_WAITING: Place = Place::new("alarms", "RequestsWaiting");
pub(crate) const REQUEST_DEAD_LETTERS: Place = Place::new("alarms", "RequestDeadLettersAlarm");
pub(crate) const RESULTS_WAITING: Place = Place::new("alarms", "ResultsWaiting");
pub(crate) const RESULT_DEAD_LETTERS: Place = Place::new("alarms", "ResultDeadLettersAlarm");
pub(crate) const SHARED_TRANSACTION_IDS: Place = Place::new("alarms", "SharedTransactionIds");
pub(crate) const SWEEP_FAILURES: Place = Place::new("alarms", "SweepFailures");
pub(crate) const SWITCH_UNREADABLE: Place = Place::new("alarms", "SwitchUnreadable");
pub(crate) const UNDO_UNFINISHED: Place = Place::new("alarms", "UndoUnfinished");
pub(crate) const WAITING_FOR_REDATE: Place = Place::new("alarms", "WaitingForRedate");
pub(crate) const WEBHOOKS_BEHIND: Place = Place::new("alarms", "WebhooksBehind");
pub(crate) const WEBHOOKS_MISSED: Place = Place::new("alarms", "WebhooksMissed");
pub(crate) const WEBHOOK_DISABLED: Place = Place::new("alarms", "WebhookDisabled");
pub(crate) const WRITE_THROTTLES: Place = Place::new("alarms", "WriteThrottles");
pub(crate) const HOLIDAY: Place = Place::new("operations", "A holiday is announced");
pub(crate) const INCIDENT: Place = Place::new("operations", "Stop a wrong feed");
pub(crate) const MOVE_BACK: Place = Place::new("operations", "Move dead letters back");
pub(crate) const PAUSE: Place = Place::new("operations", "Pause and resume");
pub(crate) const PUT_ENDPOINT_BACK: Place = Place::new("operations", "Put a webhook endpoint back");
pub(crate) const LOST_DETAILS: Place = Place::new("restore", "A payment whose amendment has no details");
pub(crate) const LOST_HEAD: Place = Place::new("restore", "The lost head of an amended payment");

#[cfg(test)]
mod tests {
    use super::*;

    /// The sections of the example in `build/main.rs`.
    const EXAMPLE: &[Section] = &include!(concat!(env!("OUT_DIR"), "/example.rs"));

    #[test]
    fn every_alarm_has_a_row_whose_time_is_known() {
        let alarms = GUIDES.iter().find(|guide| guide.name == "alarms").unwrap().sections;
        assert!(alarms.iter().filter(|section| section.level == 3).count() == PRIORITIES.len());
        for (cell, want) in [
            ("now; if 503, first WriteThrottles", Within::Now),
            ("before that date; now if it is today or tomorrow", Within::BeforeDate),
            ("1 hour", Within::Hours(1)),
            ("23 hours", Within::Hours(23)),
            ("today; at once if the log was restored", Within::Today),
            ("2 days", Within::Days(2)),
            ("a month", Within::Days(30)),
            ("at once", Within::Now),
        ] {
            assert_eq!(Within::parse(cell), want, "{cell}");
        }
        let is_known = |cell: &str| cell.starts_with("now") || Within::parse(cell) != Within::Now;
        assert!(PRIORITIES.iter().all(|(_, cell)| is_known(cell)), "{PRIORITIES:?}");
        assert_eq!(REDATE_ERRORS.priority().1, WAITING_FOR_REDATE.priority().1, "the same as the row above");
        assert!(CANCELLED_PROCESSED.priority().0 < PAYMENTS_OVERDUE.priority().0);
        assert_eq!(PAUSE.priority(), (0, Within::Now));
    }

    #[test]
    fn a_guide_is_cut_at_its_headings() {
        let found: Vec<_> = EXAMPLE.iter().map(|section| (section.level, section.at, section.title)).collect();
        let wanted = [(1, "example", "Example"), (2, "now-settle-it", "Now: settle it"), (3, "busbehind", "BusBehind")];
        assert_eq!(found, wanted);
    }

    #[test]
    fn links_and_names_of_alarms_stay_in_the_console() {
        assert_eq!(
            EXAMPLE[0].body,
            "<p>See <a href=\"#alarms?at=apierrors\">an alarm</a>, <a href=\"#alarms\">all</a>, \
             <a href=\"#example?at=now-settle-it\">below</a>, the log (<code>docs/deploy.md</code>),\n\
             <a href=\"#alarms?at=busbehind\">BusBehind</a>, 2, and <code>BusBehind</code>.</p>\n"
        );
        assert_eq!(EXAMPLE[2].body, "<p>BusBehind</p>\n", "an entry does not lead to itself");
    }

    #[test]
    fn markup_in_a_guide_is_shown_as_text() {
        assert_eq!(
            EXAMPLE[1].body,
            "&lt;script&gt;window.pwned=1&lt;/script&gt;\n\
             <p>An &lt;img src=x onerror=pwn()&gt; and a link (<code>docs/javascript:window.pwned=1</code>).</p>\n\
             <table class=\"cards\" role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">\
             <th role=\"columnheader\" scope=\"col\">right</th><th role=\"columnheader\" scope=\"col\">\"next\"</th></tr></thead>\
             <tbody role=\"rowgroup\">\n<tr role=\"row\"><td role=\"cell\" class=\"all\"><span><code>&lt;b&gt;</code> &amp; \"c\"</span></td>\
             <td role=\"cell\" class=\"all\" data-l=\"&quot;next&quot;\"><span>d</span></td></tr>\n</tbody></table>\n\
             <pre tabindex=\"0\"><code>echo &lt;id&gt;\n</code></pre>"
        );
    }
}
