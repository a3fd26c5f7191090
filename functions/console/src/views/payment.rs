//! One payment: its state, its history, and its client's data.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, ProblemKind, Request};
use payments_model::{AccountId, DateRule, Details, Head, HeadKey, MoveReason, PaymentId, Slot, SlotAt, State, Status};
use payments_store::StoreError;

use crate::function::Console;
use crate::guides::{DISPATCH_FAILURES, LOST_DETAILS, LOST_HEAD};
use crate::html::{day, fact, grouped, heading, instant, link, money, status};

/// The stored items of a payment.
struct Found {
    id: PaymentId,
    /// Its first details, if they exist and can be read.
    first: Option<Details>,
    /// Its head; `None` if the create did not complete, or the head is lost.
    head: Option<Head>,
    /// The details in force and before, the latest first, without the first ones; or why they cannot be shown.
    chain: Result<Vec<Details>, &'static str>,
}

impl Console {
    /// The view of one payment: one read for its first details, one or two for its head, and one for each amendment.
    pub(crate) async fn payment(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["id", "account", "at"])?;
        let payment_id: PaymentId = query.get("id")?.ok_or_else(|| invalid_parameter("id", &"it is missing"))?;
        let (account, at): (Option<AccountId>, Option<SlotAt>) = (query.get("account")?, query.get("at")?);
        let key = account.zip(at).map(|(account, at)| HeadKey { account, slot: Slot { at, payment_id } });
        let missing = || Problem::new(ProblemKind::NoSuchPayment, "There is no payment with this id; check the id.");
        self.shown(payment_id, key).await?.ok_or_else(missing)
    }

    /// The view of a payment, if its id exists. Its first details give the key of its head, or else the link does.
    pub(crate) async fn shown(&self, id: PaymentId, key: Option<HeadKey>) -> Result<Option<Markup>, Problem> {
        let first = readable(id, self.store.details(id).await)?.flatten();
        let Some(key) = first.as_ref().map(Details::key).or(key) else { return Ok(None) };
        let head = self.store.head(&key).await?;
        if first.is_none() && head.is_none() {
            return Ok(None);
        }
        let deadline = self.deadline();
        let chain = match &head {
            None => Ok(Vec::new()),
            Some(head) => match readable(id, self.store.details_chain(head, || !deadline.has_come()).await)? {
                Some(Some(chain)) => Ok(chain),
                Some(None) => Err("DynamoDB is slow, so what the payment was is not shown; try again"),
                None => Err("What the payment was cannot be read; the function's log says why"),
            },
        };
        Ok(Some(page(&Found { id, first, head, chain })))
    }
}

impl Console {
    /// A line below a payment's status, for a list: the requests of a pending one, the reason of a failed one.
    pub(crate) fn note(&self, head: &Head) -> String {
        let most = self.config.max_attempts;
        match (&head.state, head.dispatch_attempt) {
            (State::Pending, Some(attempt)) if attempt < most => format!("request {attempt} of {most}"),
            (State::Pending, Some(attempt)) => format!("{attempt} of {most} sent, none follows"),
            (State::Failed(failure), _) if failure.reason().is_empty() => failure.code().to_string(),
            (State::Failed(failure), _) => failure.reason().to_owned(),
            _ => String::new(),
        }
    }
}

/// Returns what was read, if it is readable. Damaged or lost items do not hide the others.
fn readable<T>(id: PaymentId, read: Result<T, StoreError>) -> Result<Option<T>, Problem> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ StoreError::Unreadable { .. }) => {
            tracing::error!(payment = %id, %error, "details of a payment cannot be read");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn page(found: &Found) -> Markup {
    let Found { id, first, head, chain } = found;
    let in_force = match (head, chain) {
        (Some(head), Ok(chain)) if head.amendment.is_some() => chain.first(),
        (Some(head), Err(_)) if head.amendment.is_some() => None,
        _ => first.as_ref(),
    };
    html! {
        (heading(&format!("Payment {id}")))
        @match head {
            Some(head) => { (facts(head, in_force)) (cancel(head)) (trail(head)) }
            None => p class="warn" {
                "It has no head, which holds its status: its create did not complete and was not acknowledged, or a restore lost the head. If its client repeats the create, the head is put. If it was amended, see "
                (LOST_HEAD) "."
            }
        }
        h2 { "What it was" }
        @if let Err(why) = chain { p class="warn" { (why) ". If the details of an amendment are lost, see " (LOST_DETAILS) "." } }
        @match first {
            Some(first) => (versions(first, chain.as_deref().unwrap_or_default())),
            None => p class="warn" { "Its first details are missing or cannot be read, so it is not sent. See " (DISPATCH_FAILURES) "." }
        }
        @if let Some(details) = in_force { (data(details)) }
    }
}

fn facts(head: &Head, in_force: Option<&Details>) -> Markup {
    let date = head.due_date.to_string();
    html! {
        div class="facts" { dl {
            (fact("Status", &status(head.state.status())))
            (fact("Amount", &money(head.money.amount.get().into(), head.money.currency)))
            (fact("Account", &html! { (head.account) }))
            (fact("Payee", &html! { (head.payee) }))
            @if let Some(reference) = &head.reference { (fact("Reference", &html! { (reference) })) }
            (fact("Asked for", &html! { (head.scheduled_for) @if let Some(details) = in_force { (asked(details)) } }))
            (fact("Due", &html! {
                (instant(head.due_at)) ", on " a href=(link("day", &[("date", &date)])) { (day(head.due_date)) }
                @if let Some(moved) = in_force.and_then(|details| details.moved.as_ref()) {
                    ", moved: " (why_moved(moved.reason))
                    @if let Some(calendar) = &moved.calendar { ", by the calendar " (calendar.id()) " of " (calendar.version()) }
                }
            }))
            @if let Some(attempt) = head.dispatch_attempt { (fact("Requests sent", &html! { "the last one has number " (attempt) })) }
            @if let Some(id) = head.transaction_id() { (fact("Transaction", &html! { code { (id) } })) }
            @if let Some(failure) = head.failure() {
                (fact("Reason", &html! { code { (failure.code()) } " " (failure.reason()) }))
            }
            @if head.state.status().is_settled() {
                (fact("Report", &html! { @if head.unreported { "not reported yet" } @else { "reported" } }))
            }
            (fact("Version", &html! { (head.version) }))
            (fact("Shard", &html! { (head.shard.get()) }))
        } }
    }
}

/// The form that previews a cancel.
fn cancel(head: &Head) -> Markup {
    html! { @if head.state.status() == Status::Scheduled {
        form data-action="cancel" {
            input type="hidden" name="payments" value=(head.payment_id);
            input type="hidden" name="step" value="preview";
            button { "Cancel…" }
        }
    } }
}

fn asked(details: &Details) -> Markup {
    html! { @if let Some(rule) = details.instruction.date_rule { ", rule " (DateRule::as_str(rule)) } }
}

fn why_moved(reason: MoveReason) -> &'static str {
    match reason {
        MoveReason::Weekend => "the date is a weekend",
        MoveReason::Holiday => "the date is a holiday",
        MoveReason::CutOff => "the cut-off had passed",
    }
}

fn trail(head: &Head) -> Markup {
    html! {
        h2 { "What happened" }
        div class="scroll" tabindex="0" { table {
            caption { "The statuses that it entered" }
            thead { tr { th scope="col" { "Status" } th scope="col" { "When" } th scope="col" { "By" } } }
            tbody { @for entry in head.trail() { tr {
                td { (status(entry.status)) }
                td { (instant(entry.at)) }
                td class="text" { (entry.by) }
            } } }
        } }
    }
}

/// The versions of the payment, the first one first.
fn versions(first: &Details, chain: &[Details]) -> Markup {
    let all: Vec<&Details> = std::iter::once(first).chain(chain.iter().rev()).collect();
    let before = std::iter::once(None).chain(all.iter().copied().map(Some));
    html! {
        div class="scroll" tabindex="0" { table {
            caption { "Its content, the first version first" }
            thead { tr {
                th scope="col" class="number" { "Version" } th scope="col" { "When" } th scope="col" { "By" } th scope="col" { "Changed" }
                th scope="col" { "Payee" } th scope="col" class="number" { "Amount" } th scope="col" { "Due" }
            } }
            tbody { @for (details, before) in all.iter().zip(before) { tr {
                td class="number" { (details.amendment.map_or(1, |amendment| amendment.name.version)) }
                td { (instant(details.created_at)) }
                td class="text" { (details.created_by) }
                td { (before.map(|before| before.changes(details)).unwrap_or_default().join(", ")) }
                td class="text" { (details.instruction.payee) }
                td class="number" { (money(details.instruction.money.amount.get().into(), details.instruction.money.currency)) }
                td { (instant(details.due_at)) }
            } } }
        } }
    }
}

/// The client's own data, as the client sent it.
fn data(details: &Details) -> Markup {
    let Some(data) = &details.instruction.data else { return html! {} };
    let bytes = i128::try_from(data.as_str().len()).unwrap_or_default();
    html! {
        details {
            summary { "The client's data, " (grouped(bytes)) " bytes" }
            pre tabindex="0" { (data.as_str()) }
        }
    }
}
