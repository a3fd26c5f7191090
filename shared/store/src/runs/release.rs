//! The releases of due dates beyond their limit: `CONTROL` / `RELEASE#<dueDate>` in the long-term table.
//!
//! Releases stand beside the switch, so the functions that obey it can read them, and the console alone puts them.

use payments_model::{BusinessDate, DayLimit, SwitchChange};
use serde::{Deserialize, Serialize};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Fault, item_key, key_of, number, to_item};
use crate::key::control_partition;
use crate::store::Store;

/// The beginning of the sort key of a release.
pub(crate) const RELEASE: &str = "RELEASE#";

/// The release of a due date: its limit is raised to `up_to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayRelease {
    /// The number of the release: 1 for the first of its date.
    pub version: u64,
    /// The number and the sums up to which payments of the date are claimed.
    pub up_to: DayLimit,
    /// The operator, the time and the reason.
    pub change: SwitchChange,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseItem {
    version: u64,
    up_to: String,
    by: String,
    at: String,
    reason: String,
}

impl ReleaseItem {
    fn parse(self) -> Result<DayRelease, Fault> {
        let change = SwitchChange { by: self.by.parse()?, at: self.at.parse()?, reason: self.reason };
        Ok(DayRelease { version: self.version, up_to: self.up_to.parse()?, change })
    }
}

fn release_sort(date: BusinessDate) -> String {
    format!("{RELEASE}{date}")
}

impl Store {
    /// Returns the release of a date, strongly consistent: 1 read unit.
    pub async fn day_release(&self, date: BusinessDate) -> Result<Option<DayRelease>, StoreError> {
        let (table, key) = (&self.tables.history, item_key(control_partition(), release_sort(date)));
        let Some(item) = self.get(table, key).await? else { return Ok(None) };
        let key = key_of(&item);
        let parse = || -> Result<_, Fault> { serde_dynamo::from_item::<_, ReleaseItem>(item)?.parse() };
        parse().map(Some).map_err(|fault| StoreError::unreadable(table, key, fault))
    }

    /// Puts the release of a date in place of the one before, by version: 1 or 2 write units. Returns whether it did.
    pub async fn release_day(&self, date: BusinessDate, release: &DayRelease) -> Result<bool, StoreError> {
        let DayRelease { version, up_to, change } = release;
        let item = to_item(&ReleaseItem {
            version: *version,
            up_to: up_to.to_string(),
            by: change.by.to_string(),
            at: change.at.to_string(),
            reason: change.reason.clone(),
        })?;
        let (assignments, names, values) = equations(&item, ", ");
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(control_partition(), release_sort(date))))
            .condition_expression("version = :seen OR (attribute_not_exists(pk) AND :seen = :never)")
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .expression_attribute_values(":seen", number(version.saturating_sub(1)))
            .expression_attribute_values(":never", number(0));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}
