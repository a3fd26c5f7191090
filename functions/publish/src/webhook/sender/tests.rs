//! Tests of the sender: the targets of requests, their form, the meaning of answers, and the time limits.

mod answers;
mod limits;
mod proxies;
mod reach;
mod site;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use payments_model::UtcSecond;
use payments_model::webhook::{EndpointSecret, EndpointUrl, MasterSecret, SecretGeneration};

use super::super::answer::{Answer, SendError};
use super::Sender;
use site::Site;

/// A URL of this machine, for senders over a [`Site`].
const LOOPBACK: &str = "http://127.0.0.1:9000/hook";

const BODY: &str = r#"{"events":[{"id":"7-a-1"}]}"#;

fn url(text: &str) -> EndpointUrl {
    EndpointUrl::from_stored(text).unwrap()
}

fn at() -> UtcSecond {
    "2026-12-01T08:00:00Z".parse().unwrap()
}

/// The secret of a generation.
fn secret(generation: u32) -> EndpointSecret {
    let master: MasterSecret = "a master secret for tests, of no worth".parse().unwrap();
    let generation = SecretGeneration::from_stored(generation).unwrap();
    EndpointSecret::derive(&master, &"erp".parse().unwrap(), generation)
}

async fn send(sender: &Sender, to: &str) -> Result<Answer, SendError> {
    let message = "msg_7-3-0".parse().unwrap();
    sender.send(&url(to), &[secret(1)], &message, at(), Bytes::from_static(BODY.as_bytes())).await
}

/// A sender that sends to this machine, to a host of the test.
fn loopback(site: &Site) -> Sender {
    Sender::loopback_over(Arc::new(site.clone()))
}

/// A sender that sends over the internet, to a host of the test that serves `hooks.example.com` over TLS.
fn internet(site: Site) -> (Sender, Site) {
    let (server, certificate) = tls::server("hooks.example.com");
    let site = site.with_tls(server);
    (Sender::internet_over(Arc::new(site.clone()), tls::client(certificate)), site)
}
