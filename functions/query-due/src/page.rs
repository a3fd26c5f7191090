//! A page of a list.

use payments_http::{Answer, Problem, Unreadable};
use serde::Serialize;

use crate::function::QueryDue;

/// A page's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<View> {
    pub(crate) payments: Vec<View>,
    pub(crate) next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Unreadable::is_empty")]
    pub(crate) unreadable: Unreadable,
}

impl<View> Page<View> {
    pub(crate) fn new() -> Self {
        Self { payments: Vec::new(), next_cursor: None, unreadable: Unreadable::default() }
    }
}

impl QueryDue {
    /// Answers with a page, and counts the payments that it left out.
    pub(crate) fn page<View: Serialize>(&self, page: &Page<View>) -> Result<Answer, Problem> {
        if !page.unreadable.is_empty() {
            self.metrics.emit(self.clock.instant(), &page.unreadable);
        }
        Answer::json(200, page)
    }
}
