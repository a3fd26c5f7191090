//! The payments of a load. The seed and a number determine each payment, so none is kept in memory.

use anyhow::Result;
use fastrand::Rng;
use payments_machine::client::Request;
use payments_machine::payload::DataKind;
use payments_model::{Instruction, JsonText, Money};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::settings::{Settings, Size};

/// The bytes that a payment's client chooses besides its data: two accounts and a date. A test compares it with the limit.
const ENVELOPE: usize = 29;

/// The data of mixed sizes: below which percentile, from how many bytes, to how many.
const SIZES: [(u8, usize, usize); 4] = [(50, 20, 300), (80, 300, 1_500), (95, 1_500, 5_000), (100, 5_000, 7_400)];

const CURRENCIES: [&str; 6] = ["GBP", "GBP", "GBP", "EUR", "USD", "JPY"];

/// All payments of a load.
#[derive(Debug, Clone)]
pub struct Orders {
    seed: u64,
    run: String,
    size: Size,
    accounts: u32,
    busiest: u8,
    scheduled_for: String,
    data_kind: DataKind,
}

/// One payment as its client sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order<'o> {
    /// The account that pays.
    pub account: String,
    /// The idempotency key.
    pub key: String,
    payee: String,
    amount: u32,
    currency: &'static str,
    scheduled_for: &'o str,
    /// The data, as JSON.
    data: String,
}

/// The JSON of a create, or of an entry of a batch.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'o> {
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'o str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'o str>,
    payee_account_id: &'o str,
    amount_minor: u32,
    currency: &'o str,
    scheduled_for: &'o str,
    data: &'o RawValue,
}

impl Orders {
    /// Returns the payments of these settings, scheduled for a date. `run` makes their idempotency keys different from
    /// those of earlier runs.
    pub fn new(settings: &Settings, run: &str, scheduled_for: &str) -> Self {
        Self {
            seed: settings.seed,
            run: run.to_owned(),
            size: settings.size,
            accounts: settings.accounts,
            busiest: settings.busiest,
            scheduled_for: scheduled_for.to_owned(),
            data_kind: settings.data_kind,
        }
    }

    /// Returns the payment of a number.
    pub fn order(&self, number: u64) -> Order<'_> {
        // Seeds that are close together make different payments.
        let mut random = Rng::with_seed(Rng::with_seed(self.seed).u64(..) ^ Rng::with_seed(number).u64(..));
        let bytes = self.data_bytes(&mut random);
        Order {
            account: self.account(&mut random),
            key: format!("load-{}-{number}", self.run),
            payee: format!("payee-{:03}", random.u16(1..=500)),
            amount: random.u32(1..=500_000),
            currency: random.choice(CURRENCIES).unwrap_or("GBP"),
            scheduled_for: &self.scheduled_for,
            data: self.data_kind.text(&mut random, bytes),
        }
    }

    /// Chooses an account, the busiest ones more often.
    fn account(&self, random: &mut Rng) -> String {
        let of_the_busiest = random.u8(..100) < self.busiest;
        let accounts = if of_the_busiest { self.accounts.div_ceil(100) } else { self.accounts };
        format!("load-{:05}", random.u32(..accounts) + 1)
    }

    fn data_bytes(&self, random: &mut Rng) -> usize {
        match self.size {
            Size::Bytes(bytes) => bytes.saturating_sub(ENVELOPE),
            Size::Mixed => {
                let percent = random.u8(..100);
                let (_, from, to) = SIZES.into_iter().find(|(below, ..)| percent < *below).unwrap_or(SIZES[0]);
                random.usize(from..=to)
            }
        }
    }
}

impl Order<'_> {
    /// Returns the request that creates the payment.
    pub fn request(&self) -> Result<Request> {
        let request = Request::post(&format!("/accounts/{}/payments", self.account));
        Ok(request.header("Idempotency-Key", &self.key).text(serde_json::to_string(&self.body(false)?)?))
    }

    /// Returns the instruction that the request contains.
    pub fn instruction(&self) -> Result<Instruction> {
        Ok(Instruction {
            account: self.account.parse()?,
            payee: self.payee.parse()?,
            money: Money { amount: i64::from(self.amount).try_into()?, currency: self.currency.parse()? },
            scheduled_for: self.scheduled_for.parse()?,
            date_rule: None,
            reference: None,
            data: Some(JsonText::new(serde_json::from_str(&self.data)?)?.into()),
        })
    }

    fn body(&self, in_batch: bool) -> Result<Body<'_>> {
        Ok(Body {
            account_id: in_batch.then_some(&self.account),
            idempotency_key: in_batch.then_some(&self.key),
            payee_account_id: &self.payee,
            amount_minor: self.amount,
            currency: self.currency,
            scheduled_for: self.scheduled_for,
            data: serde_json::from_str(&self.data)?,
        })
    }
}

/// Returns the request that creates several payments.
pub fn batch(orders: &[Order<'_>]) -> Result<Request> {
    #[derive(Serialize)]
    struct Batch<'o> {
        payments: Vec<Body<'o>>,
    }
    let payments = orders.iter().map(|order| order.body(true)).collect::<Result<_>>()?;
    Ok(Request::post("/payment-batches").text(serde_json::to_string(&Batch { payments })?))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use payments_model::{Actor, Details, PaymentId};
    use payments_store::details_excess;

    use super::*;

    fn orders(change: impl FnOnce(&mut Settings)) -> Orders {
        let mut settings = Settings::new(1_000, "Europe/London".parse().unwrap());
        change(&mut settings);
        Orders::new(&settings, "1", "2026-11-21")
    }

    /// The bytes by which the payment exceeds the largest one, with `more` bytes added to its data.
    fn excess(order: &Order<'_>, more: usize) -> usize {
        let data = format!("{}{}", order.data, " ".repeat(more));
        let mut instruction = order.instruction().unwrap();
        instruction.data = Some(JsonText::from_stored(data).unwrap().into());
        let id = PaymentId::derive(&instruction.account, &order.key.parse().unwrap());
        let (zone, now) = ("Europe/London".parse().unwrap(), "2026-11-20T09:00:00Z".parse().unwrap());
        let details = Details::accept(id, instruction, zone, "10".parse().unwrap(), now, Actor::client("load"));
        details_excess(&details).unwrap_or(0)
    }

    #[test]
    fn a_payment_of_size_8k_is_as_large_as_one_may_be() {
        for kind in DataKind::ALL.into_iter().filter(|kind| *kind != DataKind::Small) {
            let orders = orders(|settings| settings.data_kind = kind);
            for number in 0..50 {
                let order = orders.order(number);
                assert_eq!(excess(&order, 0), 0, "payment {number}");
                assert_eq!(excess(&order, 1), 1, "payment {number} could have more");
            }
        }
    }

    #[test]
    fn seed_and_number_determine_a_payment() {
        let (one, other) = (orders(|_| {}), orders(|settings| settings.seed = 2));
        let mut keys = BTreeSet::new();
        for number in 0..500 {
            assert_eq!(one.order(number), one.order(number));
            assert_ne!(one.order(number).data, other.order(number).data);
            keys.insert(one.order(number).key);
        }
        assert_eq!(keys.len(), 500);
    }

    #[test]
    fn the_busiest_accounts_have_their_share() {
        for (busiest, range) in [(0, 0..50), (50, 900..1_100)] {
            let orders = orders(|settings| (settings.accounts, settings.busiest) = (1_000, busiest));
            let mut by_account: BTreeMap<String, u32> = BTreeMap::new();
            (0..2_000).for_each(|number| *by_account.entry(orders.order(number).account).or_default() += 1);
            let of_the_busiest: u32 = by_account.range(..="load-00010".to_owned()).map(|(_, count)| count).sum();
            assert!(range.contains(&of_the_busiest), "{busiest}: {of_the_busiest}");
        }
    }

    #[test]
    fn mixed_sizes_range_from_100_bytes_to_7000() {
        let orders = orders(|settings| settings.size = Size::Mixed);
        let sizes: Vec<usize> = (0..1_000).map(|number| orders.order(number).data.len()).collect();
        assert!(sizes.iter().any(|bytes| *bytes < 100) && sizes.iter().any(|bytes| *bytes > 7_000));
    }

    #[test]
    fn a_batch_names_accounts_and_keys_and_a_single_create_does_not() {
        let orders = orders(|settings| settings.size = Size::Bytes(400));
        let order = orders.order(7);
        let body = |in_batch| serde_json::to_value(order.body(in_batch).unwrap()).unwrap();
        let (single, entry) = (body(false), body(true));
        assert!(single.get("accountId").is_none() && single.get("idempotencyKey").is_none(), "{single}");
        assert_eq!((&entry["accountId"], &entry["idempotencyKey"]), (&order.account.into(), &"load-1-7".into()));
        assert_eq!(entry["data"], single["data"]);
    }
}
