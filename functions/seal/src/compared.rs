//! Compares a sealed row with the payment's items in the tables.

use std::collections::HashSet;

use payments_model::{Details, PaymentData, SealedData, SealedPlace, UtcSecond};
use payments_sealed::{Part, SealedRow};
use payments_store::{StoredDetails, StoredHead};

use crate::payment::{in_force, row};

/// The writes that are left of a payment.
pub(crate) struct ToClear {
    /// The details that change, each with the place of its data if it has much data in the row.
    pub(crate) details: Vec<(StoredDetails, Option<SealedData>)>,
    /// The head, if the end of its retention changes.
    pub(crate) head: Option<StoredHead>,
    pub(crate) ends: Option<Ends>,
}

/// The ends of retention of a payment's items. DynamoDB deletes an item hours or days after its end, in any order.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// The end of the head. Nothing lists a payment without it, so details are gone from no list.
    pub(crate) head: UtcSecond,
    /// The end of the details, which name their row.
    pub(crate) details: UtcSecond,
}

impl ToClear {
    /// The number of writes.
    pub(crate) fn writes(&self) -> usize {
        self.details.len() + usize::from(self.head.is_some())
    }

    /// Whether data leaves the table.
    pub(crate) fn has_data(&self) -> bool {
        self.details.iter().any(|(_, sealed)| sealed.is_some())
    }
}

/// Returns what is left to clear of a payment, or the reason why its row and the tables do not say the same.
pub(crate) fn compared(
    (part, sealed): (&Part, &SealedRow),
    (place, ends): (SealedPlace, Option<Ends>),
    head: StoredHead,
    all: Vec<StoredDetails>,
) -> Result<ToClear, String> {
    let opened: Vec<Details> = all.iter().map(|it| opened(it.known(), sealed, place)).collect::<Result<_, _>>()?;
    let chain = in_force(head.known(), opened)?;
    if part.as_written(row(head.known(), &chain)?) != *sealed {
        return Err("its row has other values".to_owned());
    }
    let names: HashSet<_> = chain.iter().map(Details::details_key).collect();
    let mut details = Vec::new();
    for stored in all {
        let data = stored.known().instruction.data.as_ref();
        let is_cleared = stored.has_much_data() && names.contains(&stored.known().details_key());
        let place = data.filter(|_| is_cleared).map(|data| SealedData { place, hash: data.hash() });
        if let Some(SealedData { hash, .. }) = &place {
            // As readers find it.
            sealed.text_with(stored.known().payment_id, *hash).map_err(|error| error.to_string())?;
        }
        if place.is_some() || stored.kept_until() < ends.map(|ends| ends.details) {
            details.push((stored, place));
        }
    }
    let head = Some(head).filter(|head| head.kept_until() < ends.map(|ends| ends.head));
    Ok(ToClear { details, head, ends })
}

/// The details with their data, from the row if they name it.
fn opened(details: &Details, row: &SealedRow, place: SealedPlace) -> Result<Details, String> {
    let mut opened = details.clone();
    if let Some(PaymentData::Sealed(sealed)) = &details.instruction.data {
        if sealed.place != place {
            return Err(format!("its details name the row {}", sealed.place));
        }
        let text = row.text_with(details.payment_id, sealed.hash).map_err(|error| error.to_string())?;
        opened.instruction.data = Some(text.into());
    }
    Ok(opened)
}
