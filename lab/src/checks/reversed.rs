//! Payments of which the transaction service moved what an amendment asked for, and a restore took the amendment back.
//!
//! Their results are of another transfer than the payment, and settle nothing. As docs/alarms.md says, the service reverses the transfer
//! and says that the payment failed.

use anyhow::{Result, anyhow};
use payments_machine::layers::attributes::{number, text};
use payments_model::PaymentId;
use serde_json::json;

use crate::facts::heads::id_of;
use crate::world::bank::Bank;

/// Lets the service reverse all of them.
pub(crate) fn reverse(bank: &Bank) -> Result<()> {
    let places = bank.state().intents.len();
    for place in 0..places {
        let Some(head) = bank.head_of(place).filter(|head| text(head, "status") == "PENDING") else { continue };
        let (id, amount) = (id_of(text(&head, "sk")), number(&head, "amountMinor"));
        let (currency, payee) = (text(&head, "currency"), text(&head, "payeeAccountId"));
        let mut state = bank.state();
        let is_known_so = state.service.was_asked_for(id.parse::<PaymentId>()?, amount, currency, payee);
        if is_known_so != Some(false) {
            continue;
        }
        state.intents[place].contested = true;
        let result = json!({
            "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": amount, "currency": currency, "payeeAccountId": payee,
            "status": "FAILED", "failureReason": "reversed: a restore took the amendment back",
        });
        bank.queues.results.send(result.to_string(), bank.time.now()).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(())
}
