//! Closing a finding: a result that contradicts its payment, once an operator knows which is right.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind};
use payments_model::{Actor, Finding, FindingClosed, PaymentId, ResultHash, State, UtcSecond};
use payments_store::ClosedFinding;

use crate::actions::preview::{Buttons, Preview};
use crate::actions::reason::{REASON, Reason, asked};
use crate::function::Console;
use crate::guides::CONFLICTING_RESULTS;
use crate::html::{account_link, amount, fact, payment_link, word};

/// The name of the action.
pub(super) const NAME: &str = "close-finding";

/// The longest id of a payment and the longest hash, in bytes.
const MAX_ID_BYTES: usize = 36;

/// A finding to close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CloseFinding {
    payment: PaymentId,
    hash: ResultHash,
    /// The operator's reason, which the confirmation has.
    reason: Option<Reason>,
}

impl CloseFinding {
    /// Reads the fields. A preview has no reason.
    pub(super) fn read(form: &mut Form) -> Result<Self, Problem> {
        let (payment, hash) = (form.get("payment", MAX_ID_BYTES)?, form.get("hash", MAX_ID_BYTES)?);
        Ok(Self { payment, hash, reason: Reason::read(form)? })
    }

    pub(super) fn title(&self) -> String {
        "Close the finding".to_owned()
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let reason = self.reason.as_ref().map(|reason| (REASON, reason.as_str().to_owned()));
        let named = [("payment", self.payment.to_string()), ("hash", self.hash.to_string())];
        named.into_iter().chain(reason).collect()
    }

    /// Whether it can be confirmed.
    pub(super) fn has_reason(&self) -> bool {
        self.reason.is_some()
    }

    /// The same without the reason, for which the preview asks.
    pub(super) fn without_reason(&self) -> Self {
        Self { reason: None, ..self.clone() }
    }
}

impl Console {
    /// Shows the payment and the result, and asks for a reason: one read.
    pub(super) async fn preview_close_finding(&self, close: &CloseFinding) -> Result<Preview, Problem> {
        let finding = self.store.finding(close.payment, &close.hash).await?.ok_or_else(no_such_finding)?;
        let times = self.times();
        if let Some(closed) = &finding.closed {
            let shown = html! {
                (told(&finding))
                p { "It was closed " (times.aged(closed.at)) " by " (closed.by.name()) ": " (closed.reason) }
            };
            return Ok(Preview { shown, buttons: None });
        }
        let shown = html! {
            (told(&finding))
            p { "Found " (times.aged(finding.found_at)) ". Ask the transaction service which is right: see " (CONFLICTING_RESULTS) ". The payment does not change. The same result does not open the finding again; another result is another finding." }
            (asked(true))
        };
        let act = "Close 1 finding".to_owned();
        Ok(Preview { shown, buttons: Some(Buttons { act, keep: "Keep it open", is_final: true }) })
    }

    /// Closes the finding, unless it is closed.
    pub(super) async fn close_finding(
        &self,
        close: &CloseFinding,
        by: &Actor,
        since: UtcSecond,
    ) -> Result<String, Problem> {
        let CloseFinding { payment, hash, reason } = close;
        let reason = reason.as_ref().map(|reason| reason.as_str().to_owned()).unwrap_or_default();
        let closed = FindingClosed { at: self.clock.now(), by: by.clone(), reason };
        let done = || Ok(format!("{payment}: the finding {hash} is closed"));
        match self.store.close_finding(*payment, hash, &closed).await? {
            ClosedFinding::Done => done(),
            // The same confirmation came again, or at the same time.
            ClosedFinding::Before(known) if known.at >= since && (&known.by, &known.reason) == (by, &closed.reason) => {
                done()
            }
            ClosedFinding::Before(known) => {
                Ok(format!("{payment}: the finding {hash} was closed before, at {} by {}", known.at, known.by.name()))
            }
            ClosedFinding::Missing => Err(no_such_finding()),
        }
    }
}

fn no_such_finding() -> Problem {
    Problem::new(ProblemKind::NoSuchPayment, "The payment has no such finding; look at the payment again.")
}

/// The payment, and the result that contradicts it.
fn told(finding: &Finding) -> Markup {
    html! { section class="panel" { dl class="facts" {
        (fact("Payment", &html! { (payment_link(finding.key.slot.payment_id)) " from " (account_link(&finding.key.account)) }))
        (fact("Stands", &html! { (amount(finding.money)) " to " (account_link(&finding.payee)) ": " (words(&finding.stands)) }))
        (fact("The result says", &html! { (amount(finding.told.money)) " to " (account_link(&finding.told.payee)) ": " (words(&finding.told.settlement.clone().into())) }))
    } } }
}

/// An end in words, with its transaction id or its reason.
fn words(state: &State) -> String {
    let status = word(state.status());
    match state {
        State::Processed(id) => format!("{status}, transaction {id}"),
        State::Failed(failure) => format!("{status}, {} {}", failure.code(), failure.reason()),
        State::Scheduled | State::Pending | State::Cancelled => status,
    }
}
