//! The layer that makes reads show the past: indexes lag, and reads without consistency are a moment behind.
//!
//! The embedded engine lacks that. The past comes from the changes of the hot table: an answer is made older by undoing
//! the changes since then. The long-term table has no stream.

mod changes;
mod past;

use std::sync::Arc;

use async_trait::async_trait;
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::call::{Answer, Call, Layer, Next, WRITES, names};

pub use changes::{Change, Changes};
pub use past::{Past, Read};

type Age = dyn Fn(Read<'_>, &mut Value) -> bool + Send + Sync;

/// The layer. It reads the changes of the hot table, and makes each answer as old as `age` says.
#[derive(Clone)]
pub struct Lag {
    changes: Changes,
    age: Arc<Age>,
}

impl Lag {
    /// Creates a layer. `age` returns whether it changed an answer.
    pub fn new(changes: &Changes, age: impl Fn(Read<'_>, &mut Value) -> bool + Send + Sync + 'static) -> Self {
        Self { changes: changes.clone(), age: Arc::new(age) }
    }
}

#[async_trait]
impl Layer for Lag {
    async fn carry(&self, call: Call, next: Next) -> Answer {
        let (operation, input) = (call.operation.clone(), call.shared_input());
        let mut reply = next.send(call).await?;
        if reply.status != 200 {
            return Ok(reply);
        }
        if !WRITES.contains(&operation.as_str()) {
            reply.change(|answer| (self.age)((&operation, &input), answer));
        } else if names(&input, self.changes.table()) {
            self.changes.follow().map_err(|error| ConnectorError::other(error.into(), None))?;
        }
        Ok(reply)
    }
}
