//! `cargo local` as a process: Ctrl-C and SIGTERM end it, and the second of them at once.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// Longer than a program takes to end at once, and shorter than a half-sent request may take.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A running program, which is killed if a test fails.
struct Program {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    api: String,
    _reports: TempDir,
}

impl Program {
    /// Starts the program and waits until it is ready.
    fn start() -> Result<Self> {
        let reports = tempfile::tempdir()?;
        let mut process = Command::new(env!("CARGO_BIN_EXE_local"))
            .args(["--api-port", "0", "--dynamodb-port", "0", "--reports"])
            .arg(reports.path())
            .env_remove("DYNAMODB_ENDPOINT")
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let mut program = Self { process, lines, api: String::new(), _reports: reports };
        let line = program.line_with("HTTP API")?;
        program.api =
            line.split("http://").nth(1).and_then(|url| url.split(' ').next()).context(line.clone())?.to_owned();
        program.line_with("Ctrl-C stops it")?;
        Ok(program)
    }

    /// Returns the next line that contains a text.
    fn line_with(&mut self, text: &str) -> Result<String> {
        loop {
            let line = self.lines.next().with_context(|| format!("it ended before it said {text}"))??;
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    fn signal(&self, name: &str) -> Result<()> {
        let kill = format!("kill -{name} {}", self.process.id());
        ensure!(Command::new("sh").args(["-c", &kill]).status()?.success(), "{kill} failed");
        Ok(())
    }

    /// Returns the status of a program that ends at once.
    fn ended(&mut self) -> Result<ExitStatus> {
        let step = Duration::from_millis(20);
        let mut waited = Duration::ZERO;
        while waited < AT_ONCE {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(step);
            waited += step;
        }
        anyhow::bail!("it still runs after {AT_ONCE:?}")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn either_signal_ends_it() -> Result<()> {
    for name in ["INT", "TERM"] {
        let mut program = Program::start()?;
        program.signal(name)?;
        let status = program.ended()?;
        assert!(status.success(), "{name}: {status}");
    }
    Ok(())
}

#[test]
fn a_second_signal_ends_it_at_once() -> Result<()> {
    for name in ["INT", "TERM"] {
        let mut program = Program::start()?;
        let mut client = TcpStream::connect(&program.api)?;
        client.write_all(b"POST /payment-batches HTTP/1.1\r\nHost: 127.0.0.1\r\n")?;
        // Once another client is answered, the half-sent request has arrived.
        let mut other = TcpStream::connect(&program.api)?;
        other.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        other.read_to_end(&mut Vec::new())?;
        program.signal("INT")?;
        program.line_with("Stopping")?;
        program.signal(name)?;
        let status = program.ended()?;
        assert_eq!(status.code(), Some(130), "{name}: {status}");
    }
    Ok(())
}
