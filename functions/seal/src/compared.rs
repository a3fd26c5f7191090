//! Compares a sealed row with the payment's items in the tables.

use std::collections::HashSet;

use payments_model::{Details, Head, PaymentData, SealedData, SealedPlace};
use payments_sealed::SealedRow;
use payments_store::StoredDetails;

use crate::payment::{in_force, row};

/// Returns the details whose data leaves the table: that were in force, and have much data, each with the place of the data in the row.
/// Or the reason why the row and the tables do not say the same.
pub(crate) fn compared(
    sealed: &SealedRow,
    place: SealedPlace,
    head: &Head,
    all: Vec<StoredDetails>,
) -> Result<Vec<(StoredDetails, SealedData)>, String> {
    let opened: Vec<Details> = all.iter().map(|it| opened(it.known(), sealed, place)).collect::<Result<_, _>>()?;
    let chain = in_force(head, opened)?;
    if row(head, &chain)? != *sealed {
        return Err("its row has other values".to_owned());
    }
    let names: HashSet<_> = chain.iter().map(Details::details_key).collect();
    let cleared = all.into_iter().filter(|it| names.contains(&it.known().details_key()) && it.has_much_data());
    let with_place = cleared.filter_map(|it| {
        let hash = it.known().instruction.data.as_ref()?.hash();
        Some((it, SealedData { place, hash }))
    });
    let data: Vec<_> = with_place.collect();
    // As readers find it.
    for (details, SealedData { hash, .. }) in &data {
        sealed.data_of(details.known().payment_id, *hash).map_err(|error| error.to_string())?;
    }
    Ok(data)
}

/// The details with their data, from the row if they name it.
fn opened(details: &Details, row: &SealedRow, place: SealedPlace) -> Result<Details, String> {
    let mut opened = details.clone();
    if let Some(PaymentData::Sealed(sealed)) = &details.instruction.data {
        if sealed.place != place {
            return Err(format!("its details name the row {}", sealed.place));
        }
        let text = row.data_of(details.payment_id, sealed.hash).map_err(|error| error.to_string())?;
        opened.instruction.data = Some(text.into());
    }
    Ok(opened)
}
