//! The row of a payment: its head, and the details that were in force.

use std::collections::HashMap;

use payments_http::{PaymentView, VersionsView};
use payments_model::{AmendmentName, Details, Head, Status};
use payments_sealed::SealedRow;

/// The statuses of finished payments.
pub(crate) const STATUSES: [Status; 3] = [Status::Processed, Status::Failed, Status::Cancelled];

/// Returns the row of a finished payment, whose details in force have their data, or the reason why it has none.
pub(crate) fn row(head: &Head, chain: &[Details]) -> Result<SealedRow, String> {
    let last = chain.last().ok_or("it has no details")?;
    let differences = head.differences(last);
    if !differences.is_empty() {
        return Err(format!("its head and its details differ in {}", differences.join(", ")));
    }
    let not_json = |_| "its data is not JSON".to_owned();
    let view = PaymentView::new(head).with_dates(last).with_data(last.instruction.data.as_ref()).map_err(not_json)?;
    let written = |view: serde_json::Result<String>| view.map_err(|error| error.to_string());
    let versions = match chain.len() {
        1 => None,
        _ => Some(written(serde_json::to_string(&VersionsView::new(chain, true).map_err(not_json)?))?),
    };
    SealedRow::new(&written(serde_json::to_string(&view))?, versions.as_deref()).map_err(|error| error.to_string())
}

/// Returns the details that were in force, the first ones first. Those of amendments that came too late are not among them.
pub(crate) fn in_force(head: &Head, all: Vec<Details>) -> Result<Vec<Details>, String> {
    let mut by_name: HashMap<Option<AmendmentName>, Details> =
        all.into_iter().map(|details| (details.amendment.map(|amendment| amendment.name), details)).collect();
    let (mut chain, mut name) = (Vec::new(), head.amendment);
    loop {
        // Each is removed, so a circle ends.
        let details = by_name.remove(&name).ok_or("details that its head or an amendment names are missing")?;
        let amendment = details.amendment;
        chain.push(details);
        match amendment {
            Some(amendment) => name = amendment.previous,
            None => break,
        }
    }
    chain.reverse();
    Ok(chain)
}
