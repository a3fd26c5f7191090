//! Two persons agree on a plan, as the console notes it.

use anyhow::{Result, ensure};
use payments_model::second::{NamedBy, arguments};
use payments_model::{ActionId, ActionName, PlanHash, UtcSecond};
use payments_store::{Approval, AuditIntent, First, Store};

/// Notes at this time that these persons, the first and the second, agreed on an action with these fields, and returns its name.
pub async fn agree(
    store: &Store,
    at: UtcSecond,
    (first, second): (&str, &str),
    (action, fields): (&str, &[(&str, String)]),
) -> Result<ActionName> {
    let (arguments, hash) = (arguments(fields), PlanHash::from_fields(action, fields));
    let named_by = NamedBy { claim: "sub".parse()?, issuer: "https://login.example.com".to_owned() };
    let name = ActionName { previewed_at: at, id: ActionId::derive("agreed", at, &format!("{action}\n{arguments}")) };
    let intent = AuditIntent {
        name,
        at,
        by: format!("o:{first}"),
        subject: None,
        request: "first".to_owned(),
        action: action.to_owned(),
        arguments,
        first: Some(First { person: first.parse()?, named_by: named_by.clone(), hash: hash.clone() }),
    };
    ensure!(store.put_audit_intent(&intent).await?.is_none_or(|known| known == intent), "another intent has the name");
    let approval = Approval {
        name,
        at,
        is_approved: true,
        person: second.parse()?,
        named_by,
        by: format!("o:{second}"),
        hash,
        request: "second".to_owned(),
    };
    ensure!(store.put_approval(&approval).await?.is_none_or(|known| known == approval), "somebody else decided");
    Ok(name)
}
