//! Actions of operators: the audit trail, and the decisions of second persons.

pub(crate) mod approval;
pub(crate) mod asked;
pub(crate) mod trail;
