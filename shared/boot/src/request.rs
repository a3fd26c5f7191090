//! The request of a scheduled function.

use serde::{Deserialize, Serialize};

/// A request that names one of a function's actions, such as `{"action":"sweep"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<A> {
    /// The action.
    pub action: A,
}
