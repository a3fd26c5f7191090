//! A trial of libtest-mimic that runs async work.

use std::time::Duration;

use anyhow::{Context as _, Result};
use libtest_mimic::{Failed, Trial};

/// The timeout of a trial; a recount that finds drift pauses for ten seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// A trial with its own runtime and a timeout.
pub(crate) fn trial<Work>(name: String, work: impl FnOnce() -> Work + Send + 'static) -> Trial
where
    Work: Future<Output = Result<()>>,
{
    let in_time = async move |work| tokio::time::timeout(LIMIT, work).await.context("it takes too long")?;
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(in_time(work())).map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
    })
}
