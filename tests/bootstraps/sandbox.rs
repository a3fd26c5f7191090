//! A Lambda sandbox: AWS's Runtime Interface Emulator with one bootstrap, on its own address, with a clock that
//! stands still.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::Clock;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::tools::Tools;

static SANDBOXES: AtomicU32 = AtomicU32::new(0);

/// The path of an invocation; the function's name does not matter.
const INVOKE: &str = "/2015-03-31/functions/function/invocations";

/// Runs the emulator until standard input ends, which happens when this process ends.
const GUARDED: &str = r#""$@" </dev/null & read -r _; kill -KILL $!"#;

/// Runs a bootstrap that writes to a file: the emulator may answer before it has passed on all output.
const TO_FILE: &str = r#"exec "$0" >"$1" 2>&1"#;

/// The function's name: the one in the metrics of handlers in process.
const FUNCTION_NAME: &str = "captured";

/// The shortest time that the emulator, whose clock is the machine's, gives an invocation.
const LEAST: TimeDelta = TimeDelta::minutes(1);

/// The most time that a sandbox may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running emulator, which ends when this is dropped. Its bootstrap then ends by itself.
#[derive(Debug)]
pub(crate) struct Sandbox {
    guard: Child,
    invoke: SocketAddr,
    folder: TempDir,
}

/// The emulator's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 200, even if the function failed; 502 if there was no function.
    pub(crate) status: u16,
    /// The function's answer, or the runtime's answer about its failure.
    pub(crate) body: String,
}

/// The arrival of an event, and the deadline of its invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now: DateTime<Utc>,
    pub(crate) deadline: DateTime<Utc>,
}

impl Sandbox {
    /// Starts an emulator with an empty environment, so that the bootstrap has `variables` and what Lambda adds, and
    /// no more.
    pub(crate) async fn start(
        tools: &Tools,
        bootstrap: &Path,
        times: Times,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self> {
        // Each has its own address, so that no other sandbox or connection has the port.
        let (process, number) = (std::process::id(), SANDBOXES.fetch_add(1, Ordering::Relaxed));
        let [.., third, fourth] = (number + 256).to_be_bytes();
        let own = Ipv4Addr::new(127, u8::try_from(process % 250)? + 2, third, fourth);
        let [invoke, runtime] = free(own)?;
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", GUARDED, "sh"])
            .arg(&tools.emulator)
            .args(["--runtime-interface-emulator-address", &invoke.to_string()])
            .args(["--runtime-api-address", &runtime.to_string()])
            .args(["/bin/sh", "-c", TO_FILE])
            .args([bootstrap, &folder.path().join("said")])
            .current_dir(folder.path())
            .env_clear()
            .envs(of_lambda(times)?)
            .env("LD_PRELOAD", &tools.clock)
            .env("FAKETIME", times.now.format("%Y-%m-%d %H:%M:%S").to_string())
            .env("DONT_FAKE_MONOTONIC", "1")
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(File::create(folder.path().join("stdout"))?)
            .stderr(File::create(folder.path().join("stderr"))?);
        let sandbox = Self { guard: command.spawn()?, invoke, folder };
        sandbox.listens().await?;
        Ok(sandbox)
    }

    /// Waits until the emulator accepts connections.
    async fn listens(&self) -> Result<()> {
        let step = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        while TcpStream::connect(self.invoke).await.is_err() {
            ensure!(waited < START_TIMEOUT, "the emulator does not listen: {}", self.read("stderr")?);
            tokio::time::sleep(step).await;
            waited += step;
        }
        Ok(())
    }

    /// Delivers an event over HTTP/1.0, so that the reply ends with the connection.
    pub(crate) async fn invoke(&self, event: &str) -> Result<Answer> {
        let mut stream = TcpStream::connect(self.invoke).await?;
        let head = format!("POST {INVOKE} HTTP/1.0\r\nContent-Length: {}\r\n\r\n", event.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(event.as_bytes()).await?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await?;
        let (head, body) = reply.split_once("\r\n\r\n").with_context(|| format!("not HTTP: {reply}"))?;
        let status = head.split(' ').nth(1).with_context(|| format!("no status: {head}"))?.parse()?;
        Ok(Answer { status, body: body.to_owned() })
    }

    /// Returns the bootstrap's standard output and standard error.
    pub(crate) fn said(&self) -> Result<String> {
        self.read("said")
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.folder.path().join(file);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}

/// The variables that Lambda sets. The emulator measures an invocation on the machine's clock, so its timeout is the
/// time from that clock's now to the deadline: the bootstrap, whose clock shows another time, gets exactly the
/// deadline.
fn of_lambda(times: Times) -> Result<BTreeMap<&'static str, String>> {
    let seconds = (times.deadline - Clock::system().instant()).max(LEAST).num_seconds();
    Ok(BTreeMap::from([
        ("AWS_LAMBDA_FUNCTION_NAME", FUNCTION_NAME.to_owned()),
        ("AWS_LAMBDA_FUNCTION_TIMEOUT", seconds.to_string()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("TZ", ":UTC".to_owned()),
    ]))
}

/// Returns an address with two free ports. Both are held until both are known, or they could be the same.
fn free(own: Ipv4Addr) -> Result<[SocketAddr; 2]> {
    let bind = || TcpListener::bind((own, 0)).with_context(|| format!("{own} is not an address of this machine"));
    let (first, second) = (bind()?, bind()?);
    Ok([first.local_addr()?, second.local_addr()?])
}
