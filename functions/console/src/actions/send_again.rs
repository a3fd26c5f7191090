//! Sending the request of one pending payment again, once no redrive will: with the next attempt, at most once an hour.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind};
use payments_model::redrive::{NextRequest, Requests};
use payments_model::{Head, PaymentId, State, UtcSecond};
use payments_store::Moved;

use crate::actions::preview::{Buttons, Preview};
use crate::function::Console;
use crate::guides::PAYMENTS_STUCK_PENDING;
use crate::html::{account_link, amount, fact, payment_link, status};

/// The name of the action.
pub(super) const NAME: &str = "send-again";

/// The longest id of a payment and the longest number of an attempt, in bytes.
const MAX_ID_BYTES: usize = 36;
const MAX_ATTEMPT_BYTES: usize = 10;

/// A payment to send again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SendAgain {
    payment: PaymentId,
    /// The number of its last attempt in the preview.
    attempt: Option<u32>,
}

/// The reason why a payment is not sent again now.
enum Refusal {
    /// The payment is not pending.
    Not(State),
    /// The redrive sends it from this time on.
    Redrive(UtcSecond),
    /// The last request is less than an hour old. From this time on, an operator can send it.
    Early(UtcSecond),
}

impl SendAgain {
    /// Reads the fields. A preview has no attempt.
    pub(super) fn read(form: &mut Form) -> Result<Self, Problem> {
        const ATTEMPT: &str = "attempt";
        let payment = form.get("payment", MAX_ID_BYTES)?;
        let attempt = form.take(ATTEMPT, MAX_ATTEMPT_BYTES)?;
        let parsed = (!attempt.is_empty()).then(|| attempt.parse()).transpose();
        let attempt =
            parsed.map_err(|_| payments_http::invalid_field(ATTEMPT, &"it has to be the number of an attempt"))?;
        Ok(Self { payment, attempt })
    }

    pub(super) fn title(&self) -> String {
        "Send 1 payment again".to_owned()
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let attempt = self.attempt.map(|attempt| ("attempt", attempt.to_string()));
        [("payment", self.payment.to_string())].into_iter().chain(attempt).collect()
    }

    /// Whether a preview has shown the attempt.
    pub(super) fn is_previewed(&self) -> bool {
        self.attempt.is_some()
    }
}

impl Console {
    /// Shows the payment and its requests: two or three reads.
    pub(super) async fn preview_send_again(&self, again: &SendAgain) -> Result<(Preview, SendAgain), Problem> {
        if let Some(standstill) = self.standstill().await? {
            return Ok((standstill.preview(), again.clone()));
        }
        let head = self.head_to_send(again.payment).await?;
        let sent = head.dispatch_attempt.unwrap_or_default();
        let seen = SendAgain { attempt: Some(sent), ..again.clone() };
        let refusal = self.refusal_to_send(&head);
        let what = match &refusal {
            None => html! {
                p { "The transaction service gets request " (sent.saturating_add(1)) ". It makes a payment once, however often it is asked, and sends the result of a settled one again. See " (PAYMENTS_STUCK_PENDING) "." }
                p class="notice" { "The console does not know whether somebody disabled the mapping of dispatch by hand. Ask first: while it is disabled, the request is not sent, and after a day it is lost." }
            },
            Some(refusal) => html! { p class="notice" { "It is not sent: " (self.why(refusal)) "." } },
        };
        let buttons = refusal.is_none().then(|| Buttons {
            act: "Send 1 payment again".to_owned(),
            keep: "Do not send it",
            is_final: false,
        });
        Ok((Preview { shown: html! { (self.requests(&head)) (what) }, buttons }, seen))
    }

    /// Sends the request again, if the payment is as it was shown, or was sent so before.
    pub(super) async fn send_again(&self, again: &SendAgain, since: UtcSecond) -> Result<String, Problem> {
        let (id, seen) = (again.payment, again.attempt.unwrap_or_default());
        let head = self.head_to_send(id).await?;
        if let Some(sent) = sent_as(&head, seen, since) {
            return Ok(format!("{id}: {sent}"));
        }
        if let Some(standstill) = self.standstill().await? {
            return Err(standstill.problem());
        }
        if head.state == State::Pending && head.dispatch_attempt != Some(seen) {
            return Ok(format!("{id}: not sent, it was sent again since the preview"));
        }
        if let Some(refusal) = self.refusal_to_send(&head) {
            return Ok(format!("{id}: not sent: {}", self.why(&refusal)));
        }
        Ok(match self.store.send_again(&head.key(), seen, self.clock.now()).await? {
            Moved::Done(_) => format!("{id}: {}", sent_words(seen)),
            Moved::Elsewhere(Some(head)) => match sent_as(&head, seen, since) {
                Some(sent) => format!("{id}: {sent}"),
                None => format!("{id}: not sent, it changed at the same time and is {}", head.state.status()),
            },
            Moved::Elsewhere(None) => format!("{id}: not sent, its head left the hot table"),
        })
    }

    async fn head_to_send(&self, id: PaymentId) -> Result<Head, Problem> {
        let missing =
            || Problem::new(ProblemKind::NoSuchPayment, "There is no payment with this id, or it has no head.");
        let first = self.store.details(id).await?.ok_or_else(missing)?;
        self.store.head(&first.key()).await?.ok_or_else(missing)
    }

    /// The reason not to send the payment now, if there is one.
    fn refusal_to_send(&self, head: &Head) -> Option<Refusal> {
        let Some(requests) = Requests::from_head(head) else { return Some(Refusal::Not(head.state.clone())) };
        match requests.next_request(self.config.max_attempts) {
            NextRequest::Redrive(at) => Some(Refusal::Redrive(at)),
            NextRequest::Operator(from) if from > self.clock.now() => Some(Refusal::Early(from)),
            NextRequest::Operator(_) => None,
        }
    }

    fn why(&self, refusal: &Refusal) -> String {
        let local = |at: UtcSecond| self.config.business_days.zone().local(at).format("%a %-d %b, %H:%M").to_string();
        match refusal {
            Refusal::Not(state) => format!("it is {}, and only a PENDING payment has requests", state.status()),
            Refusal::Redrive(at) => format!("the redrive sends it by itself, the first one after {}", local(*at)),
            Refusal::Early(from) => {
                format!("less than an hour passed since its last request; it can be sent from {} on", local(*from))
            }
        }
    }

    fn requests(&self, head: &Head) -> Markup {
        let times = self.times();
        html! { section class="panel" { dl class="facts" {
            (fact("Amount", &html! { b { (amount(head.money)) } }))
            (fact("To", &html! { (account_link(&head.payee)) @if let Some(reference) = &head.reference { " " span class="quiet" { (reference) } } }))
            (fact("From", &account_link(&head.account)))
            (fact("Due", &times.aged(head.due_at)))
            (fact("Payment", &html! { (payment_link(head.payment_id)) " " (status(head.state.status())) }))
            (fact("Requests", &html! {
                (head.dispatch_attempt.unwrap_or_default()) " sent, of " (self.config.max_attempts)
                @if let Some(at) = head.sent_again_at { ", the last " (times.aged(at)) }
            }))
        } } }
    }
}

/// The words for a payment whose request was sent again after the attempt that was seen: by this action, or at the same time.
fn sent_as(head: &Head, seen: u32, since: UtcSecond) -> Option<String> {
    let is_next = head.dispatch_attempt == Some(seen.saturating_add(1));
    (is_next && head.sent_again_at.is_some_and(|at| at >= since)).then(|| sent_words(seen))
}

fn sent_words(seen: u32) -> String {
    format!("request {} is sent", seen.saturating_add(1))
}
