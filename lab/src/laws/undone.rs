//! The law of undos: what a run cancelled is cancelled, and what it left is as it says.

use payments_files::UndoEnd;

/// Checks the end of a planned payment against its status in the tables after the run. Returns the violation, if there is one.
pub(crate) fn check_end(planned: Option<&str>, end: UndoEnd, status: Option<&str>) -> Option<String> {
    let was_claimed = !matches!(planned, None | Some("SCHEDULED"));
    let is_right = match end {
        UndoEnd::Cancelled => status == Some("CANCELLED") && !was_claimed,
        UndoEnd::AlreadyCancelled => status == Some("CANCELLED"),
        // The payment may be claimed, settled or cancelled since.
        UndoEnd::Amended => status.is_some(),
        UndoEnd::Claimed => !matches!(status, None | Some("CANCELLED")),
        UndoEnd::Processed => status == Some("PROCESSED"),
        UndoEnd::Failed => status == Some("FAILED"),
        UndoEnd::NeverCreated => status.is_none(),
        UndoEnd::Lost | UndoEnd::Unreadable => false,
    };
    (!is_right).then(|| format!("was {planned:?}, ended as {end} and is {status:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_agrees_with_the_tables() {
        let scheduled = Some("SCHEDULED");
        for (planned, end, status, is_right) in [
            (scheduled, UndoEnd::Cancelled, Some("CANCELLED"), true),
            (None, UndoEnd::Cancelled, Some("CANCELLED"), true),
            (scheduled, UndoEnd::Cancelled, Some("PENDING"), false),
            (scheduled, UndoEnd::Cancelled, None, false),
            (Some("PENDING"), UndoEnd::Cancelled, Some("CANCELLED"), false),
            (Some("PENDING"), UndoEnd::Claimed, Some("PROCESSED"), true),
            (scheduled, UndoEnd::Claimed, Some("CANCELLED"), false),
            (scheduled, UndoEnd::Processed, Some("PROCESSED"), true),
            (scheduled, UndoEnd::Failed, Some("PROCESSED"), false),
            (None, UndoEnd::NeverCreated, None, true),
            (None, UndoEnd::NeverCreated, scheduled, false),
            (scheduled, UndoEnd::Lost, None, false),
        ] {
            assert_eq!(check_end(planned, end, status).is_none(), is_right, "{planned:?} {end} {status:?}");
        }
    }
}
