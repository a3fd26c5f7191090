//! The API's description as `cargo local` serves it: to everybody, with all that its page loads.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use payments_boot::Clock;
use payments_local::docs::{DESCRIPTION, PAGE, description};
use payments_local::{Options, System, welcome};
use payments_model::UtcSecond;
use payments_tests::Contract;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::laptop::gateway::{exchange, fixed_clock, options};

/// The attributes by which a page loads something.
const LOADS: [&str; 2] = ["src=\"", "href=\""];

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let api = system.api_url();
    for path in [PAGE, "/docs/", "/docs/index.html"] {
        let page = get(&api, path).await?;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("content-type: text/html"), "{page}");
        assert!(page.contains("<base href=\"/docs/\">"), "parts are found from {path} too: {page}");
        let mut parts = BTreeSet::new();
        for loads in LOADS {
            parts.extend(page.split(loads).skip(1).filter_map(|rest| rest.split('"').next()));
        }
        assert!(parts.len() > 5, "{page}");
        for part in parts {
            assert!(!part.contains("//"), "{path} loads {part} from elsewhere");
            let part = part.trim_start_matches("./").trim_start_matches("/docs/");
            let reply = get(&api, &format!("/docs/{part}")).await?;
            assert!(reply.starts_with("HTTP/1.1 200"), "{part}: {reply:.200}");
        }
    }
    let start = get(&api, "/docs/swagger-initializer.js").await?;
    assert!(start.contains(r#""url": "/openapi.yaml""#) && start.contains(r#""validatorUrl": "none""#), "{start}");
    assert!(!start.contains("http://") && !start.contains("https://"), "{start}");
    assert!(get(&api, "/docs/../openapi.yaml.bak").await?.starts_with("HTTP/1.1 404"));
    system.stop().await
}

#[tokio::test]
async fn both_forms_of_the_description_equal_openapi_yaml() -> Result<()> {
    // Its examples begin on this date, so none of them is moved.
    let now: chrono::DateTime<chrono::Utc> = "2028-05-20T09:00:00Z".parse()?;
    let system = System::start(&options()?, &Clock::simulated(move || now, |_| {})).await?;
    let api = system.api_url();
    for path in DESCRIPTION {
        let reply = get(&api, path).await?;
        let (head, body) = reply.split_once("\r\n\r\n").context("a body")?;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        // JSON is YAML.
        let served: Value = serde_yaml_ng::from_str(body)?;
        assert_eq!(served["paths"], Contract::get()?.document()["paths"], "{path}");
    }
    let written = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml"))?;
    assert_eq!(description(options()?.time_zone, UtcSecond::of(now)?)?, written);
    system.stop().await
}

#[tokio::test]
async fn the_root_says_where_the_description_is() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let root = get(&system.api_url(), "/").await?;
    assert!(root.starts_with("HTTP/1.1 200"), "{root}");
    for path in DESCRIPTION.iter().chain([&PAGE]) {
        assert!(root.contains(path), "{root}");
    }
    system.stop().await
}

#[tokio::test]
async fn only_the_description_needs_no_token() -> Result<()> {
    let system = System::start(&Options { require_tokens: true, ..options()? }, &fixed_clock()).await?;
    let api = system.api_url();
    for (method, path, want) in [
        ("GET", "/docs", 200),
        ("GET", "/docs/", 200),
        ("GET", "/docs/swagger-ui.css", 200),
        ("GET", "/docs/nothing", 404),
        ("GET", "/openapi.yaml", 200),
        ("GET", "/openapi.json", 200),
        ("POST", "/docs", 401),
        ("POST", "/openapi.yaml", 401),
        ("GET", "/docsx", 401),
        ("GET", "/openapi.yamlx", 401),
        ("GET", "/", 200),
        ("POST", "/", 401),
        ("GET", "/counts", 401),
        ("GET", "/events", 401),
        ("GET", "/payments?dueDate=2026-11-20", 401),
        ("GET", "/payments?transactionId=TX-1", 401),
        ("GET", "/transactions/TX-1", 401),
        ("GET", "/accounts/acc-1/payments", 401),
        ("GET", "/accounts/docs/payments/openapi.yaml", 401),
        ("POST", "/accounts/acc-1/payments", 401),
        ("POST", "/accounts/acc-1/payments/x/cancel", 401),
        ("POST", "/payment-batches", 401),
    ] {
        let request = format!("{method} {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nContent-Length: 0\n\n");
        let reply = exchange(&api, &request).await?;
        assert!(reply.starts_with(&format!("HTTP/1.1 {want} ")), "{method} {path}: {reply:.200}");
    }
    system.stop().await
}

#[test]
fn the_welcome_says_where_the_page_is() -> Result<()> {
    let text = welcome::text("http://127.0.0.1:8080", "", "", "", "2026-11-20".parse()?)?;
    assert!(text.contains("http://127.0.0.1:8080/docs"), "{text}");
    Ok(())
}

/// Returns the response to a GET without a token, as far as it is text.
pub(crate) async fn get(api: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(api.strip_prefix("http://").context("a URL")?).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}
