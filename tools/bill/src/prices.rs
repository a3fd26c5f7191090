//! The prices of `prices.csv`: AWS's list for us-east-1, as third parties quote it.
//!
//! Each has its code in that list, and the date on which it was quoted.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

const FILE: &str = include_str!("../prices.csv");

/// A billionth of a dollar, as a number of decimals.
const DECIMALS: usize = 9;

/// A dollar, in billionths.
pub const DOLLAR: u64 = 1_000_000_000;

/// A price.
#[derive(Debug, Clone, Deserialize)]
pub struct Price {
    name: String,
    dollars: String,
    per: u64,
    /// Its unit.
    pub unit: String,
    #[serde(rename = "code")]
    _code: String,
    date: chrono::NaiveDate,
}

/// All prices.
#[derive(Debug, Clone)]
pub struct Prices(Vec<Price>);

impl Prices {
    /// Reads the file.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn list() -> Result<Self> {
        let rows = csv::Reader::from_reader(FILE.as_bytes()).into_deserialize();
        let prices: Vec<Price> = rows.collect::<Result<_, _>>().context("prices.csv")?;
        for price in &prices {
            ensure!(price.per > 0 && price.billionths().is_ok(), "the price {} cannot be read", price.name);
        }
        Ok(Self(prices))
    }

    /// Returns a price.
    ///
    /// # Errors
    /// If the file lacks the price.
    pub fn get(&self, name: &str) -> Result<&Price> {
        self.0.iter().find(|price| price.name == name).with_context(|| format!("prices.csv has no price {name}"))
    }

    /// Returns the date of the oldest price.
    #[must_use]
    pub fn date(&self) -> Option<chrono::NaiveDate> {
        self.0.iter().map(|price| price.date).min()
    }
}

impl Price {
    fn billionths(&self) -> Result<u64> {
        let (dollars, fraction) = self.dollars.split_once('.').unwrap_or((&self.dollars, ""));
        ensure!(fraction.len() <= DECIMALS, "{} has more than {DECIMALS} decimals", self.dollars);
        Ok(format!("{dollars}{fraction:0<DECIMALS$}").parse()?)
    }

    /// Returns the cost of a quantity in billionths of a dollar, to the nearest.
    #[must_use]
    pub fn cost(&self, quantity: u64) -> u64 {
        let price = u128::from(self.billionths().unwrap_or(0));
        let per = u128::from(self.per);
        u64::try_from((price * u128::from(quantity) + per / 2) / per).unwrap_or(u64::MAX)
    }

    /// Returns the cost of a million, or of a GB of a price by the GB, in thousandths of a dollar.
    #[must_use]
    pub fn thousandths(&self) -> u64 {
        self.cost(self.per) / (DOLLAR / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_costs_its_price() {
        let prices = Prices::list().unwrap();
        for (name, quantity, billionths) in [
            ("write", 1_000_000, 625_000_000),
            ("history read", 1, 155),
            ("compute", 1, 13_333),
            ("call of a key", 10_001, 30_003_000),
            ("recovery", 2_000_000_000_000, 400 * DOLLAR),
            ("dashboard", 1, 3 * DOLLAR),
        ] {
            assert_eq!(prices.get(name).unwrap().cost(quantity), billionths, "{name}");
        }
        assert_eq!(prices.get("history write").unwrap().thousandths(), 780);
        assert!(prices.get("gold").is_err());
    }
}
