//! An item's attributes as the SDK has them, and why they cannot be read.

use std::collections::HashMap;
use std::error::Error;

use aws_sdk_dynamodb::types::AttributeValue;

/// An item of the SDK.
pub type Item = HashMap<String, AttributeValue>;

/// Why an item cannot be read.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;
