//! Webhook endpoints: the settings of their operators, and the deliveries to each.

mod as_text;
pub(crate) mod deliveries;
pub(crate) mod endpoint;
pub(crate) mod operate;
pub(crate) mod state;
