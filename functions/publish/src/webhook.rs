//! The sending of webhooks: one signed POST to an endpoint, over a connection that leads to a public host alone.
//!
//! | module | holds |
//! |---|---|
//! | `sender` | the request, its signature, its limits |
//! | `answer` | the outcome of a request |
//! | `connector` | connections, only to checked addresses |
//! | `network` | name resolution and TCP: the machine's, or a test's |
//! | `tls` | encryption |

mod answer;
mod connector;
mod network;
mod sender;
#[cfg(feature = "aws")]
mod tls;

pub use answer::{Answer, MAX_RETRY_AFTER, SendError};
pub use connector::CONNECT_TIMEOUT;
pub use network::{Encryption, Network, Stream};
pub use sender::{MAX_REPLY_BYTES, REPLY_TIMEOUT, REQUEST_TIMEOUT, Sender};
