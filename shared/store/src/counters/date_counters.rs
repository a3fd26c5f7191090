//! The counters of a date: one item per lane, whose numbers change only by `ADD`.
//!
//! A count is stored under its status's name, a sum under `<currency>.<abbreviated status>`, which keeps an item with
//! ten currencies within 1 KB. `moves` counts the writes: it tells a repair whether a counter changed.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use payments_model::{BusinessDate, Currency, DayCounts, Status};

use crate::error::{StoreError, failed};
use crate::item::{Item, item_key, key_of, text_of};
use crate::key::{LANES, Lane, counts_partition};
use crate::read::Reading;
use crate::store::Store;

/// The attribute that counts the writes of a counter.
pub(crate) const MOVES: &str = "moves";

/// The attributes of [`DayCounts::archived`] and [`DayCounts::unparsed`].
const ARCHIVED: &str = "archived";
const UNPARSED: &str = "unparsed";

/// The counters of one date, all lanes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DateCounters {
    /// The numbers.
    pub counts: DayCounts,
    /// The number of writes of each lane; 0 for a lane that does not exist.
    pub moves: [u64; LANES],
}

impl Store {
    /// Returns the counters of the dates from `from` to `to`, both included, strongly consistent per lane: 1 read unit
    /// per lane and 4 KB, about 10 to 20 dates. Dates without counters are left out.
    pub async fn counters(
        &self,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<BTreeMap<BusinessDate, DateCounters>, StoreError> {
        let lanes = try_join_all(Lane::all().map(|lane| self.items_by_date(counts_partition(lane), from, to))).await?;
        let mut dates: BTreeMap<BusinessDate, DateCounters> = BTreeMap::new();
        for (lane, items) in Lane::all().zip(lanes) {
            for item in items {
                let (date, counts, moves) = decode_counter(&self.tables.payments, &item)?;
                let counters = dates.entry(date).or_default();
                counters.counts.add(&counts);
                counters.moves[lane.index()] = moves;
            }
        }
        Ok(dates)
    }

    /// Returns the counts of a date, strongly consistent per lane, in one call: 8 read units.
    pub async fn counts_of_date(&self, date: BusinessDate) -> Result<DayCounts, StoreError> {
        let table = &self.tables.payments;
        let keys = Lane::all().map(|lane| item_key(counts_partition(lane), date.to_string())).collect();
        let lanes = self.batch_get(table, keys, Reading { projection: None, consistent: true }).await?;
        let mut counts = DayCounts::default();
        for lane in lanes {
            counts.add(&decode_counter(table, &lane)?.1);
        }
        Ok(counts)
    }

    /// Returns the items of a partition whose sort keys are dates, strongly consistent.
    pub(crate) async fn items_by_date(
        &self,
        partition: String,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<Vec<Item>, StoreError> {
        self.bounded("Query", self.items_by_date_in_pages(partition, from, to)).await
    }

    async fn items_by_date_in_pages(
        &self,
        partition: String,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let query = self
                .client
                .query()
                .table_name(&self.tables.payments)
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
                .expression_attribute_values(":from", AttributeValue::S(from.to_string()))
                .expression_attribute_values(":to", AttributeValue::S(to.to_string()))
                .set_exclusive_start_key(after)
                .consistent_read(true);
            let answer = query.send().await.map_err(failed("Query"))?;
            items.extend(answer.items.unwrap_or_default());
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(items);
            }
        }
    }
}

/// The key of a counter.
pub(crate) fn counter_key(lane: Lane, date: BusinessDate) -> Item {
    item_key(counts_partition(lane), date.to_string())
}

/// The numbers that are not zero, as attributes.
pub(crate) fn attributes(counts: &DayCounts) -> Vec<(String, AttributeValue)> {
    let counted = Status::ALL.map(|status| (status.as_str().to_owned(), i128::from(counts.count(status))));
    let rest = [(ARCHIVED, counts.archived), (UNPARSED, counts.unparsed)];
    let rest = rest.map(|(name, number)| (name.to_owned(), i128::from(number)));
    let sums = counts.sums().map(|(currency, status, sum)| (sum_name(currency, status), sum));
    let all = counted.into_iter().chain(rest).chain(sums).filter(|(_, number)| *number != 0);
    all.map(|(name, number)| (name, AttributeValue::N(number.to_string()))).collect()
}

/// Decodes a counter: its date, its numbers, and the number of its writes.
fn decode_counter(table: &str, item: &Item) -> Result<(BusinessDate, DayCounts, u64), StoreError> {
    let unreadable = |_| StoreError::unreadable(table, key_of(item), "its sort key is not a date");
    let date = text_of(item, "sk").parse().map_err(unreadable)?;
    let moves = item.get(MOVES).and_then(|moves| moves.as_n().ok()).and_then(|moves| moves.parse().ok());
    Ok((date, decode_counts(table, item)?, moves.unwrap_or(0)))
}

/// Decodes the numbers of a table's item. Other attributes are ignored.
pub(crate) fn decode_counts(table: &str, item: &Item) -> Result<DayCounts, StoreError> {
    let mut counts = DayCounts::default();
    for (name, value) in item {
        let number = || {
            let number = value.as_n().ok().and_then(|number| number.parse::<i128>().ok());
            number.ok_or_else(|| StoreError::unreadable(table, key_of(item), format!("{name} is not a whole number")))
        };
        let small = || {
            let number = i64::try_from(number()?);
            number.map_err(|_| StoreError::unreadable(table, key_of(item), format!("{name} is out of range")))
        };
        if let Ok(status) = name.parse::<Status>() {
            counts.shift(status, small()?);
        } else if let Some((currency, status)) = parse_sum_name(name) {
            counts.shift_sum(currency, status, number()?);
        } else if name == ARCHIVED {
            counts.archived = small()?;
        } else if name == UNPARSED {
            counts.unparsed = small()?;
        }
    }
    Ok(counts)
}

/// Whether an attribute of this name is one of the numbers.
pub(crate) fn is_number(name: &str) -> bool {
    [ARCHIVED, UNPARSED].contains(&name) || name.parse::<Status>().is_ok() || parse_sum_name(name).is_some()
}

/// A status in the name of a sum. With ten currencies, a counter has fifty sums.
pub(crate) fn abbreviated(status: Status) -> &'static str {
    match status {
        Status::Scheduled => "sch",
        Status::Pending => "pen",
        Status::Processed => "pro",
        Status::Failed => "fai",
        Status::Cancelled => "can",
    }
}

fn sum_name(currency: Currency, status: Status) -> String {
    format!("{currency}.{}", abbreviated(status))
}

fn parse_sum_name(name: &str) -> Option<(Currency, Status)> {
    let (currency, status) = name.split_once('.')?;
    let status = Status::ALL.into_iter().find(|known| abbreviated(*known) == status)?;
    Some((Currency::from_stored(currency).ok()?, status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_bytes;

    /// Counters in `currencies` currencies, with sums of `digits` digits.
    fn counts(currencies: usize, digits: u32) -> DayCounts {
        let mut counts = DayCounts::default();
        (counts.archived, counts.unparsed) = (9_999_999, 9_999_999);
        let codes = ["AUD", "CAD", "CHF", "EUR", "GBP", "JPY", "NOK", "NZD", "SEK", "USD"];
        for status in Status::ALL {
            counts.shift(status, 9_999_999);
            for code in &codes[..currencies] {
                counts.shift_sum(code.parse().unwrap(), status, 10_i128.pow(digits) - 1);
            }
        }
        counts
    }

    fn item(counts: &DayCounts) -> Item {
        let key = counter_key(Lane::for_stream_shard("a"), "2026-12-01".parse().unwrap());
        let moves = (MOVES.to_owned(), AttributeValue::N("99999999".to_owned()));
        key.into_iter().chain(attributes(counts)).chain([moves]).collect()
    }

    #[test]
    fn a_counter_is_decoded() {
        let counts = counts(10, 30);
        let (date, read, moves) = decode_counter("t", &item(&counts)).unwrap();
        assert_eq!((date.to_string().as_str(), &read, moves), ("2026-12-01", &counts, 99_999_999));
    }

    #[test]
    fn a_counter_of_ten_currencies_fits_a_kilobyte() {
        // Sums of eighteen digits are ten quadrillion pounds.
        for (currencies, digits) in [(3, 37), (10, 18)] {
            let bytes = item_bytes(&item(&counts(currencies, digits)));
            assert!(bytes <= 1_024, "{currencies} currencies: {bytes} bytes");
        }
    }

    #[test]
    fn a_damaged_counter_is_unreadable() {
        for (name, value) in [
            ("GBP.pro", AttributeValue::N("1.5".to_owned())),
            ("PENDING", AttributeValue::S("7".to_owned())),
            ("archived", AttributeValue::N("9223372036854775808".to_owned())),
            ("sk", AttributeValue::S("tomorrow".to_owned())),
        ] {
            let mut item = item(&counts(1, 3));
            item.insert(name.to_owned(), value);
            assert!(decode_counter("t", &item).is_err(), "{name}");
        }
    }
}
