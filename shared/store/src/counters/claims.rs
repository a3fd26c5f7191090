//! The claims of a due date that its limit has admitted: `CLAIMS` / `<dueDate>` in the hot table.
//!
//! Without a limit, nothing writes it. A sweep reserves claims before it makes them, so the item never has less than what was claimed, however far the counters lag.
//! After a crash it has more, by what was reserved and not claimed. The number of claims is `payments`, and a sum's name is its
//! currency. `heldSince` is there while the limit holds the date.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{NaiveTime, TimeDelta};
use payments_model::{BusinessDate, Currency, DayCounts, DayLimit, DayTotal, UtcSecond};

use crate::conditional::{conditional, once};
use crate::counters::date_counters::{counter_key, decode_counts};
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, number, text, text_of};
use crate::key::{Lane, claims_partition};
use crate::read::Reading;
use crate::schema::EXPIRES_AT;
use crate::store::Store;

/// The time after a date for which its claims are kept: 400 days.
const KEPT_FOR: TimeDelta = TimeDelta::days(400);

/// The attribute of the number of claims.
const PAYMENTS: &str = "payments";

/// The attributes of the time since which the limit holds the date, and of the end of the last such hold.
const HELD_SINCE: &str = "heldSince";
const FREED_AT: &str = "freedAt";

/// The reserved claims of a date.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayClaims {
    /// The reserved claims: at least those that were made while there was a limit.
    pub reserved: DayTotal,
    /// The time since which the limit holds the date, if it does.
    pub held_since: Option<UtcSecond>,
    /// The time at which claims went on after such a hold.
    pub freed_at: Option<UtcSecond>,
}

impl DayClaims {
    fn parse(item: &Item) -> Result<Self, Fault> {
        let mut claims = Self::default();
        for (name, value) in item {
            let whole = || value.as_n().map_err(|_| format!("{name} is not a number"));
            if name == PAYMENTS {
                claims.reserved.payments = whole()?.parse()?;
            } else if let Ok(currency) = Currency::from_stored(name) {
                claims.reserved.sums.insert(currency, whole()?.parse()?);
            }
        }
        // Claims that were given back leave a zero.
        claims.reserved.sums.retain(|_, sum| *sum != 0);
        let time = |name: &str| Some(text_of(item, name)).filter(|at| !at.is_empty()).map(str::parse).transpose();
        (claims.held_since, claims.freed_at) = (time(HELD_SINCE)?, time(FREED_AT)?);
        Ok(claims)
    }
}

/// An update of the item: its expressions, names and values, built number by number.
#[derive(Default)]
struct Change {
    conditions: Vec<String>,
    terms: Vec<String>,
    names: Vec<(String, String)>,
    values: Vec<(String, AttributeValue)>,
}

impl Change {
    /// Names a number, and gives it a value. Returns the places of both.
    fn place(&mut self, name: String, value: i128) -> (String, String) {
        let place = self.names.len();
        let (name_place, value_place) = (format!("#{place}"), format!(":{place}"));
        self.names.push((name_place.clone(), name));
        self.values.push((value_place.clone(), number(value)));
        (name_place, value_place)
    }
}

/// The numbers of a total, by the names of their attributes.
fn numbers(total: &DayTotal) -> impl Iterator<Item = (String, i128)> {
    let sums = total.sums.iter().map(|(currency, sum)| (currency.to_string(), *sum));
    std::iter::once((PAYMENTS.to_owned(), total.payments.into())).chain(sums)
}

fn claims_key(date: BusinessDate) -> Item {
    item_key(claims_partition(), date.to_string())
}

fn expires(date: BusinessDate) -> AttributeValue {
    number((date.as_chrono().and_time(NaiveTime::MIN).and_utc() + KEPT_FOR).timestamp())
}

impl Store {
    /// Returns the counts of a date, and its reserved claims, strongly consistent, in one call: 9 read units.
    pub async fn day_claims(&self, date: BusinessDate) -> Result<(DayCounts, DayClaims), StoreError> {
        let table = &self.tables.payments;
        let keys = Lane::all().map(|lane| counter_key(lane, date)).chain([claims_key(date)]).collect();
        let items = self.batch_get(table, keys, Reading { projection: None, consistent: true }).await?;
        let (mut counts, mut claims) = (DayCounts::default(), DayClaims::default());
        for item in items {
            if text_of(&item, "pk") == claims_partition() {
                claims = self.decode_claims(&item)?;
            } else {
                counts.add(&decode_counts(table, &item)?);
            }
        }
        Ok((counts, claims))
    }

    /// Returns the dates from `from` to `to`, both included, that their limit holds, each with the time since when; an error for a damaged
    /// item, whose date is held, too. 1 read unit per 4 KB, about 30 dates.
    pub async fn days_held(
        &self,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<BTreeMap<BusinessDate, Result<UtcSecond, StoreError>>, StoreError> {
        let items = self.items_by_date(claims_partition(), from, to).await?;
        // An item of another key is of no date.
        let dates = items.iter().filter_map(|item| Some((text_of(item, "sk").parse().ok()?, item)));
        let held =
            dates.map(|(date, item)| (date, self.decode_claims(item).map(|claims| claims.held_since).transpose()));
        Ok(held.filter_map(|(date, held)| Some((date, held?))).collect())
    }

    fn decode_claims(&self, item: &Item) -> Result<DayClaims, StoreError> {
        let unreadable = |fault| StoreError::unreadable(&self.tables.payments, key_of(item), fault);
        DayClaims::parse(item).map_err(unreadable)
    }

    /// Reserves claims of a date if they stay within its limit: 1 write unit for each KB. Returns whether it did. The call is never
    /// repeated, so a lost reply leaves no more than these reserved: less is claimed, never more. If the date was held, `frees_at`
    /// ends that.
    pub async fn reserve_claims(
        &self,
        date: BusinessDate,
        more: &DayTotal,
        limit: &DayLimit,
        frees_at: Option<UtcSecond>,
    ) -> Result<bool, StoreError> {
        let sums: BTreeMap<String, i128> = limit.sums().map(|(currency, most)| (currency.to_string(), most)).collect();
        let mut change = Change::default();
        for (name, sum) in numbers(more) {
            let most = if name == PAYMENTS { limit.payments().map(i128::from) } else { sums.get(&name).copied() };
            let (name, value) = change.place(name, sum);
            change.terms.push(format!("{name} {value}"));
            if let Some(most) = most {
                // No number below zero is stored, so without room the condition has to fail by itself.
                if most < sum {
                    return Ok(false);
                }
                change.values.push((format!("{value}room"), number(most - sum)));
                change.conditions.push(format!("(attribute_not_exists({name}) OR {name} <= {value}room)"));
            }
        }
        let frees = if frees_at.is_some() { ", freedAt = :freed REMOVE heldSince" } else { "" };
        change.values.extend(frees_at.map(|at| (":freed".to_owned(), text(at))));
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(claims_key(date)))
            .set_condition_expression((!change.conditions.is_empty()).then(|| change.conditions.join(" AND ")))
            .update_expression(format!("SET {EXPIRES_AT} = :expires{frees} ADD {}", change.terms.join(", ")))
            .set_expression_attribute_names(Some(change.names.into_iter().collect()))
            .set_expression_attribute_values(Some(change.values.into_iter().collect()))
            .expression_attribute_values(":expires", expires(date));
        Ok(conditional("UpdateItem", update.customize().config_override(once()).send().await)?.is_ok())
    }

    /// Gives back reserved claims that were not made: 1 write unit for each KB. The call is never repeated, because what was given
    /// back twice could be claimed twice. After an error they may stay reserved.
    pub async fn give_back_claims(&self, date: BusinessDate, unclaimed: &DayTotal) -> Result<(), StoreError> {
        let mut change = Change::default();
        for (name, sum) in numbers(unclaimed) {
            let (name, value) = change.place(name, -sum);
            change.terms.push(format!("{name} {value}"));
            change.values.push((format!("{value}least"), number(sum)));
            change.conditions.push(format!("{name} >= {value}least"));
        }
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(claims_key(date)))
            .condition_expression(change.conditions.join(" AND "))
            .update_expression(format!("ADD {}", change.terms.join(", ")))
            .set_expression_attribute_names(Some(change.names.into_iter().collect()))
            .set_expression_attribute_values(Some(change.values.into_iter().collect()));
        let given = update.customize().config_override(once()).send().await;
        conditional("UpdateItem", given).map(drop)
    }

    /// Corrects the reserved claims of a date, if nothing was reserved since `seen`: by the counters, after a restore of the table, or if
    /// claims were made without a limit. Returns whether it did. 1 write unit for each KB.
    pub async fn correct_claims(
        &self,
        date: BusinessDate,
        seen: &DayTotal,
        right: &DayTotal,
    ) -> Result<bool, StoreError> {
        let (before, after): (BTreeMap<_, _>, BTreeMap<_, _>) = (numbers(seen).collect(), numbers(right).collect());
        let mut change = Change::default();
        for name in before.keys().chain(after.keys()).cloned().collect::<BTreeSet<_>>() {
            let [known, sum] = [&before, &after].map(|numbers| numbers.get(&name).copied().unwrap_or(0));
            let (name, value) = change.place(name, sum);
            change.terms.push(format!("{name} = {value}"));
            change.values.push((format!("{value}seen"), number(known)));
            let absent = if known == 0 { format!("attribute_not_exists({name}) OR ") } else { String::new() };
            change.conditions.push(format!("({absent}{name} = {value}seen)"));
        }
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(claims_key(date)))
            .condition_expression(change.conditions.join(" AND "))
            .update_expression(format!("SET {EXPIRES_AT} = :expires, {}", change.terms.join(", ")))
            .set_expression_attribute_names(Some(change.names.into_iter().collect()))
            .set_expression_attribute_values(Some(change.values.into_iter().collect()))
            .expression_attribute_values(":expires", expires(date));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }

    /// Notes that the limit holds a date since `at`, unless this is noted already: 1 write unit for each KB.
    pub async fn note_day_held(&self, date: BusinessDate, at: UtcSecond) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(claims_key(date)))
            .condition_expression("attribute_not_exists(heldSince)")
            .update_expression(format!("SET {HELD_SINCE} = :at, {EXPIRES_AT} = :expires"))
            .expression_attribute_values(":at", text(at))
            .expression_attribute_values(":expires", expires(date));
        conditional("UpdateItem", update.send().await).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use payments_model::Money;

    use super::*;
    use crate::item_bytes;

    fn item_of(total: &DayTotal) -> Item {
        let mut item = claims_key("2026-12-01".parse().unwrap());
        item.extend(numbers(total).map(|(name, sum)| (name, number(sum))));
        item.extend(
            [HELD_SINCE, FREED_AT].map(|name| (name.to_owned(), text("2026-12-01T01:00:00Z".parse().unwrap()))),
        );
        item.insert(EXPIRES_AT.to_owned(), expires("2026-12-01".parse().unwrap()));
        item
    }

    #[test]
    fn claims_are_read_as_they_are_stored_and_damage_is_found() {
        let money = |amount: &str, currency: &str| Money {
            amount: amount.parse().unwrap(),
            currency: currency.parse().unwrap(),
        };
        let total: DayTotal = [money("5", "GBP"), money("7", "EUR"), money("9", "GBP")].into_iter().collect();
        let claims = DayClaims::parse(&item_of(&total)).unwrap();
        assert_eq!(claims.reserved, total);
        assert_eq!((claims.held_since.is_some(), claims.freed_at.is_some()), (true, true));
        for (name, value) in [
            (PAYMENTS, AttributeValue::S("5".to_owned())),
            (PAYMENTS, number(-1)),
            ("GBP", AttributeValue::S("5".to_owned())),
            (HELD_SINCE, AttributeValue::S("today".to_owned())),
        ] {
            let mut item = item_of(&total);
            item.insert(name.to_owned(), value.clone());
            assert!(DayClaims::parse(&item).is_err(), "{name} {value:?}");
        }
    }

    #[test]
    fn the_claims_of_a_date_in_twenty_currencies_take_one_write_unit() {
        let codes = "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR JPY MXN NOK NZD PLN SEK USD";
        let sums = codes.split(' ').map(|code| (code.parse().unwrap(), 9_007_199_254_740_991_000_000)).collect();
        let bytes = item_bytes(&item_of(&DayTotal { payments: 1_000_000, sums }));
        assert!(bytes <= 1_024, "{bytes} bytes");
    }
}
