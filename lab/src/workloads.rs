//! Workloads: clients, operators, triggers, receivers of webhooks, and what AWS does by itself.

pub(crate) mod amendments;
pub(crate) mod approvals;
pub(crate) mod by_hand;
pub(crate) mod clients;
pub(crate) mod expiry;
pub(crate) mod hostile;
pub(crate) mod limits;
pub(crate) mod log_loss;
pub(crate) mod onset;
pub(crate) mod operator;
pub(crate) mod readers;
pub(crate) mod redates;
pub(crate) mod restored;
pub(crate) mod restores;
pub(crate) mod runbook;
pub(crate) mod triggers;
pub(crate) mod undos;
pub(crate) mod unsendable;
pub(crate) mod webhooks;
