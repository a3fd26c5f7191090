//! The audit trail: actions of operators in the console and on webhook endpoints, newest first.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, ProblemKind, Query, Request};
use payments_model::{BusinessDate, UtcSecond};
use payments_store::{ActionName, AuditEntry, AuditMonth, AuditPage, StoreError};

use crate::function::Console;
use crate::html::{copied, fact, foreign, link, payment_link, top};
use crate::panel::{cards, empty, head};
use crate::times::Times;
use crate::told::{ACTIONS, Told, action, in_words, outcome, parts};
use crate::views::place_in;

/// The items of one read: intents and outcomes of up to 50 actions.
const ITEMS: u16 = 100;

/// The most reads of one view with a filter: at least 500 actions.
const MAX_READS: usize = 10;

/// The actions after which a view with a filter ends.
const ENOUGH: usize = 50;

/// The longest text of a filter, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// The actions to show.
#[derive(Debug, Default)]
struct Filter {
    person: String,
    action: String,
    /// A part of a payment's or an endpoint's id.
    thing: String,
}

impl Filter {
    fn read(query: &Query<'_>) -> Result<Self, Problem> {
        let text = |name: &'static str| {
            let text = query.text(name)?.unwrap_or_default().trim();
            if text.len() > MAX_TEXT_BYTES {
                return Err(invalid_parameter(name, &format_args!("it has more than {MAX_TEXT_BYTES} bytes")));
            }
            Ok(text.to_owned())
        };
        Ok(Self { person: text("person")?, action: text("action")?, thing: text("thing")? })
    }

    fn is_empty(&self) -> bool {
        self.person.is_empty() && self.action.is_empty() && self.thing.is_empty()
    }

    fn has(&self, entry: &AuditEntry) -> bool {
        let holds = |text: &str, wanted: &str| text.to_lowercase().contains(&wanted.to_lowercase());
        let intent = &entry.intent;
        let people = [person(&intent.by), intent.subject.as_deref().unwrap_or_default()];
        (self.person.is_empty() || people.iter().any(|person| holds(person, &self.person)))
            && (self.action.is_empty() || intent.action == self.action)
            && (self.thing.is_empty() || holds(&intent.arguments, self.thing.trim_matches('"')))
    }

    /// The arguments of a link to the same filter.
    fn arguments(&self) -> Vec<(&str, &str)> {
        let all = [("person", &self.person), ("action", &self.action), ("thing", &self.thing)];
        all.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.as_str())).collect()
    }
}

/// Actions, and the place from which to search on.
struct Found {
    entries: Vec<Result<AuditEntry, StoreError>>,
    next: Option<ActionName>,
}

impl Console {
    /// The view of the trail: one read; with a filter, up to ten. Of one action, one read.
    pub(crate) async fn audit(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["month", "before", "entry", "person", "action", "thing"])?;
        if let Some(name) = query.text("entry")? {
            return self.audited(place("entry", name)?).await;
        }
        let month = query.get("month")?.unwrap_or_else(|| AuditMonth::from_second(self.clock.now()));
        let before = query.text("before")?.map(|text| place("before", text)).transpose()?;
        let (filter, times) = (Filter::read(&query)?, self.times());
        let Found { entries, next } = self.search(&month, before, &filter).await?;
        let (number, words) = (month.to_string(), in_words_month(&month));
        let earlier = next.map(|next| {
            let place = place_text(next);
            let mut arguments = vec![("month", number.as_str()), ("before", place.as_str())];
            arguments.extend(filter.arguments());
            link("audit", &arguments)
        });
        let is_of_all = filter.is_empty() && before.is_none();
        Ok(html! {
            (top(&html! { h1 tabindex="-1" { "Audit " span class="quiet" { (words) } } }, times))
            section class="panel" {
                (form(&number, &filter))
                @if entries.is_empty() {
                    (empty(&html! {
                        @if is_of_all { b { "Nobody acted in " (words) "." } }
                        @else if next.is_some() { b { "Nothing matches" } " among those that were searched." }
                        @else { b { "Nothing matches." } " " a href=(link("audit", &[("month", &number)])) { "Clear filters" } }
                    }))
                } @else { (table(&entries, times)) }
            }
            p class="row" {
                @if let Some(earlier) = earlier { a class="button" href=(earlier) { @if filter.is_empty() { "Earlier" } @else { "Search earlier ones" } } }
                span class="quiet" { "Ordered by when each was asked for. The console changes and deletes no entry" }
            }
        })
    }

    /// Reads actions before a place. With a filter it reads on, within a bound.
    async fn search(
        &self,
        month: &AuditMonth,
        mut before: Option<ActionName>,
        filter: &Filter,
    ) -> Result<Found, StoreError> {
        let mut found = Found { entries: Vec::new(), next: None };
        for _ in 0..if filter.is_empty() { 1 } else { MAX_READS } {
            let AuditPage { entries, next } = self.store.audit_page(month, before, ITEMS).await?;
            let wanted = |entry: &Result<AuditEntry, StoreError>| entry.as_ref().is_ok_and(|entry| filter.has(entry));
            found.entries.extend(entries.into_iter().filter(|entry| entry.is_err() || wanted(entry)));
            (found.next, before) = (next, next);
            if next.is_none() || found.entries.len() >= ENOUGH {
                break;
            }
        }
        Ok(found)
    }

    /// The view of one action: one read.
    async fn audited(&self, name: ActionName) -> Result<Markup, Problem> {
        let nothing =
            || Problem::new(ProblemKind::NoSuchRoute, "The trail has no such action; look at the month again.");
        let AuditEntry { intent, outcome: ended } = self.store.audit_entry(name).await?.ok_or_else(nothing)?;
        let (times, told) = (self.times(), outcome(&intent.action, ended.as_ref()));
        let month = AuditMonth::from_second(name.previewed_at).to_string();
        Ok(html! {
            (top(&html! { div class="row" { h1 tabindex="-1" { "Action" } (pill(&told)) } }, times))
            section class="panel" {
                (head(&action(&intent), &html! {}))
                dl class="facts" {
                    (fact("Previewed", &when(name.previewed_at, times)))
                    (fact("Confirmed", &when(intent.at, times)))
                    (fact("By", &who(&intent.by, intent.subject.as_deref())))
                    (fact("Action", &html! { (intent.action) }))
                    @for line in intent.arguments.lines() {
                        @let (name, value) = line.split_once(": ").unwrap_or(("", line));
                        (fact(name, &foreign(value)))
                    }
                    (fact("Outcome", &html! { @match &ended { Some(ended) => (when(ended.at, times)), None => (foreign(&told.more)) } }))
                    @if let Some(ended) = &ended { (fact("Says", &result(&ended.result))) }
                    (fact("Request", &copied(&intent.request)))
                    (fact("Entry", &copied(&name.id.to_string())))
                }
            }
            p class="row" { a class="button" href=(link("audit", &[("month", &month)])) { "All of the month" } }
        })
    }
}

/// The lines of an outcome, with links to payments.
fn result(result: &str) -> Markup {
    let of_payments = parts(result);
    html! {
        ul class="any" {
            @if of_payments.is_empty() { @for line in result.lines() { li { (foreign(line)) } } }
            @for (id, rest) in of_payments { li { (payment_link(id)) " " (in_words(rest)) } }
        }
    }
}

fn form(month: &str, filter: &Filter) -> Markup {
    html! {
        form class="pad" data-view="audit" { div class="fields" {
            label class="all" { "Month" input name="month" type="month" value=(month) required; }
            label { "Person" input name="person" size="14" maxlength="200" placeholder="anybody" value=(filter.person); }
            label { "Action" select name="action" {
                option value="" { "Any" }
                @for (name, says, _) in ACTIONS { option value=(name) selected[filter.action == name] { (says) } }
            } }
            label { "Payment or endpoint" input name="thing" size="18" maxlength="200" value=(filter.thing); }
            div class="row all" {
                button class="primary" { "Show" }
                @if !filter.is_empty() { a href=(link("audit", &[("month", month)])) { "Clear filters" } }
            }
        } }
    }
}

/// The place before which a page begins, or an action, from the link to it.
fn place(parameter: &'static str, text: &str) -> Result<ActionName, Problem> {
    let (previewed_at, id) = place_in("month", parameter, text)?;
    Ok(ActionName { previewed_at, id })
}

fn place_text(name: ActionName) -> String {
    format!("{}_{}", name.previewed_at, name.id)
}

/// A month in words: `November 2026`.
fn in_words_month(month: &AuditMonth) -> String {
    let first = format!("{month}-01").parse::<BusinessDate>();
    first.map_or_else(|_| month.to_string(), |first| first.as_chrono().format("%B %Y").to_string())
}

fn table(entries: &[Result<AuditEntry, StoreError>], times: Times) -> Markup {
    let columns = [("When", ""), ("Who", ""), ("Action", ""), ("Outcome", ""), ("Entry", "act")];
    let rows = html! {
        @for entry in entries {
            @match entry {
                Ok(entry) => (row(entry, times)),
                Err(error) => tr { td class="all" colspan="5" { span class="pill warn" { "Unreadable" } small { (unreadable(error)) } } },
            }
        }
    };
    cards("What operators did, newest first", &columns, &rows)
}

fn row(entry: &AuditEntry, times: Times) -> Markup {
    let AuditEntry { intent, outcome: ended } = entry;
    let (told, id) = (outcome(&intent.action, ended.as_ref()), intent.name.id.to_string());
    html! { tr {
        td { (when(intent.at, times)) small { (times.age(intent.at)) } }
        td class="end" { (who(&intent.by, intent.subject.as_deref())) }
        td class="all" { (action(intent)) }
        td class="st" { (pill(&told)) small { (foreign(&told.more)) } }
        td class="act" { a class="id" title=(id) href=(link("audit", &[("entry", &place_text(intent.name))])) { (id.split('-').next().unwrap_or(&id)) } }
    } }
}

fn pill(told: &Told) -> Markup {
    html! { span class={ "pill " (told.class) } { (told.word) } }
}

/// An instant with seconds, with its date unless it is today's.
fn when(at: UtcSecond, times: Times) -> Markup {
    let date = times.zone.date_of(at);
    html! { @if date != times.zone.date_of(times.now) { span class="n" { (times.date(date)) ", " } } (times.clock(at)) }
}

/// The operator, who leads to all of that person's actions.
fn who(by: &str, subject: Option<&str>) -> Markup {
    let name = person(by);
    html! {
        a href=(link("audit", &[("person", name)])) { (foreign(name)) }
        @if let Some(subject) = subject.filter(|subject| *subject != name) { small { (foreign(subject)) } }
    }
}

/// The name of an actor, without its kind.
fn person(by: &str) -> &str {
    by.split_once(':').map_or(by, |(_, name)| name)
}

fn unreadable(error: &StoreError) -> &'static str {
    tracing::error!(%error, "an action of the audit trail cannot be read");
    "The function’s log names it"
}
