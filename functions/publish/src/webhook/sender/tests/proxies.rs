//! A test that the variables of proxies are not read: another process has them, and their proxy must see no connection.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::spawn;

use super::site::Site;
use super::{BODY, internet, send};
use crate::webhook::{Answer, Sender};

/// Every variable that clients read for a proxy.
const VARIABLES: [&str; 8] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "CGI_HTTP_PROXY",
    "REQUEST_METHOD",
];

/// The test that the other process runs.
const CHILD: &str = "webhook::sender::tests::proxies::sends_in_another_process";

#[test]
fn the_variables_of_proxies_are_not_read() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", CHILD, "--include-ignored", "--nocapture"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    child.envs(VARIABLES.map(|variable| (variable, format!("http://{}", proxy.local_addr().unwrap()))));
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let mut child = child.spawn().unwrap();
    write!(child.stdin.take().unwrap(), "http://{}/hook", receiver.local_addr().unwrap()).unwrap();
    let (received, requests) = channel();
    spawn(move || {
        let (mut connection, _) = receiver.accept().unwrap();
        let mut request = String::new();
        while !request.ends_with(BODY) {
            let mut more = [0; 4096];
            let count = connection.read(&mut more).unwrap();
            assert_ne!(count, 0, "{request}");
            request.push_str(std::str::from_utf8(&more[..count]).unwrap());
        }
        connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        received.send(request).unwrap();
    });
    // The child ends by itself: its requests have a time limit.
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("both were accepted"), "{text}");
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    proxy.set_nonblocking(true).unwrap();
    assert_eq!(proxy.accept().map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

#[tokio::test]
#[ignore = "the_variables_of_proxies_are_not_read runs it in another process"]
async fn sends_in_another_process() {
    let mut to = String::new();
    std::io::stdin().read_to_string(&mut to).unwrap();
    // If this test runs by hand, or with all ignored tests in CI, there is no target.
    if to.is_empty() {
        return;
    }
    assert_eq!(send(&Sender::loopback(), &to).await.unwrap(), Answer::Accepted);
    let (sender, site) = internet(Site::new());
    assert_eq!(send(&sender, "https://hooks.example.com/hook").await.unwrap(), Answer::Accepted);
    assert_eq!(site.seen().connected.len(), 1);
    assert!(site.seen().requests[0].starts_with("POST /hook HTTP/1.1\r\n"));
    println!("both were accepted");
}
