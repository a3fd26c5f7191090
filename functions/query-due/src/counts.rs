//! How many payments a date has, and of how much: status by status, for a range of dates. The
//! counters know, so that it costs the same however many payments there are.

use std::iter::successors;

use payments_http::request::invalid_parameter;
use payments_http::{CountsView, Problem, Query};
use payments_model::BusinessDate;
use payments_store::DateCounters;
use serde::Serialize;

use crate::QueryDue;

/// The parameters.
pub const PARAMETERS: &[&str] = &["from", "to"];

/// How far the answer reaches unless `to` says otherwise, in days after `from`.
const DEFAULT_DAYS: u32 = 90;

/// The furthest that it can reach, in days after `from`: 366 dates, a leap year. Each has at most
/// eight counters, of a kilobyte where there are ten currencies, so that some 3 MB are read and less
/// than 1 MB is answered.
const MAX_DAYS: i64 = 365;

/// The answer as JSON.
#[derive(Serialize)]
pub(crate) struct Counts {
    counts: Vec<DateCounts>,
}

#[derive(Serialize)]
struct DateCounts {
    date: String,
    #[serde(flatten)]
    counts: CountsView,
}

impl QueryDue {
    /// The numbers of every date of a range, in order. A date without payments has zeros.
    pub(crate) async fn counts(&self, query: &Query<'_>) -> Result<Counts, Problem> {
        let (from, to) = range(query, self.config.zone.date_of(self.clock.now()))?;
        let mut counters = self.store.counters(from, to).await?;
        let mut counts_of = |date: BusinessDate| {
            let DateCounters { counts, .. } = counters.remove(&date).unwrap_or_default();
            DateCounts { date: date.to_string(), counts: CountsView::of(&counts) }
        };
        let dates = successors(Some(from), |date| (*date < to).then(|| date.plus_days(1)));
        Ok(Counts { counts: dates.map(&mut counts_of).collect() })
    }
}

/// The first and the last date asked for.
fn range(query: &Query<'_>, today: BusinessDate) -> Result<(BusinessDate, BusinessDate), Problem> {
    let (from, to) = (query.get::<BusinessDate>("from")?, query.get::<BusinessDate>("to")?);
    let from = from.unwrap_or(today);
    let to = to.unwrap_or_else(|| from.plus_days(DEFAULT_DAYS));
    if from > to {
        return Err(invalid_parameter("from", &format!("{from} is after {to}")));
    }
    if to.days_since(from) > MAX_DAYS {
        return Err(invalid_parameter("to", &format!("the counts reach at most {MAX_DAYS} days after their first")));
    }
    Ok((from, to))
}
