//! Tests of the limits of a receiver: time, bytes, connections.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::site::{Reply, Site, response};
use super::{LOOPBACK, internet, loopback, send};
use crate::webhook::{Answer, MAX_REPLY_BYTES, SendError};

const PUBLIC: &str = "https://hooks.example.com/hook";

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_answer_ends_in_time() {
    let stalled = |text: &str| Site::new().with_replies([Reply::Stalled(text.to_owned())]);
    for text in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let start = Instant::now();
        let sent = send(&loopback(&stalled(text)), LOOPBACK).await;
        assert!(matches!(sent, Err(SendError::TimedOut)), "{sent:?}");
        assert_eq!(start.elapsed().as_secs(), 15, "{text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn connections_have_a_time_of_their_own_that_addresses_share() {
    let names: [&[&str]; 3] =
        [&["8.8.8.8"], &["8.8.8.8", "2606:4700::1111"], &["8.8.8.8", "1.1.1.1", "9.9.9.9", "8.8.4.4", "4.4.4.4"]];
    for name in names {
        let silent =
            ["8.8.8.8:443", "[2606:4700::1111]:443", "1.1.1.1:443", "9.9.9.9:443", "8.8.4.4:443", "4.4.4.4:443"];
        let (sender, site) = internet(Site::new().with_names(&[name]).with_silent(&silent));
        let start = Instant::now();
        let sent = send(&sender, PUBLIC).await;
        assert!(matches!(sent, Err(SendError::TimedOut)), "{sent:?}");
        assert_eq!(start.elapsed().as_secs(), 5);
        assert_eq!(site.seen().connected.len(), name.len().min(4));
    }
    let (sender, site) = internet(Site::nameless());
    let start = Instant::now();
    let sent = send(&sender, PUBLIC).await;
    assert!(matches!(sent, Err(SendError::TimedOut)), "{sent:?}");
    assert_eq!((start.elapsed().as_secs(), site.seen().connected.len()), (5, 0));
    // A silent address leaves time for the next.
    let (sender, site) = internet(Site::new().with_names(&[&["8.8.8.8", "1.1.1.1"]]).with_silent(&["8.8.8.8:443"]));
    assert_eq!(send(&sender, PUBLIC).await.unwrap(), Answer::Accepted);
    assert_eq!(site.seen().connected.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_body_of_an_answer_is_read_to_4_kb_and_for_a_second() {
    let accepted = |headers: &str, body: &str| response(200, headers, body);
    // Some more than the limit is read if it comes at once.
    let big = "x".repeat(10 * MAX_REPLY_BYTES);
    let fits = "x".repeat(MAX_REPLY_BYTES);
    for (reply, connections) in [
        (Reply::Text(accepted("", &fits)), 1),
        (Reply::Text(accepted("", &big)), 2),
        (Reply::Text("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n".to_owned()), 1),
        (Reply::Stalled("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_owned()), 2),
        (Reply::Stalled("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n".to_owned()), 2),
        (Reply::Last("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_owned()), 2),
        (Reply::Last("HTTP/1.1 200 OK\r\n\r\nuntil the end".to_owned()), 2),
        (Reply::Text("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n".to_owned()), 2),
    ] {
        let site = Site::new().with_replies([reply.clone(), Reply::Text(accepted("", ""))]);
        let sender = loopback(&site);
        let start = Instant::now();
        assert_eq!(send(&sender, LOOPBACK).await.unwrap(), Answer::Accepted, "{reply:?}");
        assert!(start.elapsed() <= Duration::from_secs(1), "{reply:?}");
        assert_eq!(send(&sender, LOOPBACK).await.unwrap(), Answer::Accepted, "{reply:?}");
        assert_eq!(site.seen().connected.len(), connections, "{reply:?}");
    }
}

#[tokio::test]
async fn a_response_whose_head_is_too_long_is_none() {
    let head = response(200, &format!("x: {}\r\n", "y".repeat(16 * 1024)), "");
    let sent = send(&loopback(&Site::new().with_replies([Reply::Last(head)])), LOOPBACK).await;
    assert!(matches!(sent, Err(SendError::Lost(_))), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_the_same_url_alone_and_not_for_long() {
    let site = Site::new();
    let sender = loopback(&site);
    for (to, connections) in [(LOOPBACK, 1), (LOOPBACK, 1), ("http://127.0.0.1:9000/other", 2), (LOOPBACK, 2)] {
        assert_eq!(send(&sender, to).await.unwrap(), Answer::Accepted);
        assert_eq!(site.seen().connected.len(), connections, "{to}");
    }
    send(&sender.anew(), LOOPBACK).await.unwrap();
    assert_eq!(site.seen().connected.len(), 3);
    advance(Duration::from_secs(5)).await;
    send(&sender, LOOPBACK).await.unwrap();
    assert_eq!(site.seen().connected.len(), 4);
}

#[tokio::test]
async fn a_connection_that_the_receiver_closed_is_made_anew() {
    let first = Reply::Last("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned());
    let site = Site::new().with_replies([first, Reply::Text(response(200, "", ""))]);
    let sender = loopback(&site);
    for connections in [1, 2] {
        assert_eq!(send(&sender, LOOPBACK).await.unwrap(), Answer::Accepted);
        assert_eq!(site.seen().connected.len(), connections);
    }
    assert_eq!(site.seen().requests.len(), 2);
}
