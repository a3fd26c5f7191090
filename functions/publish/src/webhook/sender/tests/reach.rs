//! Tests of the targets of requests. A server on this machine must see no connection from rejected ones.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http::Uri;
use proptest::prelude::*;
use tower_service::Service as _;

use super::site::{GLOBAL, Reply, Site};
use super::{LOOPBACK, internet, loopback, send, tls, url};
use crate::webhook::connector::{ConnectError, Connector, Reach};
use crate::webhook::network::{Machine, Network};
use crate::webhook::{Answer, SendError, Sender};
use payments_model::webhook::{EndpointUrl, is_global};

const PUBLIC: &str = "https://hooks.example.com/hook";

/// A server that must see no connection.
struct Untouched(TcpListener);

impl Untouched {
    fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        Self(server)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Fails if there was a connection. The server's queue would still hold it.
    fn check(&self, why: &str) {
        assert_eq!(self.0.accept().map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "{why}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_no_global_address_is_not_connected_to() {
    let server = Untouched::new();
    let mut count = 0;
    for address in "
        0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.0.0.53 127.255.255.254
        169.254.169.254 169.254.169.123 169.254.170.2 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
        192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
        255.255.255.255 :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:100.64.0.1
        ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8 64:ff9b:1::10.0.0.1 100::1 2001::1 2001:0:7f00:1::
        2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254
        fd12:3456::1 fe80::1 fe80::a9fe:a9fe fec0::1 ff02::1 ff0e::1"
        .split_whitespace()
    {
        let (sender, site) = internet(Site::new().with_names(&[&[address]]).with_server(server.address()));
        let sent = send(&sender, PUBLIC).await;
        assert!(matches!(sent, Err(SendError::NoGlobalAddress)), "{address}: {sent:?}");
        assert_eq!((site.seen().resolved, site.seen().connected), (vec!["hooks.example.com".to_owned()], vec![]));
        server.check(address);
        count += 1;
    }
    assert!(count >= 60, "{count}");
}

#[tokio::test]
async fn of_several_addresses_only_the_global_ones_are_connected_to() {
    let server = Untouched::new();
    let names: &[&[&str]] = &[&["127.0.0.1", "10.0.0.1", "2606:4700::1111", "::1", GLOBAL, "169.254.169.254"]];
    // IPv4 is first.
    let rejecting = ["93.184.216.34:443", "[2606:4700::1111]:443"];
    let (sender, site) =
        internet(Site::new().with_names(names).with_rejecting(&rejecting).with_server(server.address()));
    let sent = send(&sender, PUBLIC).await;
    assert!(matches!(sent, Err(SendError::Connect(_))), "{sent:?}");
    assert_eq!(site.seen().connected.iter().map(ToString::to_string).collect::<Vec<_>>(), rejecting);
    server.check("of several");
    // A silent address does not end the tries.
    let (sender, site) = internet(Site::new().with_names(names).with_rejecting(&rejecting[..1]));
    assert_eq!(send(&sender, PUBLIC).await.unwrap(), Answer::Accepted);
    assert_eq!(site.seen().connected.len(), 2);
}

#[tokio::test]
async fn a_name_that_changes_after_the_check_changes_nothing() {
    let server = Untouched::new();
    // The second resolution leads to this machine: it is asked for only when a second connection is
    // made, and is checked then.
    let once = Reply::Last("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned());
    let site = Site::new().with_names(&[&[GLOBAL], &["127.0.0.1"]]).with_replies([once]);
    let (sender, site) = internet(site);
    assert_eq!(send(&sender, PUBLIC).await.unwrap(), Answer::Accepted);
    let seen = site.seen();
    assert_eq!((seen.resolved.len(), seen.connected), (1, vec![SocketAddr::new(GLOBAL.parse().unwrap(), 443)]));
    for attempt in 2..5 {
        let sent = send(&sender, PUBLIC).await;
        assert!(matches!(sent, Err(SendError::NoGlobalAddress)), "{sent:?}");
        assert_eq!((site.seen().resolved.len(), site.seen().connected.len()), (attempt, 1));
    }
    server.check("a changed name");
}

/// URIs that [`EndpointUrl`] rejects.
const LITERALS: &str = "
    https://127.0.0.1/ https://127.0.0.1:443/ https://127.1/ https://127.0.1/ https://2130706433/ https://0x7f000001/ https://0x7f.1/
    https://0x7F.0x0.0x0.0x1/ https://0177.0.0.1/ https://017700000001/ https://0/ https://0.0.0.0/ https://127.0.0.1./
    https://169.254.169.254/latest/ https://2852039166/ https://0xa9fea9fe/ https://0251.0376.0251.0376/ https://169.254.43518/
    https://[::1]/ https://[::ffff:127.0.0.1]/ https://[::ffff:7f00:1]/ https://[::127.0.0.1]/ https://[64:ff9b::7f00:1]/
    https://[2002:7f00:1::]/ https://[fe80::1]/ https://[fd00:ec2::254]/ https://[::]/ https://8.8.8.8/ https://[2606:4700::1111]/ https://localhost/ https://localhost:443/
    https://user@localhost/ https://hooks.example.com@127.0.0.1/ https://hooks.example.com:80@127.0.0.1/ https://hooks.example.com:8443/
    https://hooks.example.com:80/ http://hooks.example.com/ http://127.0.0.1:9000/ http://[::1]:9000/ http://2130706433:9000/
    ftp://hooks.example.com/ https://localhost.localdomain/ https://metadata.google.internal/ https://printer.local/";

#[tokio::test]
async fn the_connector_does_not_rely_on_what_a_url_cannot_be() {
    let server = Untouched::new();
    let reach = Reach::Internet(tls::client(tls::server("hooks.example.com").1));
    let mut count = 0;
    for text in LITERALS.split_whitespace() {
        let parsed = text.parse::<EndpointUrl>();
        assert!(parsed.is_err(), "{text}");
        // An http::Uri accepts it, so hyper's client would, too.
        let uri: Uri = text.parse().unwrap();
        let site = Site::new().with_server(server.address());
        let connected = Connector::new(Arc::new(site.clone()), reach.clone()).call(uri).await;
        assert!(matches!(connected.map(|_| ()), Err(ConnectError::NotPermitted)), "{text}");
        assert_eq!(site.seen().resolved, Vec::<String>::new());
        assert_eq!(site.seen().connected, []);
        server.check(text);
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

#[tokio::test]
async fn a_deployed_sender_rejects_this_machine_and_a_local_one_the_internet() {
    let server = Untouched::new();
    let local = format!("http://{}/", server.address());
    let (sender, site) = internet(Site::new().with_server(server.address()));
    for to in [LOOPBACK, local.as_str()] {
        let sent = send(&sender, to).await;
        assert!(matches!(sent, Err(SendError::NotPermitted)), "{sent:?}");
    }
    assert!(site.seen().resolved.is_empty() && site.seen().connected.is_empty());
    // The connector checks again.
    let uri: Uri = local.parse().unwrap();
    let connected = Connector::new(Arc::new(Machine), Reach::Internet(tls::client(tls::server("hooks.example.com").1)))
        .call(uri)
        .await;
    assert!(matches!(connected.map(|_| ()), Err(ConnectError::NotPermitted)));
    server.check("a deployed sender");

    let site = Site::new().with_server(server.address());
    let sent = send(&loopback(&site), PUBLIC).await;
    assert!(matches!(sent, Err(SendError::NotPermitted)), "{sent:?}");
    let beyond = [
        "http://10.0.0.1:80/",
        "http://localhost:80/",
        "http://[::1]:80/",
        "http://0x7f000001:80/",
        "https://127.0.0.1:443/",
        "http://127.0.0.1/",
    ];
    for text in beyond {
        let connected = Connector::new(Arc::new(site.clone()), Reach::Loopback).call(text.parse().unwrap()).await;
        assert!(matches!(connected.map(|_| ()), Err(ConnectError::NotPermitted)), "{text}");
    }
    assert!(site.seen().resolved.is_empty() && site.seen().connected.is_empty());
    server.check("a local sender");
}

#[tokio::test]
async fn a_name_without_an_address_is_said_to_be_so() {
    for site in [Site::unknown(), Site::new().with_names(&[&[]])] {
        let (sender, site) = internet(site);
        let sent = send(&sender, PUBLIC).await;
        assert!(matches!(sent, Err(SendError::Dns(_))), "{sent:?}");
        assert_eq!(site.seen().connected, []);
    }
}

#[tokio::test]
async fn only_a_host_with_a_trusted_certificate_of_its_name_receives_a_request() {
    let (server, other) = (tls::server("hooks.example.com"), tls::server("hooks.example.com"));
    let sender_of = |site: &Site, trusted| Sender::internet_over(Arc::new(site.clone()), tls::client(trusted));
    let site = Site::new().with_tls(server.0.clone());
    let untrusted = send(&sender_of(&site, other.1), PUBLIC).await;
    let another_name = send(&sender_of(&site, server.1.clone()), "https://other.example.com/").await;
    let plain = Site::new();
    let unencrypted = send(&sender_of(&plain, server.1.clone()), PUBLIC).await;
    for sent in [untrusted, another_name, unencrypted] {
        assert!(matches!(sent, Err(SendError::Tls(_))), "{sent:?}");
    }
    assert_eq!((site.seen().requests, plain.seen().requests), (vec![], vec!["not HTTP".to_owned()]));
    assert_eq!(send(&sender_of(&site, server.1), PUBLIC).await.unwrap(), Answer::Accepted);
}

#[test]
fn a_deployed_sender_trusts_the_machines_certificates() {
    let sender = Sender::internet().unwrap();
    assert_eq!(format!("{sender:?}"), "Sender { reach: Internet(Tls), network: Machine, .. }");
}

#[tokio::test]
async fn what_the_machine_takes_for_an_address_is_not_global() {
    // The C library parses all of these without a name server, which would drop a query for one.
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.43518",
    ] {
        let found = Machine.resolve(host).await.unwrap();
        assert!(!found.is_empty() && !found.iter().any(|&address| is_global(address)), "{host}: {found:?}");
    }
}

proptest! {
    /// The HTTP client, and the parser that browsers have, take the same host from a URL as the bank does.
    #[test]
    fn other_parsers_take_the_same_host(text in "https://[a-z0-9.:@%-]{1,16}\\.(com|xn--p1ai|[0-9]|0x1)(:443)?(/[a-zA-Z0-9%#?@:;=./~!$&'()*+,_-]{0,12})?") {
        if let Ok(url) = text.parse::<EndpointUrl>() {
            let uri: Uri = url.as_str().parse().unwrap();
            prop_assert_eq!((uri.host(), uri.port(), uri.scheme_str()), (Some(url.host()), None, Some("https")));
            prop_assert_eq!(uri.authority().unwrap().as_str(), url.host());
            // The other parser may know more of punycode.
            let Ok(other) = url::Url::parse(&text) else { return Ok(()) };
            prop_assert_eq!((other.host_str(), other.port(), other.username(), other.fragment()), (Some(url.host()), None, "", None));
        }
    }
}

#[test]
fn the_urls_of_these_tests_are_of_their_kind() {
    assert_eq!((url(PUBLIC).loopback_port(), url(LOOPBACK).loopback_port()), (None, Some(9000)));
}
