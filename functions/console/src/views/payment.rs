//! One payment: its state, its history, and its client's data.

mod events;
mod facts;
mod found;
mod notices;
mod timeline;

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, ProblemKind, Request};
use payments_model::redrive::{NextRequest, Requests};
use payments_model::{
    AccountId, Details, Finding, Head, HeadKey, Outage as _, OutageKind, PaymentData, PaymentId, Slot, SlotAt, State,
    Status, causes,
};
use payments_store::StoreError;

use crate::function::Console;
use crate::guides::{DISPATCH_FAILURES, LOST_DETAILS, LOST_HEAD};
use crate::html::{account_link, money, status, top};
use crate::times::Times;
use crate::views::payment::found::Found;
use crate::views::payment::notices::Sending;
use crate::views::payment::timeline::Kind;

impl Console {
    /// The view of one payment: one read for its first details, one or two for its head, one for each amendment, one for its
    /// findings; three and a segment for each place of a webhook endpoint; and two of S3 if its data is in a sealed row.
    pub(crate) async fn payment(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["id", "account", "at", "show"])?;
        let payment_id: PaymentId = query.get("id")?.ok_or_else(|| invalid_parameter("id", &"it is missing"))?;
        let (account, at): (Option<AccountId>, Option<SlotAt>) = (query.get("account")?, query.get("at")?);
        let key = account.zip(at).map(|(account, at)| HeadKey { account, slot: Slot { at, payment_id } });
        let shown = match query.text("show")? {
            None => None,
            Some(name) => {
                let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
                Some(known.ok_or_else(|| invalid_parameter("show", &"it has to be money, requests or webhooks"))?)
            }
        };
        let missing = || Problem::new(ProblemKind::NoSuchPayment, "There is no payment with this id; check the id.");
        self.shown_as(payment_id, key, shown).await?.ok_or_else(missing)
    }

    /// The view of a payment, if its id exists. Its first details give the key of its head, or else the link does.
    pub(crate) async fn shown(&self, id: PaymentId, key: Option<HeadKey>) -> Result<Option<Markup>, Problem> {
        self.shown_as(id, key, None).await
    }

    async fn shown_as(
        &self,
        id: PaymentId,
        key: Option<HeadKey>,
        shown: Option<Kind>,
    ) -> Result<Option<Markup>, Problem> {
        let first = readable(id, self.store.details(id).await)?.flatten();
        let Some(key) = first.as_ref().map(Details::key).or(key) else { return Ok(None) };
        let head = self.store.head(&key).await?;
        if first.is_none() && head.is_none() {
            return Ok(None);
        }
        let (chain, findings, endpoints) =
            tokio::join!(self.chain_of(id, head.as_ref()), self.store.findings_of(id), self.seen_by_endpoints());
        let (chain, (findings, unreadable)) = (chain?, told(id, findings?));
        let endpoints = endpoints.unwrap_or_else(|error| {
            tracing::error!(payment = %id, %error, "the endpoints cannot be read, so a payment's deliveries are not shown");
            Vec::new()
        });
        let mut found = Found { id, first, head, chain, data: None, findings, unreadable, endpoints };
        let data = self.client_data(found.in_force()).await;
        found.data = data;
        Ok(Some(self.payment_page(&found, &key, shown)))
    }

    /// The details in force and before, without the first ones; or why they cannot be shown.
    async fn chain_of(
        &self,
        id: PaymentId,
        head: Option<&Head>,
    ) -> Result<Result<Vec<Details>, &'static str>, Problem> {
        let Some(head) = head else { return Ok(Ok(Vec::new())) };
        let deadline = self.deadline();
        Ok(match readable(id, self.store.details_chain(head, || !deadline.has_come()).await)? {
            Some(Some(chain)) => Ok(chain),
            Some(None) => Err("DynamoDB is slow, so what the payment was is not shown; try again"),
            None => Err("What the payment was cannot be read; the function's log says why"),
        })
    }

    /// The client's data of details, which a sealed row may have; or why it is not shown.
    async fn client_data(&self, details: Option<&Details>) -> Option<Result<PaymentData, &'static str>> {
        let details = details?;
        let error = match self.sealed.opened([details.clone()]).await {
            Ok([details]) => return details.instruction.data.map(Ok),
            Err(error) => error,
        };
        tracing::error!(payment = %details.payment_id, causes = ?causes(&error), "the sealed data of a payment cannot be read");
        Some(Err(match error.kind() {
            OutageKind::Broken => "cannot be read from its sealed part; the function's log says why",
            OutageKind::Throttled | OutageKind::Unavailable => "is not shown, because S3 has not answered; try again",
        }))
    }

    /// A line below a payment's status, for a list: the requests of a pending one, the reason of a failed one.
    pub(crate) fn note(&self, head: &Head) -> String {
        let most = self.config.max_attempts;
        match (&head.state, Requests::from_head(head)) {
            (State::Pending, Some(requests)) => match requests.next_request(most) {
                NextRequest::Redrive(at) => {
                    let next = self.times().brief_text(at);
                    format!("request {} of {most}, next {next}", requests.attempt)
                }
                NextRequest::Operator(_) => format!("{} of {most} sent, none follows", requests.attempt),
            },
            (State::Failed(failure), _) if failure.reason().is_empty() => failure.code().to_string(),
            (State::Failed(failure), _) => failure.reason().to_owned(),
            _ => String::new(),
        }
    }

    fn payment_page(&self, found: &Found, key: &HeadKey, shown: Option<Kind>) -> Markup {
        let Found { id, head, .. } = found;
        let (times, most) = (self.times(), self.config.max_attempts);
        let sending =
            head.as_ref().and_then(Requests::from_head).map(|requests| Sending { requests, max_attempts: most, times });
        let (id, at) = (id.to_string(), key.slot.at.to_string());
        let own = [("id", id.as_str()), ("account", key.account.as_str()), ("at", &at)];
        html! {
            (title(found, sending.as_ref(), times))
            @if let Some(head) = head { (notices::notices(head, &found.findings, sending.as_ref(), times)) }
            (warnings(found))
            div class="cols" {
                @match head {
                    Some(head) => {
                        @let entries = timeline::entries(found, head, times, most);
                        (timeline::panel(&notices::next(head, sending.as_ref(), self.config.paused, times), &entries, shown, &own, times))
                    }
                    None => section class="panel" { div class="head" { h2 { "What happened" } } p class="empty" { "Nothing but its creation is known." } },
                }
                (facts::panel(found, times, most))
            }
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

/// The findings that can be read, and the number of the others.
fn told(id: PaymentId, all: Vec<Result<Finding, StoreError>>) -> (Vec<Finding>, usize) {
    let (mut findings, mut unreadable) = (Vec::new(), 0);
    for finding in all {
        match finding {
            Ok(finding) => findings.push(finding),
            Err(error) => {
                tracing::error!(payment = %id, %error, "a finding of a payment cannot be read");
                unreadable += 1;
            }
        }
    }
    (findings, unreadable)
}

/// The top of the view: amount, status, both accounts, and the cancel of a scheduled payment.
fn title(found: &Found, sending: Option<&Sending>, times: Times) -> Markup {
    let instruction = found.first.as_ref().map(|first| &first.instruction);
    let (payment, payee, account) = match (&found.head, instruction) {
        (Some(head), _) => (Some(head.money), Some(&head.payee), Some(&head.account)),
        (None, Some(first)) => (Some(first.money), Some(&first.payee), Some(&first.account)),
        (None, None) => (None, None, None),
    };
    let is_open = found.findings.iter().any(|finding| finding.closed.is_none());
    let heading = html! {
        div {
            div class="row" {
                @if let Some(payment) = payment {
                    h1 tabindex="-1" class="sum" { (money(payment.amount.get().into(), payment.currency)) }
                }
                @match &found.head {
                    Some(head) => (status(head.state.status())),
                    None => span class="pill stop" { "No head" },
                }
                @if is_open { span class="pill stop" { "Contradiction" } }
                @if sending.is_some_and(Sending::is_stuck) { span class="pill stop" { "Stuck" } }
                @if let Some(head) = &found.head { (cancel(head)) }
            }
            @if let (Some(payee), Some(account)) = (payee, account) {
                p { "to " b { (account_link(payee)) } " from " (account_link(account)) }
            }
        }
    };
    top(&heading, times)
}

/// The form that previews a cancel.
fn cancel(head: &Head) -> Markup {
    html! { @if head.state.status() == Status::Scheduled {
        form data-action="cancel" {
            input type="hidden" name="payments" value=(head.payment_id);
            input type="hidden" name="step" value="preview";
            button class="danger" { "Cancel…" }
        }
    } }
}

/// The items of the payment that are lost or damaged.
fn warnings(found: &Found) -> Markup {
    html! {
        @if found.head.is_none() {
            p class="notice" { span {
                "It has no head, which holds its status: its create did not complete and was not acknowledged, or a restore lost the head. If its client repeats the create, the head is put. If it was amended, see "
                (LOST_HEAD) "."
            } }
        }
        @if let Err(why) = found.chain { p class="notice" { span { (why) ". If the details of an amendment are lost, see " (LOST_DETAILS) "." } } }
        @if found.first.is_none() {
            p class="notice" { span { "Its first details are missing or cannot be read, so it is not sent. See " (DISPATCH_FAILURES) "." } }
        }
        @if let Some(Err(why)) = &found.data { p class="notice" { "The client’s data " (why) "." } }
        @if found.unreadable > 0 {
            p class="notice" { (found.unreadable) " contradicting results cannot be read. The function's log names them." }
        }
    }
}
