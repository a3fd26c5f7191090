//! Changes by hand: an operator corrects them, and the checker leaves them out.

use std::collections::BTreeSet;
use std::ops::Range;

use payments_machine::layers::attributes::Key;
use serde_json::Value;

use crate::plans::outages::Outage;

/// The changes by hand.
#[derive(Debug, Default, Clone)]
pub(crate) struct ByHand {
    /// The current damages.
    pub(crate) damages: Vec<Damage>,
    /// The places of these changes among all changes.
    pub(crate) places: BTreeSet<usize>,
    /// The payments that the transaction service refused, because no request can be made of them.
    pub(crate) refused: BTreeSet<String>,
    /// The places from when a table was lost to when it was restored.
    pub(crate) restored: Option<Range<usize>>,
}

impl ByHand {
    /// Whether no function made the change at a place.
    pub(crate) fn made(&self, place: usize) -> bool {
        self.places.contains(&place) || self.restored.as_ref().is_some_and(|range| range.contains(&place))
    }
}

/// An attribute that was damaged.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    pub(crate) key: Key,
    pub(crate) attribute: &'static str,
    pub(crate) original: Value,
    /// The outage that it belongs to.
    pub(crate) outage: Outage,
}
