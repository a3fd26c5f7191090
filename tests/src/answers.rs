//! Requests whose answers a test is sure of: reads, refusals, and a list page by page.

use anyhow::{Context as _, Result};

use crate::ask::{Ask, Reply};
use crate::world::World;

impl World {
    /// The answer to a GET of this path, which must succeed.
    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.send(Ask::get(path)).await?.with_status(200).with_context(|| path.to_owned())
    }

    /// Sends a request whose reply must have this status.
    pub async fn answered(&self, ask: Ask, status: i64) -> Result<Reply> {
        self.send(ask.clone()).await?.with_status(status).with_context(|| format!("{ask:?}"))
    }

    /// The payment of an account.
    pub async fn payment(&self, account: &str, payment_id: &str) -> Result<Reply> {
        self.get(&format!("/accounts/{account}/payments/{payment_id}")).await
    }

    /// Sends a request that must be refused with this problem.
    pub async fn refused(&self, ask: Ask, status: i64, problem: &str) -> Result<Reply> {
        self.send(ask.clone()).await?.refused(status, problem).with_context(|| format!("{ask:?}"))
    }

    /// The pages of a list, whose path has a query.
    pub async fn pages(&self, path: &str) -> Result<Vec<Reply>> {
        self.pages_while(path, async |_| Ok(())).await
    }

    /// The same, and after each page but the last something happens.
    pub async fn pages_while(
        &self,
        path: &str,
        mut happens: impl AsyncFnMut(usize) -> Result<()>,
    ) -> Result<Vec<Reply>> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}{cursor}")).await?;
            let next = page.body["nextCursor"].as_str().map(|next| format!("&cursor={next}"));
            pages.push(page);
            let Some(next) = next else { return Ok(pages) };
            cursor = next;
            happens(pages.len() - 1).await?;
        }
    }

    /// The ids of all payments of a list, in its order.
    pub async fn listed(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.pages(path).await?.iter().flat_map(Reply::ids).collect())
    }
}
