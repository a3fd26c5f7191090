//! The engine in a process of its own: what the functions spend and what the engine spends are told apart,
//! and both sides of a pair meet the same engine.
//!
//! Its data is in a temporary folder: what the embedded engine has in memory, it looks through for each write,
//! the longer the more there is.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_local::Engine;

/// The variable that makes a process of a benchmark the engine.
const ROLE: &str = "PAYMENTS_COMPARE_ENGINE";

/// An engine in another process of this program, until this is dropped.
#[derive(Debug)]
pub struct EngineProcess {
    process: Child,
    url: String,
}

impl EngineProcess {
    /// Starts one. The program has to ask [`served`] first.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut process = Command::new(program).env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut url)?;
        Ok(Self { process, url: url.trim().to_owned() })
    }

    /// Where it answers.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        // It ends when nobody holds its standard input any more.
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the engine's process did not end: {error}");
        }
    }
}

/// Where this process is to be the engine, it is that to its end.
///
/// # Errors
/// Where the engine does not start.
pub fn served() -> Result<bool> {
    if Lookup::environment().text(ROLE).is_none() {
        return Ok(false);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = Engine::scratch().await?;
        println!("{}", engine.url());
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        engine.stop().await
    })?;
    Ok(true)
}
