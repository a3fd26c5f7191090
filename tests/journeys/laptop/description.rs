//! The API's description as `cargo local` serves it: to everybody, with all that its page loads.

use payments_tests::prelude::*;
use std::path::Path;

use payments_boot::Clock;
use payments_local::System;
use payments_local::docs::{DESCRIPTION, PAGE, description};
use payments_model::UtcSecond;
use payments_tests::Contract;

use super::{exchange, get, options, request, start};

/// The attributes by which a page loads something.
const LOADS: [&str; 2] = ["src=\"", "href=\""];

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() -> Result<()> {
    let system = start(|_| {}).await?;
    let api = system.api_url();
    for path in [PAGE, "/docs/", "/docs/index.html"] {
        let page = get(&api, path).await?.with_status(200)?;
        assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{page}");
        let page = page.body;
        assert!(page.contains("<base href=\"/docs/\">"), "parts are found from {path} too: {page}");
        assert!(page.contains("<title>Scheduled payments") && page.contains("name=\"viewport\""), "{page}");
        let mut parts = BTreeSet::new();
        for loads in LOADS {
            parts.extend(page.split(loads).skip(1).filter_map(|rest| rest.split('"').next()));
        }
        assert!(parts.len() > 5, "{page}");
        for part in parts {
            assert!(!part.contains("//"), "{path} loads {part} from elsewhere");
            let part = part.trim_start_matches("./").trim_start_matches("/docs/");
            get(&api, &format!("/docs/{part}")).await?.with_status(200)?;
        }
    }
    let script = get(&api, "/docs/docs.js").await?.body;
    assert!(script.contains(r#"url: "/openapi.yaml""#) && script.contains(r#"validatorUrl: "none""#), "{script}");
    assert!(!script.contains("http://") && !script.contains("https://"), "{script}");
    // The other layout has a bar that loads the description of any other site.
    assert!(script.contains(r#"layout: "BaseLayout""#), "{script}");
    get(&api, "/docs/../openapi.yaml.bak").await?.with_status(404)?;
    // The root says where the description is.
    let root = get(&api, "/").await?.with_status(200)?;
    assert!(DESCRIPTION.iter().chain([&PAGE]).all(|path| root.body.contains(path)), "{root}");
    system.stop().await
}

#[tokio::test]
async fn both_forms_of_the_description_equal_openapi_yaml() -> Result<()> {
    // The description's examples begin on this date, so no example is moved.
    let now: chrono::DateTime<chrono::Utc> = "2028-05-20T09:00:00Z".parse()?;
    let system = System::start(&options()?, &Clock::simulated(move || now, |_| {})).await?;
    let api = system.api_url();
    for path in DESCRIPTION {
        // JSON is YAML.
        let served: Value = payments_machine::yaml::from_str(&get(&api, path).await?.with_status(200)?.body)?;
        assert_eq!(served["paths"], Contract::get()?.document()["paths"], "{path}");
    }
    let written = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml"))?;
    assert_eq!(description(options()?.time_zone, UtcSecond::new(now)?)?, written);
    system.stop().await
}

#[tokio::test]
async fn only_the_description_needs_no_token() -> Result<()> {
    let system = start(|options| options.require_tokens = true).await?;
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
        let reply = exchange(&api, &request(method, path, "", "")).await?;
        assert_eq!(reply.status, want, "{method} {path}: {reply:.200}");
    }
    system.stop().await
}
