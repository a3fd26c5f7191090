//! Webhooks: endpoints' ids, URLs and secrets, signatures, and the addresses that requests may go to.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | the test for global IP addresses |
//! | [`endpoint_id`] | ids of endpoints |
//! | [`endpoint_url`] | URLs of endpoints |
//! | [`message_id`] | ids of messages |
//! | [`secret`] | secrets, and their signatures |

pub mod address;
pub mod endpoint_id;
pub mod endpoint_url;
pub mod message_id;
pub mod secret;

pub use address::is_global;
pub use endpoint_id::{EndpointId, EndpointIdError};
pub use endpoint_url::{EndpointUrl, EndpointUrlError, MAX_URL_CHARS};
pub use message_id::{MessageId, MessageIdError};
pub use secret::{EndpointSecret, MasterSecret, MasterSecretError, SecretGeneration};
