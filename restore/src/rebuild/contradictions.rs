//! Findings of `settle`, results that contradict their payments, come back from the long-term table that was replaced.
//!
//! Nothing else has them. Three places name them: the marks of open findings of both tables, and the audit trail, which has each
//! closing.

use std::collections::BTreeSet;

use anyhow::Result;
use payments_model::UtcSecond;
use payments_store::{AuditEntry, AuditMonth, FindingName, Store, StoreError};

use super::outcome::{Finding, Line};

/// The items that one read returns.
const PAGE: u16 = 1_000;

/// Copies the findings, and their closings, that the new long-term table lacks. Returns their number. If `is_apply` is not set, only
/// counts them. It can be killed and repeated at any time: each finding is copied as a whole, and one that is closed stays closed.
pub(super) async fn copy(
    (old, new): (&Store, &Store),
    (since, now): (UtcSecond, UtcSecond),
    is_apply: bool,
    tell: &impl Fn(&Line),
) -> Result<u64> {
    let unreadable = |error: StoreError| tell(&Line::place(Finding::Unreadable, error.to_string()));
    let mut named = match open(old, &unreadable).await {
        Ok(named) => named,
        // The table is gone, or nobody may read it.
        Err(error @ StoreError::Refused { .. }) => {
            let (table, error) = (&old.tables().history, anyhow::Error::from(error));
            tell(&Line::place(Finding::ContradictionsLost, format!("{table} cannot be read: {error:#}")));
            return Ok(0);
        }
        Err(error) => return Err(error.into()),
    };
    named.extend(open(new, &unreadable).await?);
    named.extend(closed(old, (since, now), &unreadable).await?);
    let mut copied = 0;
    for finding in named {
        match new.copy_finding(old, &finding, is_apply).await {
            Ok(is_copied) => copied += u64::from(is_copied),
            Err(error @ StoreError::Unreadable { .. }) => unreadable(error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(copied)
}

/// The findings that are open in a table.
async fn open(store: &Store, unreadable: &impl Fn(StoreError)) -> Result<BTreeSet<FindingName>, StoreError> {
    let (mut named, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store.open_findings(after.as_ref(), PAGE).await?;
        for finding in page.findings {
            match finding {
                Ok(finding) => drop(named.insert((finding.key.slot.payment_id, finding.told.hash()))),
                Err(error) => unreadable(error),
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(named);
        }
    }
}

/// The findings that operators have closed since an instant, by the audit trail of a table.
async fn closed(
    store: &Store,
    (since, now): (UtcSecond, UtcSecond),
    unreadable: &impl Fn(StoreError),
) -> Result<BTreeSet<FindingName>> {
    let mut named = BTreeSet::new();
    for month in AuditMonth::between(since, now) {
        let mut before = None;
        loop {
            let page = store.audit_page(&month, before, PAGE).await?;
            for entry in page.entries {
                match entry {
                    Ok(entry) => named.extend(closed_by(&entry)),
                    Err(error) => unreadable(error),
                }
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(named)
}

/// The finding that an action closes, if it is one that closes a finding.
fn closed_by(entry: &AuditEntry) -> Option<FindingName> {
    let is_closing = entry.intent.action == "close-finding";
    let of = |name: &str| entry.intent.arguments.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some((of("payment")?.parse().ok()?, of("hash")?.parse().ok()?)).filter(|_| is_closing)
}
