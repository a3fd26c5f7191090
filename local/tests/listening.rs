//! `cargo local listen` as a process: each signal deletes its endpoint, also while the bank does not answer.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context as _, Result, ensure};

/// The reply of a bank to a request of this kind; `None` leaves it without one.
fn reply(request: &str) -> Option<String> {
    let endpoint = r#"{"id":"x","url":"http://127.0.0.1/","createdAt":"2026-11-20T09:00:00Z","updatedAt":"2026-11-20T09:00:00Z",
        "secretGeneration":1,"status":"enabled","cursor":"1.1.0","segmentsBehind":0,"deliveries":[]}"#;
    let secrets = r#"{"secrets":[{"generation":1,"secret":"whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="}]}"#;
    let (status, body) = match request.split(' ').next()? {
        "PUT" => ("201 Created", endpoint),
        "GET" => ("200 OK", secrets),
        _ => ("200 OK", r#"{"id":"x"}"#),
    };
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

/// Starts a bank that answers, or accepts requests and stays silent. Returns its URL and the requests' first lines.
fn bank(answers: bool) -> Result<(String, Receiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (url, (sends, requests)) = (format!("http://{}", listener.local_addr()?), channel());
    std::thread::spawn(move || {
        let mut silent: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut bytes = vec![0; 16 * 1024];
            let read = stream.read(&mut bytes).unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..read]).into_owned();
            drop(sends.send(request.lines().next().unwrap_or_default().to_owned()));
            match reply(&request).filter(|_| answers) {
                Some(reply) => drop(stream.write_all(reply.as_bytes())),
                None => silent.push(stream),
            }
        }
    });
    Ok((url, requests))
}

/// A running listener, which is killed if a test fails.
struct Program(Child);

impl Program {
    fn start(bank: &str) -> Result<Self> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_local"));
        let program = program.args(["listen", "--bank", bank]).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self(program.spawn()?))
    }

    fn signal(&self, name: &str) -> Result<()> {
        let kill = format!("kill -{name} {}", self.0.id());
        ensure!(Command::new("sh").args(["-c", &kill]).status()?.success(), "{kill} failed");
        Ok(())
    }

    /// Reads the output up to a line with this text.
    fn line_with(&mut self, text: &str) -> Result<()> {
        let mut lines = BufReader::new(self.0.stdout.as_mut().context("no output")?).lines();
        let found = lines.find(|line| line.as_ref().map_or(true, |line| line.contains(text)));
        found.with_context(|| format!("it ended before it said {text}"))?.map(drop).map_err(Into::into)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn each_signal_deletes_the_endpoint() -> Result<()> {
    for name in ["INT", "TERM", "HUP"] {
        let (url, requests) = bank(true)?;
        let mut program = Program::start(&url)?;
        program.line_with("Ctrl-C")?;
        program.signal(name)?;
        let status = program.0.wait()?;
        assert!(status.success(), "{name}: {status}");
        let asked: Vec<String> = requests.try_iter().map(|line| line.chars().take(34).collect()).collect();
        assert_eq!(asked.len(), 3, "{name}: {asked:?}");
        assert!(asked[2].starts_with("DELETE /webhook-endpoints/listen-"), "{name}: {asked:?}");
    }
    Ok(())
}

#[test]
fn a_signal_ends_it_while_the_bank_does_not_answer() -> Result<()> {
    let (url, requests) = bank(false)?;
    let mut program = Program::start(&url)?;
    assert!(requests.recv()?.starts_with("PUT /webhook-endpoints/listen-"));
    program.signal("INT")?;
    program.line_with("Deleting the endpoint listen-")?;
    assert!(requests.recv()?.starts_with("DELETE /webhook-endpoints/listen-"));
    // The next one leaves the endpoint, and waits for nothing.
    program.signal("INT")?;
    let mut told = String::new();
    program.0.stderr.take().context("no errors")?.read_to_string(&mut told)?;
    assert!(!program.0.wait()?.success() && told.contains("the endpoint is still at the bank"), "{told}");
    Ok(())
}
