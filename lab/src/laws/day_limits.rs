//! The law of limits: the claims of a due date never exceed its limit, and each was reserved before.

use std::collections::{BTreeMap, BTreeSet};

use payments_machine::layers::attributes::{Key, number, text};
use serde_json::Value;

use crate::facts::heads::{due_of, id_of};
use crate::plans::limits::{LIMITED, Limit};

/// The claims of due dates so far.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The payments of each date, and what each adds to the limited sum.
    by_date: BTreeMap<String, BTreeMap<String, u64>>,
    /// The dates without a claim since a restore. The restored table may have reserved nothing of them: then the next claim of the date
    /// reserves all.
    restored: BTreeSet<String>,
}

impl Claims {
    fn of_date(&self, date: &str) -> Limit {
        let claimed = self.by_date.get(date);
        let payments = claimed.map_or(0, BTreeMap::len).try_into().unwrap_or(u64::MAX);
        Limit { payments, sum: claimed.into_iter().flat_map(BTreeMap::values).sum() }
    }

    /// Follows a change of a head. Returns the violation, if it is a claim beyond the limit of its date, which `limit_of` returns.
    pub(crate) fn follow(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        limit_of: impl FnOnce(&str) -> Limit,
    ) -> Option<String> {
        let (before, after) = (before?, after?);
        if (text(before, "status"), text(after, "status")) != ("SCHEDULED", "PENDING") {
            return None;
        }
        let date = due_of(after).0;
        let sum = if text(after, "currency") == LIMITED { number(after, "amountMinor") } else { 0 };
        self.by_date.entry(date.to_owned()).or_default().insert(id_of(text(after, "sk")).to_owned(), sum);
        self.restored.remove(date);
        let (claimed, limit) = (self.of_date(date), limit_of(date));
        let is_beyond = claimed.payments > limit.payments || claimed.sum > limit.sum;
        is_beyond.then(|| format!("was claimed beyond the limit of {date}: {claimed:?} of {limit:?}"))
    }

    /// Forgets claims that a restore took back, or may have. A restore is over.
    pub(crate) fn forget(&mut self, lost: &BTreeSet<String>) {
        self.by_date.values_mut().for_each(|claimed| claimed.retain(|id, _| !lost.contains(id)));
        self.restored = self.by_date.keys().cloned().collect();
    }

    /// Compares the claims with those that the hot table has as reserved: never fewer and, if `is_exact`, as many.
    pub(crate) fn check_reserved(&self, hot: &BTreeMap<Key, Value>, is_exact: bool) -> Vec<String> {
        let differs = |date: &String| {
            let item = hot.get(&("CLAIMS".to_owned(), date.clone()));
            let of = |name: &str| item.map_or(0, |item| number(item, name));
            let (claimed, reserved) = (self.of_date(date), Limit { payments: of("payments"), sum: of(LIMITED) });
            let is_unset = self.restored.contains(date) && reserved == Limit::default();
            let is_fewer = !is_unset && (reserved.payments < claimed.payments || reserved.sum < claimed.sum);
            let is_wrong = is_fewer || is_exact && reserved != claimed;
            is_wrong.then(|| format!("{claimed:?} of {date} was claimed, and {reserved:?} is reserved"))
        };
        self.by_date.keys().filter_map(differs).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DATE: &str = "2026-12-01";

    fn head(id: u32, status: &str, currency: &str) -> Value {
        json!({
            "sk": { "S": format!("2026-12-01T00:00:00Z#{id}") }, "status": { "S": status }, "currency": { "S": currency },
            "amountMinor": { "N": "10" }, "due": { "S": format!("{status}#{DATE}#2026-12-01T00:00:00Z#{id}") },
        })
    }

    /// Claims these payments of a date with a limit. Returns which are beyond it.
    fn claimed(claims: &mut Claims, ids: &[u32], currency: &str, (payments, sum): (u64, u64)) -> Vec<u32> {
        let claim = |id: &u32| {
            let (before, after) = (head(*id, "SCHEDULED", currency), head(*id, "PENDING", currency));
            claims.follow(Some(&before), Some(&after), |_| Limit { payments, sum }).map(|_| *id)
        };
        ids.iter().filter_map(claim).collect()
    }

    #[test]
    fn each_payment_counts_once_and_none_is_beyond_the_limit() {
        let mut claims = Claims::default();
        assert_eq!(claimed(&mut claims, &[1, 2, 1, 3, 4], "GBP", (3, 1_000)), [4]);
        assert_eq!(claimed(&mut claims, &[5], "GBP", (9, 50)), [0; 0]);
        assert_eq!(claimed(&mut claims, &[6], "EUR", (9, 50)), [0; 0]);
        assert_eq!(claimed(&mut claims, &[7], "GBP", (9, 50)), [7]);
        claims.forget(&["7", "6"].map(str::to_owned).into());
        assert_eq!(claimed(&mut claims, &[8], "EUR", (6, 50)), [0; 0]);
        // A settlement is not a claim.
        let (pending, failed) = (head(9, "PENDING", "GBP"), head(9, "FAILED", "GBP"));
        assert_eq!(claims.follow(Some(&pending), Some(&failed), |_| Limit::default()), None);
        assert_eq!(claims.follow(None, Some(&pending), |_| Limit::default()), None);
    }

    #[test]
    fn no_fewer_claims_are_reserved_than_made() {
        let mut claims = Claims::default();
        claimed(&mut claims, &[1, 2], "GBP", (9, 90));
        for (payments, sum, wrong) in
            [("2", "20", [0, 0]), ("1", "20", [1, 1]), ("2", "19", [1, 1]), ("3", "20", [0, 1]), ("2", "30", [0, 1])]
        {
            let item = json!({ "payments": { "N": payments }, "GBP": { "N": sum } });
            let hot = [(("CLAIMS".to_owned(), DATE.to_owned()), item)].into();
            assert_eq!(
                [false, true].map(|is_exact| claims.check_reserved(&hot, is_exact).len()),
                wrong,
                "{payments} {sum}"
            );
        }
        assert_eq!(claims.check_reserved(&BTreeMap::new(), false).len(), 1);
        // A restored table may have reserved nothing, until the date's next claim.
        claims.forget(&BTreeSet::new());
        assert_eq!(claims.check_reserved(&BTreeMap::new(), false), [""; 0]);
        claimed(&mut claims, &[3], "GBP", (9, 90));
        assert_eq!(claims.check_reserved(&BTreeMap::new(), false).len(), 1);
    }
}
