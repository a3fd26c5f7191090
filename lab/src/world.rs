//! The world around the functions: the bank, its network, Lambda, queues, files, stream, metrics and alarms.

pub(crate) mod alarms;
pub(crate) mod bank;
pub(crate) mod by_hand_log;
pub(crate) mod files;
pub(crate) mod lag;
pub(crate) mod lambda;
pub(crate) mod metrics;
pub(crate) mod network;
pub mod receivers;
pub mod sqs;
pub(crate) mod stream;
pub(crate) mod template;
