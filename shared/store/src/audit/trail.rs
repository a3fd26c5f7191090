//! The audit trail: actions of operators in the console and on webhook endpoints, with their outcomes.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | intent | `AUDIT#<YYYY-MM>` | `<previewedAt>#<actionId>` |
//! | outcome | `AUDIT#<YYYY-MM>` | `<previewedAt>#<actionId>#outcome` |
//!
//! Both are put only if they are absent. Only this code protects them: a put can replace an item,
//! and no role can forbid that. An intent without an outcome may have happened.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::second::NamedBy;
use payments_model::{ActionName, Person, PlanHash, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, failed};
use crate::item::{Fault, Item, item_key, key_of, text_of};
use crate::key::audit::{AuditMonth, audit_outcome_sort, audit_partition, audit_sort, parse_audit_sort};
use crate::store::Store;

/// An operator's intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditIntent {
    /// The action's name.
    pub name: ActionName,
    /// The time of its confirmation.
    pub at: UtcSecond,
    /// The operator who confirmed it, as the trails of payments name callers.
    pub by: String,
    /// The person of the token, if the token names one.
    pub subject: Option<String>,
    /// The request that confirmed it: a repeated request finds it.
    pub request: String,
    /// The name of the action.
    pub action: String,
    /// The arguments of the action, each `name: value` on a line.
    pub arguments: String,
    /// The first of two persons, if the action needs a second one.
    pub first: Option<First>,
}

/// The first of two persons, and the plan for which a second one is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    /// The person, by the claim of persons.
    pub person: Person,
    /// The claim, and the issuer of the token.
    pub named_by: NamedBy,
    /// The hash of the plan.
    pub hash: PlanHash,
}

impl AuditIntent {
    /// Whether both are the same action of one preview, in whichever request.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let Self { at, request, .. } = self.clone();
        self == &Self { at, request, ..other.clone() }
    }
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOutcome {
    /// The time at which it was written.
    pub at: UtcSecond,
    /// The results, one on each line.
    pub result: String,
    /// The second person who approved or refused it, as the trail names operators.
    pub second: Option<String>,
}

/// An action in the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The intent.
    pub intent: AuditIntent,
    /// The outcome; without one, the action may have happened.
    pub outcome: Option<AuditOutcome>,
}

/// A page of the trail.
#[derive(Debug)]
pub struct AuditPage {
    /// The entries, the newest first. An unreadable entry is an error in its place.
    pub entries: Vec<Result<AuditEntry, StoreError>>,
    /// The start of the next page, if there may be more.
    pub next: Option<ActionName>,
}

/// The attributes of an intent beside its key.
#[derive(Debug, Serialize, Deserialize)]
struct IntentItem {
    at: String,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    request: String,
    action: String,
    arguments: String,
    #[serde(flatten)]
    first: Option<FirstItem>,
}

/// The attributes of an intent that needs a second person.
#[derive(Debug, Serialize, Deserialize)]
struct FirstItem {
    needs: Needs,
    person: String,
    claim: String,
    issuer: String,
    hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Needs {
    Second,
}

/// The attributes of an outcome beside its key.
#[derive(Debug, Serialize, Deserialize)]
struct OutcomeItem {
    at: String,
    result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<String>,
}

impl Store {
    /// Writes an intent, unless the action has one: 1 write unit for each KB. Returns the existing intent, if any.
    pub async fn put_audit_intent(&self, intent: &AuditIntent) -> Result<Option<AuditIntent>, StoreError> {
        let AuditIntent { name, at, by, subject, request, action, arguments, first } = intent.clone();
        let first = first.map(|First { person, named_by: NamedBy { claim, issuer }, hash }| FirstItem {
            needs: Needs::Second,
            person: person.to_string(),
            claim: claim.to_string(),
            issuer,
            hash: hash.to_string(),
        });
        let attributes = IntentItem { at: at.to_string(), by, subject, request, action, arguments, first };
        let mut item = item_key(audit_partition(&AuditMonth::from_second(name.previewed_at)), audit_sort(name));
        item.extend(self.audit_attributes(&attributes)?);
        let existing = self.put_if_absent(&self.tables.history, item).await?;
        existing.map(|item| self.parse_audit(item, parse_intent)).transpose()
    }

    /// Writes an outcome, unless the action has one, which then stays and is returned: 1 write unit for each KB.
    pub async fn put_audit_outcome(
        &self,
        name: ActionName,
        outcome: &AuditOutcome,
    ) -> Result<Option<AuditOutcome>, StoreError> {
        let AuditOutcome { at, result, second } = outcome.clone();
        let attributes = OutcomeItem { at: at.to_string(), result, second };
        let mut item = item_key(audit_partition(&AuditMonth::from_second(name.previewed_at)), audit_outcome_sort(name));
        item.extend(self.audit_attributes(&attributes)?);
        let existing = self.put_if_absent(&self.tables.history, item).await?;
        existing.map(|item| self.parse_audit(item, parse_outcome)).transpose()
    }

    /// Returns an action's intent, strongly consistent: 1 read unit for each 4 KB.
    pub(crate) async fn audit_intent(&self, name: ActionName) -> Result<Option<AuditIntent>, StoreError> {
        let key = item_key(audit_partition(&AuditMonth::from_second(name.previewed_at)), audit_sort(name));
        let item = self.get(&self.tables.history, key).await?;
        item.map(|item| self.parse_audit(item, parse_intent)).transpose()
    }

    /// Returns the trail's entry of an action, strongly consistent: 1 read unit for each 4 KB.
    pub async fn audit_entry(&self, name: ActionName) -> Result<Option<AuditEntry>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.history)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(
                ":pk",
                AttributeValue::S(audit_partition(&AuditMonth::from_second(name.previewed_at))),
            )
            .expression_attribute_values(":from", AttributeValue::S(audit_sort(name)))
            .expression_attribute_values(":to", AttributeValue::S(audit_outcome_sort(name)));
        let items = query.send().await.map_err(failed("Query"))?.items.unwrap_or_default();
        self.audit_entries(items).pop().map(|(_, entry)| entry).transpose()
    }

    /// Returns the actions of a month before `before`, the newest first: strongly consistent, 1 read unit for each 4
    /// KB. The call reads `most` items and at most a megabyte, and an action has two items.
    pub async fn audit_page(
        &self,
        month: &AuditMonth,
        before: Option<ActionName>,
        most: u16,
    ) -> Result<AuditPage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.history)
            .scan_index_forward(false)
            .consistent_read(true)
            .limit(most.into())
            .key_condition_expression("pk = :pk AND sk < :before")
            .expression_attribute_values(":pk", AttributeValue::S(audit_partition(month)))
            // Every sort key begins with a digit.
            .expression_attribute_values(":before", AttributeValue::S(before.map_or("~".to_owned(), audit_sort)));
        let answer = query.send().await.map_err(failed("Query"))?;
        let (mut items, more) = (answer.items.unwrap_or_default(), answer.last_evaluated_key.is_some());
        // An outcome comes before its intent here. If the intent is not on this page, both are on the next one.
        if more && items.len() > 1 && items.last().is_some_and(|item| text_of(item, "sk").ends_with("#outcome")) {
            items.pop();
        }
        let last = items.last().and_then(|item| parse_audit_sort(text_of(item, "sk")).ok());
        let mut entries = self.audit_entries(items);
        entries.reverse();
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        Ok(AuditPage { entries, next: last.map(|(name, _)| name).filter(|_| more) })
    }

    /// Returns the actions of a month that were previewed at `from` or later, the newest first: 1 read unit for each 8 KB.
    /// The call reads at most a megabyte; also returns whether that was all.
    pub async fn audit_since(
        &self,
        month: &AuditMonth,
        from: UtcSecond,
    ) -> Result<(Vec<Result<AuditEntry, StoreError>>, bool), StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.history)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk AND sk >= :from")
            .expression_attribute_values(":pk", AttributeValue::S(audit_partition(month)))
            .expression_attribute_values(":from", AttributeValue::S(from.to_string()));
        let answer = query.send().await.map_err(failed("Query"))?;
        let is_all = answer.last_evaluated_key.is_none();
        let mut entries = self.audit_entries(answer.items.unwrap_or_default());
        entries.reverse();
        Ok((entries.into_iter().map(|(_, entry)| entry).collect(), is_all))
    }

    /// The actions of these items, by their keys.
    fn audit_entries(&self, items: Vec<Item>) -> Vec<(String, Result<AuditEntry, StoreError>)> {
        let (mut intents, mut outcomes) = (BTreeMap::new(), BTreeMap::new());
        for item in items {
            let sort = text_of(&item, "sk").to_owned();
            match sort.strip_suffix("#outcome") {
                Some(intent) => {
                    outcomes.insert(intent.to_owned(), self.parse_audit(item, parse_outcome));
                }
                None => {
                    intents.insert(sort, self.parse_audit(item, parse_intent));
                }
            }
        }
        let entry = |(sort, intent): (String, Result<AuditIntent, StoreError>)| {
            let outcome = outcomes.remove(&sort).transpose();
            (sort, intent.and_then(|intent| Ok(AuditEntry { intent, outcome: outcome? })))
        };
        intents.into_iter().map(entry).collect()
    }

    fn audit_attributes(&self, attributes: &impl Serialize) -> Result<Item, StoreError> {
        serde_dynamo::to_item(attributes).map_err(|error| StoreError::unreadable(&self.tables.history, "(new)", error))
    }

    fn parse_audit<T>(&self, item: Item, parse: impl FnOnce(Item) -> Result<T, Fault>) -> Result<T, StoreError> {
        let key = key_of(&item);
        parse(item).map_err(|fault| StoreError::unreadable(&self.tables.history, key, fault))
    }
}

fn parse_intent(item: Item) -> Result<AuditIntent, Fault> {
    let (name, _) = parse_audit_sort(text_of(&item, "sk"))?;
    let has_first = item.contains_key("needs");
    let IntentItem { at, by, subject, request, action, arguments, first } = serde_dynamo::from_item(item)?;
    // Serde leaves a flattened part out if it cannot be read. Such an intent would need one person.
    if has_first && first.is_none() {
        return Err("the second person whom it needs cannot be read".into());
    }
    let first = first.map(|FirstItem { person, claim, issuer, hash, .. }| -> Result<First, Fault> {
        let named_by = NamedBy { claim: claim.parse()?, issuer };
        Ok(First { person: person.parse()?, named_by, hash: hash.parse()? })
    });
    let first = first.transpose()?;
    Ok(AuditIntent { name, at: at.parse()?, by, subject, request, action, arguments, first })
}

fn parse_outcome(item: Item) -> Result<AuditOutcome, Fault> {
    let OutcomeItem { at, result, second } = serde_dynamo::from_item(item)?;
    Ok(AuditOutcome { at: at.parse()?, result, second })
}
