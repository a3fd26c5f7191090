//! The script of the day: the payments, and when each is created.
//!
//! Every payment follows from the seed and its number, so none is in memory before its time.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use anyhow::Result;
use chrono::TimeDelta;
use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_model::{BusinessDate, BusinessZone, IdempotencyKey, PaymentId, UtcSecond};
use scheduled_payments::{Data, PaymentOrder, ScheduledFor};

/// The minute of the day at which the feed begins: 01:00.
pub(super) const FEED_BEGINS: u32 = 60;

/// The payments that the feed creates per minute: 556 a second are a million in half an hour.
const FEED_PER_MINUTE: u64 = 556 * 60;

/// The minutes of the day in which customers amend payments of the feed, before any of those is due: 02:00 to 05:50.
const AMENDED: RangeInclusive<u32> = 2 * 60..=5 * 60 + 50;

/// The minutes of the day in which other payments are created and fall due: 06:00 to 18:00.
const BUSINESS_HOURS: RangeInclusive<u32> = 6 * 60..=18 * 60 - 1;

/// The approximate number of payments per account.
const PAYMENTS_PER_ACCOUNT: u64 = 25;

/// The size of a payment's data: (up to this percentile, from bytes, to bytes). The largest leaves room for the other
/// fields within 8 KB.
const SIZES: [(u16, usize, usize); 4] = [(50, 20, 300), (80, 300, 1_500), (95, 1_500, 5_000), (100, 5_000, 7_400)];

const CURRENCIES: [&str; 6] = ["GBP", "GBP", "GBP", "EUR", "USD", "JPY"];

/// The payments of one banking day.
#[derive(Debug, Clone)]
pub(super) struct Script {
    seed: u64,
    payments: u64,
    data_bytes: Option<usize>,
    data_kind: DataKind,
    day: BusinessDate,
    begins: UtcSecond,
}

/// One payment as its client creates it, or as it shall be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    pub(super) account: String,
    pub(super) key: String,
    pub(super) payment: PaymentOrder,
}

impl Script {
    /// Creates the script. Half of the payments are from the feed. Each has data of the kind and the size, or sizes vary.
    pub(super) fn draw(
        seed: u64,
        payments: u64,
        (data_kind, data_bytes): (DataKind, Option<usize>),
        day: BusinessDate,
        zone: BusinessZone,
    ) -> Self {
        Self { seed, payments, data_bytes, data_kind, day, begins: zone.start_of(day) }
    }

    /// Returns the number of payments.
    pub(super) fn payments(&self) -> u64 {
        self.payments
    }

    /// Returns the day.
    pub(super) fn day(&self) -> BusinessDate {
        self.day
    }

    /// Returns the instant of a minute of the day. Minutes count on after midnight.
    pub(super) fn instant(&self, minute: u32) -> UtcSecond {
        self.begins.saturating_add(TimeDelta::minutes(minute.into()))
    }

    /// Returns all accounts.
    pub(super) fn accounts(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.account_count()).map(account)
    }

    fn account_count(&self) -> u64 {
        (self.payments / PAYMENTS_PER_ACCOUNT).max(5)
    }

    fn fed(&self) -> u64 {
        self.payments.div_ceil(2)
    }

    /// Returns the payments that the feed creates in each minute, by number.
    pub(super) fn feed(&self) -> BTreeMap<u32, Vec<u64>> {
        by_minute((0..self.fed()).map(|number| {
            let minute = u32::try_from(number / FEED_PER_MINUTE).unwrap_or(u32::MAX);
            (FEED_BEGINS.saturating_add(minute), number)
        }))
    }

    /// Returns the payments that are created one by one in each minute, by number.
    pub(super) fn daytime(&self) -> BTreeMap<u32, Vec<u64>> {
        by_minute((self.fed()..self.payments).map(|number| (self.random(number).u32(BUSINESS_HOURS), number)))
    }

    /// Returns the payments that are amended in each minute, by number.
    pub(super) fn amendments(&self) -> BTreeMap<u32, Vec<u64>> {
        let amended = (0..self.fed()).filter(|number| self.is_amended(&self.order(*number), *number));
        by_minute(amended.map(|number| (self.random_of_amendment(number).u32(AMENDED), number)))
    }

    /// Whether a payment is amended: one in four of the feed's that are due at a time of the day.
    fn is_amended(&self, order: &Order, number: u64) -> bool {
        let has_time = matches!(order.payment.scheduled_for, ScheduledFor::Time(_));
        number < self.fed() && has_time && self.random_of_amendment(number).u8(0..4) == 0
    }

    /// Returns a payment as it is in the end: every second one that is amended gets another time, the others another amount.
    pub(super) fn last_order(&self, number: u64) -> Order {
        let mut order = self.order(number);
        if self.is_amended(&order, number) {
            let mut random = self.random_of_amendment(number);
            if random.bool() {
                let seconds = random.u32(BUSINESS_HOURS.start() * 60..=*BUSINESS_HOURS.end() * 60 + 59);
                let due = self.begins.saturating_add(TimeDelta::seconds(seconds.into()));
                order.payment.scheduled_for = ScheduledFor::Time(due.as_chrono().fixed_offset());
            } else {
                order.payment.amount_minor += 1;
            }
            order.key = format!("amend-{}-{number}", self.day);
        }
        order
    }

    /// Returns the random source of one payment's amendment.
    fn random_of_amendment(&self, number: u64) -> Rng {
        Rng::with_seed(!self.random(number).u64(..))
    }

    /// Returns the payments' numbers by their ids.
    pub(super) fn numbers(&self) -> Result<HashMap<String, u64>> {
        let id = |number| {
            let order = self.order(number);
            let id = PaymentId::derive(&order.account.parse()?, &order.key.parse::<IdempotencyKey>()?);
            Ok((id.to_string(), number))
        };
        (0..self.payments).map(id).collect()
    }

    /// Returns one payment.
    pub(super) fn order(&self, number: u64) -> Order {
        let mut random = self.random(number);
        let arrives = random.u32(BUSINESS_HOURS);
        let fed = number < self.fed();
        // Most payments of the feed have a date without a time, and are due at its first instant.
        let by_date = random.u8(0..100) < if fed { 60 } else { 20 };
        let scheduled_for = if by_date {
            self.day.as_chrono().into()
        } else {
            let from = if fed { *BUSINESS_HOURS.start() } else { arrives };
            let seconds = random.u32(from * 60..=*BUSINESS_HOURS.end() * 60 + 59);
            let due = self.begins.saturating_add(TimeDelta::seconds(seconds.into()));
            ScheduledFor::Time(due.as_chrono().fixed_offset())
        };
        let bytes = self.data_bytes.unwrap_or_else(|| size(&mut random));
        let payee = format!("payee-{}", random.u16(1..=500));
        let amount = random.u32(1..=500_000);
        let currency = random.choice(CURRENCIES).unwrap_or("GBP");
        let mut payment = PaymentOrder::new(&payee, amount.into(), currency, scheduled_for);
        payment.data = Data::from_value(&self.data_kind.value(&mut random, bytes)).ok();
        let origin = if fed { "feed" } else { "day" };
        let account = account(random.u64(0..self.account_count()));
        Order { account, key: format!("{origin}-{}-{number}", self.day), payment }
    }

    /// Returns the random source of one payment. Neighbouring seeds and numbers make different payments.
    fn random(&self, number: u64) -> Rng {
        Rng::with_seed(Rng::with_seed(self.seed).u64(..) ^ Rng::with_seed(number).u64(..))
    }
}

fn account(number: u64) -> String {
    format!("acc-{:05}", number + 1)
}

fn by_minute(arrivals: impl Iterator<Item = (u32, u64)>) -> BTreeMap<u32, Vec<u64>> {
    let mut minutes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    arrivals.for_each(|(minute, number)| minutes.entry(minute).or_default().push(number));
    minutes
}

fn size(random: &mut Rng) -> usize {
    let percent = random.u16(0..100);
    let (_, from, to) = SIZES.into_iter().find(|(below, ..)| percent < *below).unwrap_or(SIZES[0]);
    random.usize(from..=to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(seed: u64, payments: u64) -> Script {
        let (day, zone) = ("2026-11-20".parse().unwrap(), "Europe/London".parse().unwrap());
        Script::draw(seed, payments, (DataKind::default(), None), day, zone)
    }

    #[test]
    fn every_payment_is_created_once_and_is_the_same_each_time() {
        let script = script(1, 1_001);
        let (feed, daytime) = (script.feed(), script.daytime());
        assert_eq!(feed.keys().collect::<Vec<_>>(), [&60]);
        let mut numbers: Vec<u64> = feed.into_values().chain(daytime.clone().into_values()).flatten().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1_001).collect::<Vec<_>>());
        assert!(daytime.keys().all(|minute| BUSINESS_HOURS.contains(minute)));
        for (number, other) in [(0, 1), (0, 1_000), (700, 701)] {
            assert_eq!(script.order(number), script.order(number));
            assert_ne!(script.order(number).payment, script.order(other).payment);
        }
        assert_ne!(script.order(3).payment, super::tests::script(2, 1_001).order(3).payment);
    }

    #[test]
    fn payments_are_due_on_the_day_and_sizes_vary() {
        let script = script(1, 2_000);
        let orders: Vec<Order> = (0..2_000).map(|number| script.order(number)).collect();
        let texts: Vec<_> = orders.iter().map(|order| order.payment.scheduled_for.to_string()).collect();
        assert!(texts.iter().all(|text| text.starts_with("2026-11-20")));
        let by_date = texts.iter().filter(|text| text.len() == 10).count();
        assert!((600..1_000).contains(&by_date), "{by_date}");
        let sizes: Vec<usize> = orders.iter().map(|order| order.payment.data.as_ref().unwrap().get().len()).collect();
        assert!(sizes.iter().any(|bytes| *bytes < 100) && sizes.iter().any(|bytes| *bytes > 7_000));
        assert!(sizes.iter().all(|bytes| *bytes <= 7_400));
    }

    #[test]
    fn another_seed_is_another_day() {
        let data = |seed: u64| script(seed, 100).order(7).payment.data.map(|data| data.get().to_owned());
        let days = |seed: u64| script(seed, 100).daytime();
        assert_eq!((data(1), days(1)), (data(1), days(1)));
        assert_ne!((data(1), days(1)), (data(2), days(2)));
    }

    #[test]
    fn amendments_change_some_payments_before_they_are_due() {
        let script = script(1, 2_000);
        let numbers: Vec<u64> = script.amendments().into_values().flatten().collect();
        assert!((50..150).contains(&numbers.len()), "{}", numbers.len());
        let mut moved = 0;
        for number in 0..2_000 {
            let (first, last) = (script.order(number), script.last_order(number));
            assert_eq!(first.payment != last.payment, numbers.contains(&number), "{number}");
            moved += usize::from(first.payment.scheduled_for != last.payment.scheduled_for);
        }
        assert!((1..numbers.len()).contains(&moved), "{moved}");
    }

    #[test]
    fn the_feed_creates_a_million_payments_within_half_an_hour() {
        let feed = script(1, 2_000_000).feed();
        assert_eq!(feed.keys().next_back(), Some(&89));
        assert_eq!(feed.values().map(Vec::len).sum::<usize>(), 1_000_000);
    }
}
