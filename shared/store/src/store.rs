//! The store: the tables through one client. Each access pattern is a method, in the module of the items it reads.

use aws_sdk_dynamodb::Client;

/// The names of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    /// The hot table.
    pub payments: String,
    /// The long-term table.
    pub history: String,
    /// The log's table.
    pub log: String,
}

/// All tables, reached through one client.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) client: Client,
    pub(crate) tables: TableNames,
}

impl Store {
    /// Creates a store of existing tables.
    pub fn new(client: Client, tables: TableNames) -> Self {
        Self { client, tables }
    }

    /// The names of the tables, for log lines about their items.
    pub fn tables(&self) -> &TableNames {
        &self.tables
    }
}
