//! Counts and sums of payments by date and status, for a range of dates.
//!
//! The numbers come from the counters, so their cost does not depend on the number of payments.

use std::iter::successors;

use payments_http::request::date_range;
use payments_http::{CountsView, Problem, Request};
use payments_model::BusinessDate;
use payments_store::DateCounters;
use serde::Serialize;

use crate::function::QueryDue;

/// The query parameters of the counts.
pub const PARAMETERS: &[&str] = &["from", "to"];

/// The latest `to`, in days after `from`: 366 dates, a leap year. Each date has at most eight counters, of 1 KB
/// with ten currencies, so a request reads about 3 MB and returns less than 1 MB.
const MAX_DAYS: i64 = 365;

/// The answer's JSON.
#[derive(Serialize)]
pub(crate) struct Counts {
    from: String,
    to: String,
    counts: Vec<DateCounts>,
}

#[derive(Serialize)]
struct DateCounts {
    date: String,
    #[serde(flatten)]
    counts: CountsView,
}

impl QueryDue {
    /// Returns the counts of each date of a range, in order. A date without payments has zeros.
    pub(crate) async fn counts(&self, request: &Request<'_>) -> Result<Counts, Problem> {
        let query = request.query(PARAMETERS)?;
        let today = self.config.zone.date_of(self.clock.now());
        let (from, to) = date_range(query.get("from")?, query.get("to")?, today, MAX_DAYS)?;
        let mut counters = self.store.counters(from, to).await?;
        let mut counts_of = |date: BusinessDate| {
            let DateCounters { counts, .. } = counters.remove(&date).unwrap_or_default();
            DateCounts { date: date.to_string(), counts: CountsView::new(&counts) }
        };
        let dates = successors(Some(from), |date| (*date < to).then(|| date.plus_days(1)));
        let counts = dates.map(&mut counts_of).collect();
        Ok(Counts { from: from.to_string(), to: to.to_string(), counts })
    }
}
