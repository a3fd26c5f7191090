//! The programs that are deployed, under Lambda's own emulator: each event file is delivered to the
//! function's bootstrap, which has to answer as its handler does in process, to the byte. And a
//! bootstrap that lacks a variable says which.
//!
//! Three things differ, each under a rule with a name: the machine's time in metrics and the order of
//! messages that come again (`payments_tests::trigger_events`), which are not written down in process
//! either, and how Lambda's runtime words a refusal (`events::answered`). All else is equal because it
//! begins equal: the bank is prepared by the same code, the variables are those that the template
//! names, and the bootstrap's clock stands still where the simulated one stands.

mod cold;
mod deployed;
mod events;
mod requests;
mod sandbox;
mod starts;
mod tools;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Failed, Trial};

/// The longest one trial may take; a recount that finds drift waits for ten seconds.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<ExitCode> {
    let Some(tools) = tools::Tools::find()? else {
        eprintln!("SKIPPED: the bootstraps under Lambda's emulator. {}", tools::WANTED);
        return Ok(ExitCode::SUCCESS);
    };
    if cold::measure(&tools)? {
        return Ok(ExitCode::SUCCESS);
    }
    let tools = Arc::new(tools);
    let mut trials = events::trials(&tools)?;
    trials.append(&mut starts::trials(&tools)?);
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}

/// A trial with a runtime of its own, and not for ever.
fn trial<Work>(name: String, work: impl FnOnce() -> Work + Send + 'static) -> Trial
where
    Work: Future<Output = Result<()>>,
{
    let in_time = async move |work| tokio::time::timeout(LIMIT, work).await.context("it takes too long")?;
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(in_time(work())).map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
    })
}
