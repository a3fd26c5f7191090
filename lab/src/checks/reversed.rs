//! Payments of which the transaction service moved what an amendment asked for, and a restore took the amendment back.
//!
//! Their results are of another transfer than the payment, and settle nothing. As docs/alarms.md says, the service reverses the transfer
//! and says that the payment failed.

use anyhow::Result;
use payments_machine::layers::attributes::{number, text};
use payments_model::PaymentId;

use crate::facts::heads::{id_of, transfer};
use crate::facts::results::failed;
use crate::world::bank::Bank;

/// The service reverses all of them.
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
        drop(state);
        bank.send_result(&failed(&transfer(&head), "reversed: a restore took the amendment back"))?;
    }
    Ok(())
}
