//! The changes of a change set that imports restored tables, and nothing else.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// The types of resources that hold data, keys or users. A replacement would lose them.
const DATA: [&str; 6] =
    ["AWS::DynamoDB::", "AWS::S3::", "AWS::SQS::", "AWS::KMS::", "AWS::Cognito::", "AWS::SecretsManager::"];

/// The changes that a change set must have, and those that it may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExpectedChanges {
    /// The logical ids of the tables that are imported.
    pub(crate) imported: BTreeSet<String>,
    /// The logical ids of the tables that are removed, and kept.
    pub(crate) removed: BTreeSet<String>,
    /// The mappings of their streams, which are replaced.
    pub(crate) replaced: BTreeSet<String>,
}

impl ExpectedChanges {
    /// Returns every change that was not expected, and every missing one.
    pub(crate) fn unexpected(&self, changes: &Value) -> Vec<String> {
        let mut unexpected = Vec::new();
        let mut imported = BTreeSet::new();
        let mut removed = BTreeSet::new();
        for change in changes.as_array().into_iter().flatten().map(|it| &it["ResourceChange"]) {
            let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
            let action = text("Action");
            let id = text("LogicalResourceId");
            let replacement = text("Replacement");
            let is_kept = text("PolicyAction").starts_with("Retain");
            let is_expected = match action.as_str() {
                "Import" => self.imported.contains(&id) && imported.insert(id.clone()),
                "Remove" => is_kept && self.removed.contains(&id) && removed.insert(id.clone()),
                "Modify" => match replacement.as_str() {
                    "" | "False" => true,
                    // A guess of CloudFormation, for each resource that names a changed one.
                    "Conditional" => !DATA.iter().any(|kind| text("ResourceType").starts_with(kind)),
                    _ => self.replaced.contains(&id),
                },
                _ => false,
            };
            if !is_expected {
                let details = [text("ResourceType"), text("PolicyAction"), replacement].join(" ");
                unexpected.push(format!("{action} {id} ({})", details.trim()));
            }
        }
        let missing = self.imported.difference(&imported).map(|id| format!("no Import {id}"));
        unexpected
            .extend(missing.chain(self.removed.difference(&removed).map(|id| format!("no Remove {id}, retained"))));
        unexpected
    }
}

impl fmt::Display for ExpectedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &BTreeSet<String>| ids.iter().cloned().collect::<Vec<_>>().join(", ");
        write!(
            f,
            "an import of {}, a removal of {} that retains it, and no addition, other removal or other replacement",
            list(&self.imported),
            list(&self.removed)
        )
    }
}
