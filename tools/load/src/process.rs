//! An engine in a process of its own, and the memory of this process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_machine::Engine;

/// The variable that makes a process of a tool the engine.
const ROLE: &str = "PAYMENTS_ENGINE_PROCESS";

/// An engine in another process of this program, until this is dropped. Its time and memory are not this process's.
/// Its data is in a temporary folder: an engine in memory gets slower with its data.
#[derive(Debug)]
pub struct EngineProcess {
    process: Child,
    url: String,
}

impl EngineProcess {
    /// Starts one. The program must call [`served`] first.
    pub fn start() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut process = Command::new(program).env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut url)?;
        Ok(Self { process, url: url.trim().to_owned() })
    }

    /// Returns the URL of the DynamoDB API.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        // The engine ends when its standard input is closed.
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the engine's process did not end: {error}");
        }
    }
}

/// If this process is an [`EngineProcess`], runs the engine to its end and returns true.
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

/// Returns a number of `/proc/self/status`, such as `VmRSS` or `VmHWM`, in KiB.
pub fn memory_kib(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.with_context(|| format!("no {name}"))?.trim().parse().with_context(|| format!("{name} is not a number"))
}
