//! The published reports, and links to download each.

use std::fmt;
use std::str::FromStr;

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, ProblemKind, Request};
use payments_model::{BusinessDate, UtcSecond};

use crate::function::Console;
use crate::guides::REPORT_FILE_ALTERED;
use crate::html::{copied, fact, heading, link, top};
use crate::operations::ReportFile;
use crate::panel::{cards, empty, size};
use crate::times::Times;

/// The most files of one list: a day of reports every quarter of an hour, with their summaries.
const LISTED: usize = 200;

/// The endings of a report's two files: the settlements, and their sums.
const ENDINGS: [&str; 2] = [".csv.gz", ".summary.json"];

/// The name of a report: that of its files without their endings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ReportName(String);

/// The parts of a report's name.
struct Span<'n> {
    /// The first settlement and the last; `None` if the name has no such instants.
    settled: Option<(UtcSecond, UtcSecond)>,
    /// The number of the run.
    number: &'n str,
}

/// An instant without the colons of its time: `2026-11-20T080203Z`.
fn instant(text: &str) -> Option<UtcSecond> {
    let (date, time) = text.split_once('T')?;
    let [hours, minutes, seconds] = [time.get(..2)?, time.get(2..4)?, time.get(4..)?];
    format!("{date}T{hours}:{minutes}:{seconds}").parse().ok()
}

impl FromStr for ReportName {
    type Err = &'static str;

    /// Other files of the storage, such as the journal, get no link.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_instant = |text: &str| {
            let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            shape == "0000-00-00T000000Z"
        };
        let is_name = || {
            let (span, number) = text.split_once("-run-")?;
            let (first, last) = span.split_once("--")?;
            let is_number = (6..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
            Some(is_instant(first) && is_instant(last) && is_number)
        };
        if is_name() == Some(true) {
            Ok(Self(text.to_owned()))
        } else {
            Err("it is not the name of a report; choose one in Reports")
        }
    }
}

impl fmt::Display for ReportName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ReportName {
    /// The report to which a file belongs.
    fn parse(path: &str) -> Option<Self> {
        let name = path.strip_prefix("reports/")?;
        ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))?.parse().ok()
    }

    /// The date of its first settlement, in UTC.
    fn date(&self) -> &str {
        self.0.split_once('T').map_or("", |(date, _)| date)
    }

    /// The settlements of the report, and its number.
    fn span(&self) -> Span<'_> {
        let (span, number) = self.0.split_once("-run-").unwrap_or((&self.0, ""));
        let (first, last) = span.split_once("--").unwrap_or((span, ""));
        Span { settled: instant(first).zip(instant(last)), number: number.trim_start_matches('0') }
    }

    fn path(&self, ending: &str) -> String {
        format!("reports/{self}{ending}")
    }
}

impl Console {
    /// The view of the reports from a date on, by default that of the last one: one call, and without a date one read.
    pub(crate) async fn reports(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["from", "cursor"])?;
        let (asked, after): (Option<BusinessDate>, Option<ReportName>) = (query.get("from")?, query.get("cursor")?);
        let from = match (&after, asked) {
            (Some(name), _) => name.date().to_owned(),
            (None, Some(date)) => date.to_string(),
            (None, None) => {
                let last = self.store.last_report_run().await?;
                last.map_or_else(|| self.clock.now(), |run| run.first_settled_at).as_chrono().format("%F").to_string()
            }
        };
        let is_later = after.is_some();
        let place = after.map_or_else(|| from.clone(), |name| name.0);
        let files = self.operations.reports(&format!("reports/{place}"), LISTED).await?;
        let is_cut = files.len() == LISTED;
        let mut reports: Vec<(ReportName, u64)> = files.iter().filter_map(settlements).collect();
        // The summary of the last report may be missing here, so the next list begins with this report.
        let next = if is_cut { reports.pop() } else { None };
        let times = self.times();
        Ok(html! {
            (top(&heading("Reports"), times))
            section class="panel" {
                form class="pad" data-view="reports" { div class="fields" {
                    label { "First settlement from, by UTC" input name="from" type="date" value=(from) required; }
                    div class="row all" { button class="primary" { "Show" } }
                } }
                @if reports.is_empty() {
                    (empty(&html! { @if asked.is_some() || is_later { b { "No report from this date on." } } @else { b { "No report yet:" } " nothing was settled." } }))
                } @else { (table(&reports, times)) }
            }
            @if let Some((next, _)) = next {
                p class="row" { a class="button" href=(link("reports", &[("cursor", &next.0)])) { "Later" } }
            }
        })
    }

    /// The view of a report: one call, and links that are made without one.
    pub(crate) async fn report(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        const PARAMETER: &str = "name";
        let name: ReportName = request
            .query(&[PARAMETER])?
            .get(PARAMETER)?
            .ok_or_else(|| invalid_parameter(PARAMETER, &"it is missing"))?;
        // The files of a name follow each other, and this is the text before them.
        let files = self.operations.reports(&format!("reports/{name}"), ENDINGS.len()).await?;
        let files: Vec<ReportFile> =
            files.into_iter().filter(|file| ENDINGS.iter().any(|ending| file.path == name.path(ending))).collect();
        if files.is_empty() {
            return Err(Problem::new(ProblemKind::NoSuchRoute, "There is no such report; look at the list again."));
        }
        tracing::info!(by = %request.operator(), person = request.person(), report = %name, "links to a report are shown");
        let mut links = Vec::new();
        for file in &files {
            links.push((file, self.operations.report_link(&file.path).await?));
        }
        let (span, times) = (name.span(), self.times());
        let missing = html! {
            div class="notice" {
                h2 { "One of the two files is missing" }
                p { "A report has its settlements and their sums. See " (REPORT_FILE_ALTERED) "." }
            }
        };
        Ok(html! {
            (top(&html! { h1 tabindex="-1" { "Report " (span.number) } }, times))
            @if links.len() < ENDINGS.len() { (missing) }
            section class="panel" {
                dl class="facts" {
                    @if let Some((first, last)) = span.settled { (fact("Settled", &html! { "from " (times.aged(first)) " to " (times.at(last)) })) }
                    @for (file, link) in &links {
                        (fact(kind(&file.path), &html! {
                            @match link {
                                Some(link) => { a href=(link) rel="noreferrer" target="_blank" { "Download" } },
                                None => { "in the bank’s folder of reports: " span class="id any" { (file.path) } },
                            }
                            " " span class="quiet" { (size(file.bytes)) }
                        }))
                    }
                    (fact("File name", &copied(&name.0)))
                }
            }
            p class="row" {
                a class="button" href=(link("reports", &[("from", name.date())])) { "Reports of this day" }
                span class="quiet" { "A download link works for a minute, for whoever has it. Load the view again for a new one" }
            }
        })
    }
}

fn kind(path: &str) -> &'static str {
    if path.ends_with(ENDINGS[0]) { "Settlements" } else { "Sums" }
}

/// The report of a file with settlements, and its size.
fn settlements(file: &ReportFile) -> Option<(ReportName, u64)> {
    let name = ReportName::parse(&file.path)?;
    (file.path == name.path(ENDINGS[0])).then_some((name, file.bytes))
}

fn table(reports: &[(ReportName, u64)], times: Times) -> Markup {
    let columns = [("Settled from", ""), ("to", ""), ("Size", "num"), ("Report", "act")];
    cards(
        "By the time of their first settlement",
        &columns,
        &html! { @for (name, bytes) in reports { (row(name, *bytes, times)) } },
    )
}

fn row(name: &ReportName, bytes: u64, times: Times) -> Markup {
    let Span { settled, number } = name.span();
    let at = |at: Option<UtcSecond>| html! { @if let Some(at) = at { (times.at(at)) } @else { "unknown" } };
    html! { tr {
        td class="b" { (at(settled.map(|(first, _)| first))) }
        td class="end" { "to " (at(settled.map(|(_, last)| last))) }
        td class="num" { (size(bytes)) }
        td class="act" { a class="b" href=(link("report", &[("name", &name.0)])) { "Report " (number) } }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_instants_and_a_number() {
        for (name, settled, number) in [
            ("2026-11-20T010203Z--2026-11-20T020203Z-run-000042", Some("2026-11-20T01:02:03Z"), "42"),
            ("2026-13-20T010203Z--2026-11-20T020203Z-run-1000042", None, "1000042"),
        ] {
            let name: ReportName = name.parse().unwrap();
            let span = name.span();
            assert_eq!(span.settled.map(|(first, _)| first.to_string()).as_deref(), settled);
            assert_eq!(span.number, number);
        }
    }

    #[test]
    fn only_published_reports_have_names() {
        let name = "2026-11-20T010203Z--2026-11-20T020203Z-run-000042";
        for (path, want) in [
            ("reports/2026-11-20T010203Z--2026-11-20T020203Z-run-000042.csv.gz", Some(name)),
            ("reports/2026-11-20T010203Z--2026-11-20T020203Z-run-000042.summary.json", Some(name)),
            ("reports/2026-11-20T010203Z--2026-11-20T020203Z-run-000042", None),
            ("attempts/2026-11-20T010203Z--2026-11-20T020203Z-run-000042.csv.gz", None),
            ("journal/3637440/000000000001", None),
            ("reports/../journal/a.csv.gz", None),
            ("reports/2026-11-20T010203Z--2026-11-20T020203Z-run-42.csv.gz", None),
            ("reports/2026-11-20T010203Z--x-run-000042.csv.gz", None),
            ("reports/<script>--<script>-run-000042.csv.gz", None),
            ("", None),
        ] {
            assert_eq!(ReportName::parse(path).map(|name| name.0).as_deref(), want, "{path}");
        }
    }
}
