//! Prices, and what a million payments cost at them.

use std::str::FromStr;

use anyhow::{Result, ensure};
use payments_boot::Lookup;

use crate::measured::{Measured, PAGE, Used};

/// A price of a million units, or of a GB for a month, in thousandths of a dollar.
#[derive(Debug, Clone, Copy)]
struct Price(u64);

impl FromStr for Price {
    type Err = anyhow::Error;

    /// Reads `0.625`.
    fn from_str(text: &str) -> Result<Self> {
        let (dollars, fraction) = text.split_once('.').unwrap_or((text, ""));
        ensure!(fraction.len() <= 3, "{text} is finer than a thousandth of a dollar");
        Ok(Self(dollars.parse::<u64>()? * 1_000 + format!("{fraction:0<3}").parse::<u64>()?))
    }
}

/// The prices of a million units, in the hot table and in a long-term table of infrequent access, and of what that keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    writes: [Price; 2],
    reads: [Price; 2],
    storage: Price,
    recovery: Price,
    years: u64,
}

/// The cost of a million payments, in cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cents {
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    /// Of all years.
    pub(crate) storage: u64,
    pub(crate) recovery: u64,
}

impl Cents {
    pub(crate) fn all(self) -> u64 {
        self.writes + self.reads + self.storage + self.recovery
    }
}

impl Prices {
    /// Returns the prices of the environment, or list prices, and whether the environment has any.
    pub(crate) fn read() -> Result<(Self, bool)> {
        let (lookup, mut given) = (Lookup::environment(), false);
        let list = payments_bill::Prices::list()?;
        let mut price = |name, listed| -> Result<Price> {
            let own = lookup.optional::<Price>(name)?;
            given |= own.is_some();
            Ok(own.unwrap_or(Price(list.get(listed)?.thousandths())))
        };
        let writes = [price("WRITE_PRICE", "write")?, price("HISTORY_WRITE_PRICE", "history write")?];
        let reads = [price("READ_PRICE", "read")?, price("HISTORY_READ_PRICE", "history read")?];
        let (storage, recovery) =
            (price("HISTORY_STORAGE_PRICE", "history storage")?, price("RECOVERY_PRICE", "recovery")?);
        let years = lookup.optional::<u64>("YEARS")?;
        given |= years.is_some();
        Ok((Self { writes, reads, storage, recovery, years: years.unwrap_or(5) }, given))
    }

    /// Returns the years for which payments are kept.
    pub(crate) fn years(&self) -> u64 {
        self.years
    }

    /// Returns the cost of a million payments like those of a page.
    pub(crate) fn cents(&self, page: &Measured) -> Cents {
        // From half units of a page and thousandths of a dollar, to the nearest cent.
        let units = |used: Used, [hot, history]: [Price; 2]| {
            nearest(used.hot * hot.0 + used.history * history.0, 2 * u64::from(PAGE) * 10)
        };
        // A million times a byte is a thousandth of a GB, and a year has 12 months.
        let kept = |bytes: u64, price: Price| nearest(bytes * price.0 * 12 * self.years, u64::from(PAGE) * 1_000 * 10);
        let stored = page.stored;
        Cents {
            writes: units(page.writes(), self.writes),
            reads: units(page.reads(), self.reads),
            storage: kept(stored.items + stored.entries, self.storage),
            // Indexes are not backed up.
            recovery: kept(stored.items, self.recovery),
        }
    }
}

fn nearest(amount: u64, scale: u64) -> u64 {
    (amount + scale / 2) / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::{Read, Write};
    use payments_bill::Stored;

    #[test]
    fn a_million_payments_cost_what_one_does_a_million_times() {
        let price = |text: &str| text.parse::<Price>().unwrap();
        let prices = Prices {
            writes: [price("0.625"), price("0.78")],
            reads: [price("0.125"), price("0.155")],
            storage: price("0.1"),
            recovery: price("0.2"),
            years: 5,
        };
        let page = u64::from(PAGE);
        let measured = Measured {
            // Of each payment, ten units in the hot table and four in the other, and one read there.
            writes: vec![(Write::Head, Used { hot: 20 * page, history: 8 * page })],
            reads: vec![(Read::Dispatched, Used { hot: 0, history: 2 * page })],
            stored: Stored { items: 3_000 * page, entries: 500 * page },
        };
        let cents = prices.cents(&measured);
        assert_eq!(cents, Cents { writes: 625 + 312, reads: 16, storage: 2_100, recovery: 3_600 });
        assert_eq!(cents.all(), 6_653);
        assert!("0.0001".parse::<Price>().is_err());
    }
}
