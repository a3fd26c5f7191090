//! The keys of findings, and of the marks of open ones.

use payments_model::{PaymentId, ResultHash};

use crate::key::KeyError;

/// The sort key of a payment's finding: `FINDING#<hash of the result>`.
pub(crate) fn finding_sort(hash: &ResultHash) -> String {
    // Rules read the formats of this crate as those of partition keys.
    ["FINDING", hash.as_str()].join("#")
}

/// Parses [`finding_sort`].
pub(crate) fn parse_finding_sort(text: &str) -> Result<ResultHash, KeyError> {
    let hash = text.strip_prefix("FINDING#").and_then(|hash| hash.parse().ok());
    hash.ok_or_else(|| KeyError(text.to_owned(), "finding sort"))
}

/// The sort key of the mark of an open finding: `<paymentId>#<hash of the result>`.
pub(crate) fn open_finding_sort(payment_id: PaymentId, hash: &ResultHash) -> String {
    format!("{payment_id}#{hash}")
}

/// Parses [`open_finding_sort`].
pub(crate) fn parse_open_finding_sort(text: &str) -> Result<(PaymentId, ResultHash), KeyError> {
    let parse = || {
        let (payment_id, hash) = text.split_once('#')?;
        Some((payment_id.parse().ok()?, hash.parse().ok()?))
    };
    parse().ok_or_else(|| KeyError(text.to_owned(), "open finding sort"))
}
