//! Prices, and what a million payments cost at them.

use std::str::FromStr;

use anyhow::{Result, anyhow, ensure};
use payments_bill::{CLEARED_AFTER, SEALED_AFTER};
use payments_boot::Lookup;

use crate::measured::{Measured, PAGE, Used};
use crate::sealed::Sealed;

/// The days of a year.
const YEAR: u64 = 365;

/// The gets of a part: its reading back after the put, and that before its payments are cleared.
const GETS: u64 = 2;

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
    /// Storage of parts, at first and once they are seldom read; their puts, gets and transitions.
    parts: [Price; 5],
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

/// The cost of a million payments that are sealed, in cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealedCents {
    /// All reads and writes before the sealing.
    pub(crate) life: u64,
    /// Reads and writes of the seal and the clear.
    pub(crate) sealing: u64,
    /// The long-term table, of all years.
    pub(crate) tables: u64,
    /// The parts, of all years, with their puts and gets.
    pub(crate) parts: u64,
}

impl SealedCents {
    pub(crate) fn all(self) -> u64 {
        self.life + self.sealing + self.tables + self.parts
    }
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
        let parts = ["file storage", "archived file storage", "put", "get", "transition"];
        let parts = parts.map(|name| Ok(Price(list.get(name)?.thousandths())));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?.try_into().map_err(|_| anyhow!("five prices"))?;
        let years = lookup.optional::<u64>("YEARS")?;
        given |= years.is_some();
        Ok((Self { writes, reads, storage, recovery, parts, years: years.unwrap_or(5) }, given))
    }

    /// Returns the years for which payments are kept.
    pub(crate) fn years(&self) -> u64 {
        self.years
    }

    /// Returns the cost of a million payments like those of a page.
    pub(crate) fn cents(&self, page: &Measured) -> Cents {
        let stored = page.stored;
        let kept = |bytes: u64, price| kept((bytes, u64::from(PAGE)), self.years * YEAR, price);
        Cents {
            writes: units(page.writes(), self.writes),
            reads: units(page.reads(), self.reads),
            storage: kept(stored.items + stored.entries, self.storage),
            // Indexes are not backed up.
            recovery: kept(stored.items, self.recovery),
        }
    }

    /// Returns the same, if the payments are sealed.
    pub(crate) fn sealed_cents(&self, page: &Measured, sealed: &Sealed) -> SealedCents {
        let (days, part) = (self.years * YEAR, sealed.part);
        let tables = [(page.stored, CLEARED_AFTER), (sealed.stored, days.saturating_sub(CLEARED_AFTER))];
        let tables = tables.map(|(stored, days)| {
            let kept = |bytes: u64, price| kept((bytes, u64::from(PAGE)), days, price);
            kept(stored.items + stored.entries, self.storage) + kept(stored.items, self.recovery)
        });
        let [storage, archived, put, get, transition] = self.parts;
        // A million payments are so many whole parts; a price is of a million calls, in thousandths of a dollar.
        let calls = put.0 + GETS * get.0 + transition.0;
        let calls = nearest(calls * 1_000_000 / part.most_rows.max(1), 1_000_000 * 10);
        let bytes = (part.bytes, part.rows);
        let seldom_read = days.saturating_sub(SEALED_AFTER + part.archived_after);
        SealedCents {
            life: units(page.writes(), self.writes) + units(page.reads(), self.reads),
            sealing: units(sealed.writes, self.writes) + units(sealed.reads, self.reads),
            tables: tables.iter().sum(),
            parts: kept(bytes, part.archived_after, storage) + kept(bytes, seldom_read, archived) + calls,
        }
    }
}

/// From half units of a page and thousandths of a dollar, to the nearest cent of a million payments.
fn units(used: Used, [hot, history]: [Price; 2]) -> u64 {
    nearest(used.hot * hot.0 + used.history * history.0, 2 * u64::from(PAGE) * 10)
}

/// The cost of keeping the bytes of some payments for days, in cents of a million payments: a million times a byte is a
/// thousandth of a GB, and a year has 12 months.
fn kept((bytes, payments): (u64, u64), days: u64, price: Price) -> u64 {
    nearest(bytes * price.0 * 12 * days, payments * 1_000 * 10 * YEAR)
}

fn nearest(amount: u64, scale: u64) -> u64 {
    (amount + scale / 2) / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::{Read, Write};
    use crate::sealed::PartSize;
    use payments_bill::Stored;

    #[test]
    fn a_million_payments_cost_what_one_does_a_million_times() {
        let price = |text: &str| text.parse::<Price>().unwrap();
        let prices = Prices {
            writes: [price("0.625"), price("0.78")],
            reads: [price("0.125"), price("0.155")],
            storage: price("0.1"),
            recovery: price("0.2"),
            parts: ["0.023", "0.004", "5", "0.4", "20"].map(price),
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
        let sealed = Sealed {
            reads: Used { hot: 4 * page, history: 8 * page },
            writes: Used { hot: 0, history: 6 * page },
            stored: Stored { items: 1_000 * page, entries: 500 * page },
            // Two dollars of calls for a million parts, with one payment each.
            part: PartSize { bytes: 1_000, rows: 1, most_rows: 1, archived_after: 60 },
        };
        let life = prices.sealed_cents(&measured, &sealed);
        // 60 days at 0.023 dollars a GB and month, and 1,715 at 0.004.
        assert_eq!((life.sealing, life.parts), (25 + 62 + 234, 5 + 23 + 2_580));
        // 86 days at 0.95 dollars a month, and 1,739 at 0.35.
        assert_eq!((life.life, life.tables), (953, 269 + 2_001));
        assert_eq!(life.all(), 953 + 321 + 2_270 + 2_608);
        assert!("0.0001".parse::<Price>().is_err());
    }
}
