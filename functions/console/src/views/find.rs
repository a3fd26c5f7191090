//! Finds a payment by any of its ids.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::{AccountId, IdempotencyKey, PaymentId, TransactionId};

use crate::function::Console;
use crate::guides::SHARED_TRANSACTION_IDS;
use crate::html::{heading, payment_link};

impl Console {
    /// The view of a search: the payment itself if there is one, several if the transaction service
    /// gave an id to several, and otherwise a list of what can be searched for.
    pub(crate) async fn find(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["text", "account", "key"])?;
        let text = query.text("text")?.unwrap_or_default().trim();
        let (account, key) = (query.text("account")?.unwrap_or_default(), query.text("key")?.unwrap_or_default());
        if !account.is_empty() || !key.is_empty() {
            let account: AccountId = account.trim().parse().map_err(|error| invalid_parameter("account", &error))?;
            let key: IdempotencyKey = key.parse().map_err(|error| invalid_parameter("key", &error))?;
            return self.one_or_form(&[PaymentId::derive(&account, &key)]).await;
        }
        // A transaction id can look like a payment's.
        if let Some(id) = payment_named(text)
            && let Some(shown) = self.shown(id, None).await?
        {
            return Ok(shown);
        }
        let found = match text.parse::<TransactionId>() {
            Ok(id) => self.store.payments_of_transaction(&id).await?,
            Err(_) => Vec::new(),
        };
        let found: Vec<_> = found.into_iter().map(|key| key.slot.payment_id).collect();
        self.one_or_form(&found).await
    }

    async fn one_or_form(&self, found: &[PaymentId]) -> Result<Markup, Problem> {
        match found {
            [] => Ok(form(true)),
            [one] => Ok(self.shown(*one, None).await?.unwrap_or_else(|| form(true))),
            several => Ok(html! {
                (heading("Several payments"))
                p class="warn" { "The transaction service gave this id to more than one payment; two are shown. See " (SHARED_TRANSACTION_IDS) "." }
                ul { @for id in several { li { (payment_link(*id)) } } }
            }),
        }
    }
}

/// The payment that a text names: a payment's id, or the id of one of its events, which has epoch, payment and version.
fn payment_named(text: &str) -> Option<PaymentId> {
    let of_event = || text.split_once('-')?.1.rsplit_once('-').map(|(payment, _)| payment);
    text.parse().ok().or_else(|| of_event()?.parse().ok())
}

fn form(is_missing: bool) -> Markup {
    html! {
        (heading("Find a payment"))
        @if is_missing {
            p { "Nothing was found. A payment is found by its id, by the id of an event of it, by its transaction id once it is settled, or by its account and idempotency key." }
        }
        form data-view="find" autocomplete="off" {
            label for="find-account" { "Account" }
            input id="find-account" name="account" maxlength="64" required;
            label for="find-key" { "Idempotency key" }
            input id="find-key" name="key" maxlength="255" required;
            button { "Find" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_and_its_events_name_it() {
        let id = "0b5e7a2c-9d1f-5b3a-8c4d-1e2f3a4b5c6d";
        let want: PaymentId = id.parse().unwrap();
        for (text, want) in [
            (id.to_owned(), Some(want)),
            (format!("3637440-{id}-2"), Some(want)),
            (format!("{id}-2"), None),
            ("3637440-gap-2".to_owned(), None),
            ("tx-1".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(payment_named(&text), want, "{text}");
        }
    }
}
