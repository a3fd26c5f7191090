//! Tests of requests, and of the meaning of answers.

use std::time::Duration;

use bytes::Bytes;
use standardwebhooks::Webhook;

use super::site::{Reply, Site, response};
use super::{BODY, LOOPBACK, at, internet, loopback, secret, send, url};
use crate::webhook::{Answer, MAX_RETRY_AFTER, SendError};

#[tokio::test]
async fn a_request_is_a_signed_post_of_standard_webhooks() {
    let (sender, site) = internet(Site::new());
    let message = "msg_7-3-0".parse().unwrap();
    let secrets = [secret(2), secret(1)];
    let body = Bytes::from_static(BODY.as_bytes());
    let answer = sender.send(&url("https://hooks.example.com/a?b=c"), &secrets, &message, at(), body).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
    // The library of receivers signs likewise.
    let second = at().as_chrono().timestamp();
    let [new, old] = secrets
        .map(|secret| Webhook::new(&secret.reveal()).unwrap().sign("msg_7-3-0", second, BODY.as_bytes()).unwrap());
    let want = format!(
        "POST /a?b=c HTTP/1.1\r\nwebhook-id: msg_7-3-0\r\nwebhook-timestamp: 1796112000\r\nwebhook-signature: {new} {old}\r\n\
         content-type: application/json\r\nuser-agent: scheduled-payments-webhooks/{}\r\nhost: hooks.example.com\r\n\
         content-length: {}\r\n\r\n{BODY}",
        env!("CARGO_PKG_VERSION"),
        BODY.len()
    );
    assert_eq!(site.seen().requests, [want]);
}

#[tokio::test]
async fn without_a_secret_nothing_is_sent() {
    let site = Site::new();
    let message = "msg_7-3-0".parse().unwrap();
    let sent = loopback(&site).send(&url(LOOPBACK), &[], &message, at(), Bytes::new()).await;
    assert!(matches!(sent, Err(SendError::Unsigned)), "{sent:?}");
    assert!(site.seen().connected.is_empty());
}

#[tokio::test]
async fn an_answer_is_its_status() {
    let refused = |status| Answer::Refused { status, retry_after: None };
    let later = |status, seconds| Answer::Refused { status, retry_after: Some(Duration::from_secs(seconds)) };
    for (status, headers, want) in [
        (200, "", Answer::Accepted),
        (201, "", Answer::Accepted),
        (202, "retry-after: 9\r\n", Answer::Accepted),
        (299, "", Answer::Accepted),
        (300, "", refused(300)),
        (304, "", refused(304)),
        (400, "", refused(400)),
        (401, "", refused(401)),
        (404, "", refused(404)),
        (408, "", refused(408)),
        (410, "", Answer::Gone),
        (410, "retry-after: 9\r\n", Answer::Gone),
        (429, "", refused(429)),
        (429, "retry-after: 0\r\n", later(429, 0)),
        (429, "retry-after: 120\r\n", later(429, 120)),
        (503, "Retry-After:  7 \r\n", later(503, 7)),
        (503, "retry-after: 3601\r\n", later(503, 3600)),
        (503, "retry-after: 99999999999999999999999999\r\n", later(503, 3600)),
        (503, "retry-after: Tue, 01 Dec 2026 08:00:30 GMT\r\n", later(503, 30)),
        (503, "retry-after: Tuesday, 01-Dec-26 08:00:30 GMT\r\n", later(503, 30)),
        (503, "retry-after: Tue Dec  1 08:00:30 2026\r\n", later(503, 30)),
        (503, "retry-after: Tue, 01 Dec 2026 07:59:00 GMT\r\n", later(503, 0)),
        (503, "retry-after: Tue, 01 Dec 2026 23:00:00 GMT\r\n", later(503, 3600)),
        (503, "retry-after: -1\r\n", refused(503)),
        (503, "retry-after: 1.5\r\n", refused(503)),
        (503, "retry-after: soon\r\n", refused(503)),
        (503, "retry-after: \r\n", refused(503)),
        (500, "retry-after: 9\r\n", refused(500)),
        (599, "", refused(599)),
        (999, "", refused(999)),
    ] {
        let site = Site::new().with_replies([Reply::Text(response(status, headers, ""))]);
        assert_eq!(send(&loopback(&site), LOOPBACK).await.unwrap(), want, "{status} {headers}");
        assert_eq!(site.seen().requests.len(), 1);
    }
    assert_eq!(MAX_RETRY_AFTER, Duration::from_secs(3600));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        for target in
            ["http://127.0.0.1:9000/other", "https://hooks.example.com/other", "/other", "http://169.254.169.254/"]
        {
            let site =
                Site::new().with_replies([Reply::Text(response(status, &format!("location: {target}\r\n"), ""))]);
            let answer = send(&loopback(&site), LOOPBACK).await.unwrap();
            assert_eq!(answer, Answer::Refused { status, retry_after: None });
            let seen = site.seen();
            assert_eq!(
                (seen.requests.len(), seen.connected.len(), seen.resolved.len()),
                (1, 1, 0),
                "{status} {target}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_response_is_an_error_that_shows_none_of_it() {
    for reply in [
        "password=hunter2\r\n\r\n",
        "HTTP/1.1 hunter2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nhunter2\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "",
    ] {
        let site = Site::new().with_replies([Reply::Last(reply.to_owned())]);
        let error = send(&loopback(&site), LOOPBACK).await.unwrap_err();
        assert!(matches!(error, SendError::Lost(_)), "{error:?}");
        let shown = format!("{error} {error:?} {:?}", payments_model::causes(&error));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
