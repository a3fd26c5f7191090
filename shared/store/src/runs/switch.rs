//! The switch, one item of the long-term table: `CONTROL` / `SWITCH`. Without the item, nothing is stopped or held.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{Hold, Switch, SwitchChange};
use serde::{Deserialize, Serialize};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, number, to_item};
use crate::key::control_partition;
use crate::store::Store;

/// The sort key of the switch.
pub(crate) const SWITCH: &str = "SWITCH";

/// The attributes of a switch beside its key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SwitchItem {
    version: u64,
    stopped: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    change: Option<ChangeItem>,
    held_dates: Vec<HoldItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    freed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ChangeItem {
    by: String,
    at: String,
    reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct HoldItem {
    from: String,
    to: String,
    #[serde(flatten)]
    change: ChangeItem,
}

impl From<&SwitchChange> for ChangeItem {
    fn from(change: &SwitchChange) -> Self {
        Self { by: change.by.to_string(), at: change.at.to_string(), reason: change.reason.clone() }
    }
}

impl ChangeItem {
    fn parse(self) -> Result<SwitchChange, Fault> {
        Ok(SwitchChange { by: self.by.parse()?, at: self.at.parse()?, reason: self.reason })
    }
}

impl HoldItem {
    fn parse(self) -> Result<Hold, Fault> {
        Ok(Hold { from: self.from.parse()?, to: self.to.parse()?, change: self.change.parse()? })
    }
}

fn parse(item: Item) -> Result<Switch, Fault> {
    // A switch without an operator and a time is as damaged as one with a wrong time.
    let has_change = ["by", "at", "reason"].iter().any(|name| item.contains_key(*name));
    let SwitchItem { version, stopped, change, held_dates, freed_at, stopped_at } = serde_dynamo::from_item(item)?;
    if change.is_none() && (has_change || stopped) {
        return Err("it does not say who stopped it, when and why".into());
    }
    if version == u64::MAX {
        return Err("its version is the largest number, and no change can follow".into());
    }
    Ok(Switch {
        version,
        stopped,
        change: change.map(ChangeItem::parse).transpose()?,
        holds: held_dates.into_iter().map(HoldItem::parse).collect::<Result<_, _>>()?,
        freed_at: freed_at.map(|at| at.parse()).transpose()?,
        stopped_at: stopped_at.map(|at| at.parse()).transpose()?,
    })
}

fn attributes(switch: &Switch) -> Result<Item, StoreError> {
    let hold = |hold: &Hold| HoldItem {
        from: hold.from.to_string(),
        to: hold.to.to_string(),
        change: ChangeItem::from(&hold.change),
    };
    to_item(&SwitchItem {
        version: switch.version,
        stopped: switch.stopped,
        change: switch.change.as_ref().map(ChangeItem::from),
        held_dates: switch.holds.iter().map(hold).collect(),
        freed_at: switch.freed_at.map(|at| at.to_string()),
        stopped_at: switch.stopped_at.map(|at| at.to_string()),
    })
}

impl Store {
    /// Returns the switch, strongly consistent: 1 read unit for each 4 KB.
    pub async fn switch(&self) -> Result<Switch, StoreError> {
        let (table, key) = (&self.tables.history, item_key(control_partition(), SWITCH.to_owned()));
        let Some(item) = self.get(table, key).await? else { return Ok(Switch::default()) };
        let key = key_of(&item);
        parse(item).map_err(|fault| StoreError::unreadable(table, key, fault))
    }

    /// Changes the switch to `switch`, whose version is one more than that of the switch it was made of: 1 write unit for each KB.
    /// Returns whether it did: another change may have been faster. Attributes that this version does not know stay, and so do
    /// the last stop or resume and the time of the last resume or release: no change takes them away.
    pub async fn change_switch(&self, switch: &Switch) -> Result<bool, StoreError> {
        let item = attributes(switch)?;
        let (assignments, names, values) = equations(&item, ", ");
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(control_partition(), SWITCH.to_owned())))
            .condition_expression("version = :seen OR (attribute_not_exists(pk) AND :seen = :never)")
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .expression_attribute_values(":seen", number(switch.version.saturating_sub(1)))
            .expression_attribute_values(":never", AttributeValue::N("0".to_owned()));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use payments_model::{Actor, MAX_HOLDS, MAX_REASON};

    use super::*;
    use crate::item_bytes;

    fn change(reason: &str) -> SwitchChange {
        let by = Actor::operator(&"a".repeat(38));
        SwitchChange { by, at: "2026-12-01T14:02:00Z".parse().unwrap(), reason: reason.to_owned() }
    }

    fn switch(reason: &str, holds: usize) -> Switch {
        let hold =
            Hold { from: "2026-12-01".parse().unwrap(), to: "2026-12-02".parse().unwrap(), change: change(reason) };
        Switch {
            version: 7,
            stopped: true,
            change: Some(change(reason)),
            holds: vec![hold; holds],
            freed_at: Some("2026-12-01T14:03:00Z".parse().unwrap()),
            stopped_at: Some("2026-12-01T14:02:00Z".parse().unwrap()),
        }
    }

    #[test]
    fn a_switch_is_read_as_it_was_put() {
        for switch in
            [Switch::default(), switch("a wrong feed", 2), Switch { stopped: false, ..switch("it is undone", 0) }]
        {
            assert_eq!(parse(attributes(&switch).unwrap()).unwrap(), switch);
        }
    }

    #[test]
    fn a_damaged_switch_is_unreadable() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        for (name, value) in [
            ("stopped", Some(text("no"))),
            ("stopped", None),
            ("version", Some(text("1"))),
            ("version", Some(number(u64::MAX))),
            ("by", None),
            ("at", Some(text("today"))),
            ("reason", None),
            ("heldDates", Some(AttributeValue::L(vec![text("2026-12-01")]))),
            ("heldDates", None),
            ("freedAt", Some(text(""))),
            ("stoppedAt", Some(text("today"))),
        ] {
            let mut item = attributes(&switch("a wrong feed", 1)).unwrap();
            match value.clone() {
                Some(value) => drop(item.insert(name.to_owned(), value)),
                None => drop(item.remove(name)),
            }
            assert!(parse(item).is_err(), "{name} {value:?}");
        }
    }

    #[test]
    fn a_switch_with_all_holds_takes_at_most_four_read_units_and_usually_one() {
        for (reason, most) in [("a wrong feed of the corporate client", 4), (&*"é".repeat(MAX_REASON), 16)] {
            let bytes = item_bytes(&attributes(&switch(reason, MAX_HOLDS)).unwrap());
            assert!(bytes <= most * 1_024, "{bytes} bytes");
        }
    }
}
