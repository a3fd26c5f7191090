//! Receivers of webhooks, in memory: a network whose hosts are ports of this machine, and what each of them answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use payments_machine::environment::webhook_master;
use publish::Webhooks;
use publish::webhook::{Network, Sender, Stream};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::sleep;

/// The number of times that a receiver yields before it answers, so that requests that can overlap do.
const PAUSES: usize = 20;

/// The reaction of a receiver to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Answers with this status.
    Status(u16),
    /// Answers with this status and `Retry-After` in seconds.
    RetryAfter(u16, u32),
    /// Answers with 500, but only after [`Receivers::release`].
    Hang,
    /// Takes the message at once, and answers with 200 after this time.
    Slow(Duration),
    /// Takes the message, and ends the connection without an answer.
    Lost,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The receiver's port.
    pub port: u16,
    /// The message's id.
    pub id: String,
    /// The signatures.
    pub signatures: String,
    /// Its events.
    pub events: Vec<Value>,
    /// Whether it was accepted.
    pub is_accepted: bool,
    /// Whether the receiver took its events, and told the sender or not.
    pub is_taken: bool,
}

type React = dyn Fn(&Message) -> Reaction + Send + Sync;

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    reactions: BTreeMap<u16, Arc<React>>,
    /// The messages that are not answered yet.
    open: Vec<Message>,
    /// Payments that were in two messages to one receiver at the same time.
    overlaps: Vec<String>,
}

/// All receivers. Clones are the same.
#[derive(Clone, Default)]
pub struct Receivers {
    state: Arc<Mutex<State>>,
    released: Arc<Notify>,
}

impl fmt::Debug for Receivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receivers")
    }
}

impl Receivers {
    /// Returns the sender of webhooks to these receivers, with its secret.
    ///
    /// # Errors
    /// Only if the fixed master secret is invalid.
    pub fn webhooks(&self) -> Result<Webhooks> {
        let sender = Arc::new(Sender::loopback_over(Arc::new(self.clone())));
        Ok(Webhooks { sender, master: webhook_master()?, clock: None })
    }

    /// Sets the reaction of a receiver. A receiver without one answers 200.
    pub fn react(&self, port: u16, react: impl Fn(&Message) -> Reaction + Send + Sync + 'static) {
        self.state().reactions.insert(port, Arc::new(react));
    }

    /// Releases the receivers that hang.
    pub fn release(&self) {
        self.released.notify_waiters();
    }

    /// The messages that a receiver got.
    pub fn messages(&self, port: u16) -> Vec<Message> {
        self.state().messages.iter().filter(|message| message.port == port).cloned().collect()
    }

    /// The events that a receiver accepted, with repetitions.
    pub fn events(&self, port: u16) -> Vec<Value> {
        let accepted = self.messages(port).into_iter().filter(|message| message.is_accepted);
        accepted.flat_map(|message| message.events).collect()
    }

    /// The events that a receiver took, without repetitions, as they came first.
    pub fn taken(&self, port: u16) -> Vec<Value> {
        let (state, mut ids) = (self.state(), BTreeSet::new());
        let taken = state.messages.iter().filter(|message| message.port == port && message.is_taken);
        let events = taken.flat_map(|message| &message.events);
        events.filter(|event| ids.insert(event["id"].to_string())).cloned().collect()
    }

    /// Waits until every message is answered.
    pub async fn settle(&self) {
        while !self.state().open.is_empty() {
            yield_now().await;
        }
    }

    /// Judges what a receiver took, as [`judge_taken`](Self::judge_taken) does.
    ///
    /// # Errors
    /// If it is otherwise.
    pub fn judge(&self, port: u16, wanted: &[Value]) -> Result<()> {
        self.judge_taken(&self.taken(port), wanted)
    }

    /// Judges what a receiver took, or a part of it: all of these events, the first time in the order of each payment's versions, and no payment in two
    /// messages at the same time.
    ///
    /// # Errors
    /// If it is otherwise.
    pub fn judge_taken(&self, taken: &[Value], wanted: &[Value]) -> Result<()> {
        {
            let state = self.state();
            ensure!(state.overlaps.is_empty(), "sent at the same time: {:?}", state.overlaps);
            let mut known = BTreeMap::new();
            for Message { port, id, events, .. } in &state.messages {
                // A receiver ignores a message whose id it has handled.
                ensure!(known.entry((port, id)).or_insert(events) == &events, "{id} is the id of two messages");
            }
        }
        let of = |events: &[Value]| {
            let mut versions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for event in events {
                let payment = event["paymentId"].as_str().unwrap_or_default().to_owned();
                versions.entry(payment).or_default().push(event.clone());
            }
            versions
        };
        let (mut found, wanted) = (of(taken), of(wanted));
        for (payment, wanted) in wanted {
            let found = found.remove(&payment).unwrap_or_default();
            let ids = |events: &[Value]| events.iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
            let (taken, logged) = (ids(&found), ids(&wanted));
            ensure!(taken == logged, "of {payment:?} the receiver took {taken:?}, but the log has {logged:?}");
            let other = found.iter().zip(&wanted).find(|(taken, logged)| taken != logged);
            ensure!(other.is_none(), "the receiver took another event than the log has: {other:?}");
        }
        ensure!(found.is_empty(), "the receiver took what is not in the log: {found:?}");
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, port: u16, mut stream: DuplexStream) -> Result<()> {
        let mut buffer = Vec::new();
        while let Some(mut message) = read(port, &mut stream, &mut buffer).await? {
            let react = {
                let mut state = self.state();
                let payments = |message: &Message| -> Vec<Value> {
                    message.events.iter().map(|event| event["paymentId"].clone()).filter(Value::is_string).collect()
                };
                let own = payments(&message);
                let others = state.open.iter().filter(|other| other.port == port).flat_map(payments);
                let overlaps: Vec<String> =
                    others.filter(|payment| own.contains(payment)).map(|payment| payment.to_string()).collect();
                state.overlaps.extend(overlaps);
                state.open.push(message.clone());
                state.reactions.get(&port).cloned()
            };
            let reaction = react.map_or(Reaction::Status(200), |react| react(&message));
            match reaction {
                Reaction::Hang => self.released.notified().await,
                // A sender that gives up closes the connection.
                Reaction::Slow(time) => tokio::select! {
                    () = sleep(time) => {}
                    _ = stream.read_u8() => {}
                },
                Reaction::Status(_) | Reaction::RetryAfter(..) | Reaction::Lost => {}
            }
            for _ in 0..PAUSES {
                yield_now().await;
            }
            let (status, wait) = match reaction {
                Reaction::Status(status) => (status, String::new()),
                Reaction::RetryAfter(status, seconds) => (status, format!("retry-after: {seconds}\r\n")),
                Reaction::Hang => (500, String::new()),
                Reaction::Slow(_) | Reaction::Lost => (200, String::new()),
            };
            {
                let mut state = self.state();
                let place = state.open.iter().position(|open| *open == message);
                place.map(|place| state.open.remove(place));
                message.is_taken = (200..300).contains(&status);
                message.is_accepted = message.is_taken && reaction != Reaction::Lost;
                state.messages.push(message);
            }
            if reaction == Reaction::Lost {
                break;
            }
            let reply = format!("HTTP/1.1 {status} Whatever\r\n{wait}content-length: 0\r\n\r\n");
            // A sender that was killed does not read the reply.
            if stream.write_all(reply.as_bytes()).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads the next message of a connection; none if it has ended.
async fn read(port: u16, stream: &mut DuplexStream, buffer: &mut Vec<u8>) -> Result<Option<Message>> {
    let mut more = async |buffer: &mut Vec<u8>| Ok::<_, io::Error>(stream.read_buf(buffer).await? > 0);
    let head = loop {
        match buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if !more(buffer).await? => return Ok(None),
            None => {}
        }
    };
    let text = String::from_utf8(buffer[..head].to_vec())?;
    let header = |name: &str| -> Result<String> {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        Ok(found.with_context(|| format!("no {name}"))?.1.to_owned())
    };
    let end = head + header("content-length")?.parse::<usize>()?;
    while buffer.len() < end {
        if !more(buffer).await? {
            return Ok(None);
        }
    }
    let body: Value = serde_json::from_slice(&buffer[head..end])?;
    let events = body["events"].as_array().context("no events")?.clone();
    let (id, signatures) = (header("webhook-id")?, header("webhook-signature")?);
    buffer.drain(..end);
    Ok(Some(Message { port, id, signatures, events, is_accepted: false, is_taken: false }))
}

#[async_trait]
impl Network for Receivers {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let (ours, theirs) = duplex(1 << 20);
        let (receivers, port) = (self.clone(), address.port());
        tokio::spawn(async move {
            if let Err(error) = receivers.serve(port, theirs).await {
                tracing::error!(port, %error, "a message cannot be read");
            }
        });
        Ok(Box::new(ours))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receiver_takes_the_events_as_the_log_has_them_and_never_others_by_the_same_id() {
        let event = |id: &str, amount: u32| json!({ "id": id, "paymentId": "7", "amountMinor": amount });
        let (first, second) = (event("1-7-1", 5), event("1-7-2", 5));
        let receivers = Receivers::default();
        let judge = |taken: &[&Value]| {
            let taken: Vec<Value> = taken.iter().map(|event| (*event).clone()).collect();
            receivers.judge_taken(&taken, &[first.clone(), second.clone()]).is_ok()
        };
        assert!(judge(&[&first, &second]));
        assert!(!judge(&[&second, &first]) && !judge(&[&first]) && !judge(&[&first, &event("1-7-2", 6)]));
        let got = |events: &[&Value]| {
            let events = events.iter().map(|event| (*event).clone()).collect();
            let (id, signatures) = ("message".to_owned(), String::new());
            receivers.state().messages.push(Message {
                port: 1,
                id,
                signatures,
                events,
                is_accepted: true,
                is_taken: true,
            });
        };
        got(&[&first]);
        got(&[&first]);
        assert!(judge(&[&first, &second]));
        got(&[&second]);
        assert!(!judge(&[&first, &second]));
    }
}
