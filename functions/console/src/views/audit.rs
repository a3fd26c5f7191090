//! The audit trail: actions of operators in the console and on webhook endpoints, newest first.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, ProblemKind, Query, Request};
use payments_model::{ActionName, BusinessDate, UtcSecond};
use payments_store::{Asked, AuditEntry, AuditMonth, AuditPage, Standing, StoreError};

use crate::actions::decision;
use crate::asked::Waiting;
use crate::function::Console;
use crate::html::{copied, fact, foreign, link, payment_link, person_of, top};
use crate::panel::{cards, empty, head};
use crate::times::Times;
use crate::told::{ACTIONS, Told, action, in_words, outcome, parts, standing};
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
        let second = entry.outcome.as_ref().and_then(|outcome| outcome.second.as_deref()).unwrap_or_default();
        let people = [person_of(&intent.by), intent.subject.as_deref().unwrap_or_default(), person_of(second)];
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

/// An action of the trail, with its end in words.
type Row = Result<(AuditEntry, Told), StoreError>;

/// Actions, and the place from which to search on.
struct Found {
    entries: Vec<Result<AuditEntry, StoreError>>,
    next: Option<ActionName>,
}

impl Console {
    /// The view of the trail: one read; with a filter, up to ten. One for the actions that wait for a second person, unless the
    /// view has a filter or a place, and one for each without an outcome. Of one action, one or two.
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
            let place = next.to_string();
            let mut arguments = vec![("month", number.as_str()), ("before", place.as_str())];
            arguments.extend(filter.arguments());
            link("audit", &arguments)
        });
        let is_of_all = filter.is_empty() && before.is_none();
        let is_now = month == AuditMonth::from_second(times.now);
        let waiting = if is_of_all && is_now { Some(self.waiting_for_second().await?) } else { None };
        let rows = self.with_ends(entries, times).await?;
        Ok(html! {
            (top(&html! { h1 tabindex="-1" { "Audit " span class="quiet" { (words) } } }, times))
            @if let Some(waiting) = &waiting { (self::waiting(waiting, times)) }
            section class="panel" {
                (form(&number, &filter))
                @if rows.is_empty() {
                    (empty(&html! {
                        @if is_of_all { b { "Nobody acted in " (words) "." } }
                        @else if next.is_some() { b { "Nothing matches" } " among those that were searched." }
                        @else { b { "Nothing matches." } " " a href=(link("audit", &[("month", &number)])) { "Clear filters" } }
                    }))
                } @else { (table(&rows, times)) }
            }
            p class="row" {
                @if let Some(earlier) = earlier { a class="button" href=(earlier) { @if filter.is_empty() { "Earlier" } @else { "Search earlier ones" } } }
                span class="quiet" { "Ordered by when each was asked for. The console changes and deletes no entry" }
            }
        })
    }

    /// The end of each action in words. One that needs a second person and has no outcome needs a read.
    async fn with_ends(
        &self,
        entries: Vec<Result<AuditEntry, StoreError>>,
        times: Times,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            rows.push(match entry {
                Ok(entry) if entry.intent.first.is_some() && entry.outcome.is_none() => {
                    let decision = self.store.approval(entry.intent.name).await?;
                    let asked = Asked::new(entry.clone(), decision);
                    let told = asked.map_or_else(|| outcome(&entry.intent.action, None), |it| standing(&it, times));
                    Ok((entry, told))
                }
                Ok(entry) => {
                    let told = outcome(&entry.intent.action, entry.outcome.as_ref());
                    Ok((entry, told))
                }
                Err(error) => Err(error),
            });
        }
        Ok(rows)
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

    /// The view of one action: one read, and one more if it needs a second person.
    async fn audited(&self, name: ActionName) -> Result<Markup, Problem> {
        let nothing =
            || Problem::new(ProblemKind::NoSuchRoute, "The trail has no such action; look at the month again.");
        let entry = self.store.audit_entry(name).await?.ok_or_else(nothing)?;
        let decision = if entry.intent.first.is_some() { self.store.approval(name).await? } else { None };
        let (times, asked) = (self.times(), Asked::new(entry.clone(), decision));
        let AuditEntry { intent, outcome: ended } = entry;
        let told = match &asked {
            Some(asked) if ended.is_none() => standing(asked, times),
            _ => outcome(&intent.action, ended.as_ref()),
        };
        let month = AuditMonth::from_second(name.previewed_at).to_string();
        Ok(html! {
            (top(&html! { div class="row" { h1 tabindex="-1" { "Action" } (pill(&told)) } }, times))
            section class="panel" {
                (head(&action(&intent), &html! {}))
                dl class="facts" {
                    (fact("Previewed", &when(name.previewed_at, times)))
                    (fact("Confirmed", &when(intent.at, times)))
                    (fact("By", &who(&intent.by, intent.subject.as_deref())))
                    @if let Some(asked) = &asked { (second(asked, times)) }
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

/// The actions that wait for a second person.
fn waiting(waiting: &Waiting, times: Times) -> Markup {
    let number = waiting.asked.len();
    let says = if number == 1 { "1 action waits".to_owned() } else { format!("{number} actions wait") };
    html! {
        @if number > 0 || waiting.more { section class="notice" {
            h2 { (says) " for a second person" @if waiting.more { ", perhaps others" } }
            @for asked in &waiting.asked {
                p { (action(&asked.intent)) "Asked by " b { (person_of(&asked.intent.by)) } " at " (times.minute(asked.intent.at)) ". It " (standing(asked, times).more) "." }
                div class="row" { (decision::opens(asked.intent.name)) }
            }
        } }
    }
}

/// The plan and the two persons of an action.
fn second(asked: &Asked, times: Times) -> Markup {
    html! {
        (fact("Person", &html! { span class="id any" { (asked.first.person) } }))
        (fact("Plan", &html! { span class="id any" { (asked.first.hash) } }))
        (fact("Second", &html! { @match &asked.decision {
            Some(decision) => {
                (if decision.is_approved { "approved by " } else { "refused by " }) (who(&decision.by, Some(decision.person.as_str()))) " " (when(decision.at, times))
            }
            None if matches!(asked.standing(times.now), Standing::Waits(_)) => { (standing(asked, times).more) (decision::opens(asked.intent.name)) }
            None => "nobody",
        } }))
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

/// A month in words: `November 2026`.
fn in_words_month(month: &AuditMonth) -> String {
    let first = format!("{month}-01").parse::<BusinessDate>();
    first.map_or_else(|_| month.to_string(), |first| first.as_chrono().format("%B %Y").to_string())
}

fn table(rows: &[Row], times: Times) -> Markup {
    let columns = [("When", ""), ("Who", ""), ("Action", ""), ("Outcome", ""), ("Entry", "act")];
    let rows = html! {
        @for row in rows {
            @match row {
                Ok((entry, told)) => (self::row(entry, told, times)),
                Err(error) => tr { td class="all" colspan="5" { span class="pill warn" { "Unreadable" } small { (unreadable(error)) } } },
            }
        }
    };
    cards("What operators did, newest first", &columns, &rows)
}

fn row(entry: &AuditEntry, told: &Told, times: Times) -> Markup {
    let AuditEntry { intent, outcome: ended } = entry;
    let (id, second) = (intent.name.id.to_string(), ended.as_ref().and_then(|ended| ended.second.as_deref()));
    html! { tr {
        td { (when(intent.at, times)) small { (times.age(intent.at)) } }
        td class="end" { (who(&intent.by, intent.subject.as_deref())) @if let Some(second) = second { " and " (who(second, None)) } }
        td class="all" { (action(intent)) }
        td class="st" { (pill(told)) small { (foreign(&told.more)) } }
        td class="act" { a class="id" title=(id) href=(link("audit", &[("entry", &intent.name.to_string())])) { (id.split('-').next().unwrap_or(&id)) } }
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
    let name = person_of(by);
    html! {
        a href=(link("audit", &[("person", name)])) { (foreign(name)) }
        @if let Some(subject) = subject.filter(|subject| *subject != name) { small { (foreign(subject)) } }
    }
}

fn unreadable(error: &StoreError) -> &'static str {
    tracing::error!(%error, "an action of the audit trail cannot be read");
    "The function’s log names it"
}
