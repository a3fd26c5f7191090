//! Imports of almost every journey.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::sync::Arc;

pub use anyhow::{Context as _, Result, bail, ensure};
pub use payments_bank::{Dependencies, Functions};
pub use payments_machine::{Call, Environment, Fate, Recorder};
pub use payments_store::Item;
pub use serde_json::{Value, json};

pub use crate::ask::{Ask, Reply};
pub use crate::asserts::{assert_fails, assert_has};
pub use crate::counting::Counting;
pub use crate::crash_points::{CrashPoints, Way, note_case};
pub use crate::given::move_on;
pub use crate::invocations::{interrupted, invoke, invoke_until};
pub use crate::orders::{entry, failed, order, order_with, processed, with};
pub use crate::tables::{NO_DEADLINE, Units, context, details_key, item, key_of, number, text, units};
pub use crate::world::World;
