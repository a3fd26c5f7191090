//! Actions of operators in the console: their ids and names.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::calendar::instant::UtcSecond;

/// The namespace of the ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x51f4_0f0e_0b0e_4c53_9c1d_6d0e_7a94_53c2);

/// An action's id: the version 5 UUID of the request that previewed it, of its time, and of its
/// content. So a confirmation that is sent twice has one id, and two previews have two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(Uuid);

/// Why a text is not the id of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an action's id is a UUID in lower case with hyphens")]
pub struct ActionIdError;

impl ActionId {
    /// Derives the id of the action that the request with this id previewed. The name has the
    /// length of each part, so different parts give different names.
    #[must_use]
    pub fn derive(request_id: &str, at: UtcSecond, what: &str) -> Self {
        let name = format!("{}:{request_id}{at}{}:{what}", request_id.len(), what.len());
        Self(Uuid::new_v5(&NAMESPACE, name.as_bytes()))
    }
}

/// An action's name: the time of its preview, and its id. As a text, `<previewedAt>_<actionId>`, as the console's links name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionName {
    /// The time of its preview.
    pub previewed_at: UtcSecond,
    /// Its id.
    pub id: ActionId,
}

/// Why a text is not the name of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an action's name is the time of its preview and its id, such as 2026-12-01T09:00:00Z_00000000-0000-5000-8000-000000000001; its link in the console's Audit has it"
)]
pub struct ActionNameError;

impl FromStr for ActionName {
    type Err = ActionNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (at, id) = text.split_once('_').ok_or(ActionNameError)?;
        match (at.parse(), id.parse()) {
            (Ok(previewed_at), Ok(id)) => Ok(Self { previewed_at, id }),
            _ => Err(ActionNameError),
        }
    }
}

impl fmt::Display for ActionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.previewed_at, self.id)
    }
}

impl FromStr for ActionId {
    type Err = ActionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = Uuid::try_parse(text).map_err(|_| ActionIdError)?;
        // Ids are parts of keys, so they have one spelling.
        if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(ActionIdError) }
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_one_preview() {
        let at: UtcSecond = "2026-11-25T12:00:00Z".parse().unwrap();
        let later: UtcSecond = "2026-11-25T12:00:01Z".parse().unwrap();
        let id = ActionId::derive("a", at, "cancel");
        assert_eq!(id, ActionId::derive("a", at, "cancel"));
        for other in [("b", at, "cancel"), ("a", later, "cancel"), ("a", at, "start")] {
            assert_ne!(id, ActionId::derive(other.0, other.1, other.2));
        }
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse::<ActionId>(), Err(ActionIdError));
        let name = ActionName { previewed_at: at, id };
        assert_eq!(name.to_string().parse(), Ok(name));
        assert_eq!(id.to_string().parse::<ActionName>(), Err(ActionNameError));
    }
}
