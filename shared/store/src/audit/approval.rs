//! Decisions of second persons on actions: approved or refused, once for each action.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | decision | `APPROVAL#<YYYY-MM>` | `<previewedAt>#<actionId>` |
//!
//! A decision is put if it is absent, and nobody may change or delete it. The console's role alone
//! may put it. The month is that of the action's preview, as in the audit trail.

use payments_model::second::NamedBy;
use payments_model::{ActionName, Person, PlanHash, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, text_of, to_item};
use crate::key::audit::{AuditMonth, approval_partition, audit_sort, parse_audit_sort};
use crate::store::Store;

/// The decision of a second person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The action's name.
    pub name: ActionName,
    /// The time of the decision.
    pub at: UtcSecond,
    /// Whether the second person approved the action.
    pub is_approved: bool,
    /// The second person, by the claim of persons.
    pub person: Person,
    /// The claim, and the issuer of the token.
    pub named_by: NamedBy,
    /// The second person, as the audit trail names operators.
    pub by: String,
    /// The hash of the plan that the second person saw.
    pub hash: PlanHash,
    /// The request that decided: a repeated request finds it.
    pub request: String,
}

/// The attributes of a decision beside its key.
#[derive(Debug, Serialize, Deserialize)]
struct ApprovalItem {
    at: String,
    decision: Decision,
    person: String,
    claim: String,
    issuer: String,
    by: String,
    hash: String,
    request: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Approved,
    Refused,
}

impl Store {
    /// Writes a decision, unless the action has one, which then stays and is returned: 1 write unit.
    pub async fn put_approval(&self, approval: &Approval) -> Result<Option<Approval>, StoreError> {
        let Approval { name, at, is_approved, person, named_by, by, hash, request } = approval.clone();
        let NamedBy { claim, issuer } = named_by;
        let decision = if is_approved { Decision::Approved } else { Decision::Refused };
        let at = at.to_string();
        let (person, hash) = (person.to_string(), hash.to_string());
        let claim = claim.to_string();
        let mut item = approval_key(name);
        item.extend(to_item(&ApprovalItem { at, decision, person, claim, issuer, by, hash, request })?);
        let existing = self.put_if_absent(&self.tables.history, item).await?;
        existing.map(|item| self.parse_approval(item)).transpose()
    }

    /// Returns the decision on an action, strongly consistent: 1 read unit.
    pub async fn approval(&self, name: ActionName) -> Result<Option<Approval>, StoreError> {
        let item = self.get(&self.tables.history, approval_key(name)).await?;
        item.map(|item| self.parse_approval(item)).transpose()
    }

    fn parse_approval(&self, item: Item) -> Result<Approval, StoreError> {
        let key = key_of(&item);
        parse(item).map_err(|fault| StoreError::unreadable(&self.tables.history, key, fault))
    }
}

fn approval_key(name: ActionName) -> Item {
    item_key(approval_partition(&AuditMonth::from_second(name.previewed_at)), audit_sort(name))
}

fn parse(item: Item) -> Result<Approval, Fault> {
    let (name, _) = parse_audit_sort(text_of(&item, "sk"))?;
    let ApprovalItem { at, decision, person, claim, issuer, by, hash, request } = serde_dynamo::from_item(item)?;
    let is_approved = matches!(decision, Decision::Approved);
    let (person, hash) = (person.parse()?, hash.parse()?);
    let at = at.parse()?;
    Ok(Approval {
        name,
        at,
        is_approved,
        person,
        named_by: NamedBy { claim: claim.parse()?, issuer },
        by,
        hash,
        request,
    })
}
