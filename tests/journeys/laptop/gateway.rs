//! `cargo local` over real HTTP: what the README shows, flags, and clear errors.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::TimeToLiveStatus;
use payments_boot::Clock;
use payments_local::business_days::Dates;
use payments_local::{Options, System, welcome};
use payments_machine::{EngineChoice, Stack};
use payments_store::schema::{PAYMENTS, Table, create_table};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(crate) fn options() -> Result<Options> {
    let time_zone = "Europe/London".parse()?;
    // In the target folder, which `cargo clean` empties: whatever runs last in a test may still write there.
    let reports = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?.keep();
    Ok(Options {
        api_port: 0,
        dynamodb_port: 0,
        data: None,
        new_bank: false,
        reports,
        time_zone,
        dates: Dates::default(),
        endpoint: None,
        require_tokens: false,
        sandbox: false,
    })
}

/// One HTTP/1.1 exchange, written by hand so that our code is on one side only.
pub(crate) async fn exchange(url: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").context("a URL")?).await?;
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    Ok(reply)
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n{headers}Content-Length: {length}\n\n{body}")
}

fn create() -> String {
    let body = r#"{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"2027-01-01"}"#;
    post("/accounts/acc-1/payments", "Content-Type: application/json\nIdempotency-Key: rent-1\n", body)
}

pub(crate) fn fixed_clock() -> Clock {
    Clock::simulated(|| chrono::DateTime::from_timestamp(1_795_168_800, 0).unwrap_or_default(), |_| {})
}

#[tokio::test]
async fn a_payment_is_created_listed_and_cancelled_over_http() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let api = system.api_url();
    let first = exchange(&api, &create()).await?;
    assert!(first.starts_with("HTTP/1.1 201 Created"), "{first}");
    assert!(first.contains("location: /accounts/acc-1/payments/"), "{first}");
    let again = exchange(&api, &create()).await?;
    assert!(again.contains("idempotent-replayed: true"), "{again}");
    let listing = "GET /accounts/acc-1/payments HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n\n";
    let list = exchange(&api, listing).await?;
    assert_eq!(list.matches("\"paymentId\"").count(), 1, "{list}");
    let id = first.split("/accounts/acc-1/payments/").nth(1).and_then(|rest| rest.lines().next()).context("an id")?;
    for _ in 0..2 {
        let cancelled = exchange(&api, &post(&format!("/accounts/acc-1/payments/{id}/cancel"), "", "")).await?;
        assert!(cancelled.starts_with("HTTP/1.1 200 OK") && cancelled.contains("\"CANCELLED\""), "{cancelled}");
    }
    let encoded = exchange(&api, &listing.replace("acc-1", "acc%2D1")).await?;
    assert!(encoded.contains("\"CANCELLED\""), "path parameters are decoded: {encoded}");
    system.stop().await
}

#[tokio::test]
async fn kept_data_survives_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().join("bank")), ..options()? };
    for want in [false, true] {
        let system = System::start(&options, &fixed_clock()).await?;
        let reply = exchange(&system.api_url(), &create()).await?;
        assert_eq!(reply.contains("idempotent-replayed: true"), want, "{reply}");
        system.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_busy_port_is_an_error_that_names_the_flag() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    for (options, flag) in [
        (Options { api_port: port, ..options()? }, "--api-port"),
        (Options { dynamodb_port: port, ..options()? }, "--dynamodb-port"),
    ] {
        let error = System::start(&options, &fixed_clock()).await.err().context("the port is taken")?;
        assert!(format!("{error:#}").contains(flag), "{error:#}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unusable_folder_is_an_error_that_names_its_flag() -> Result<()> {
    let (file, damaged) = (tempfile::NamedTempFile::new()?, tempfile::tempdir()?);
    std::fs::write(damaged.path().join("payments.sqlite"), "x".repeat(10_000))?;
    let (file, damaged) = (file.path().to_owned(), damaged.path().to_owned());
    // A bank that begins empty would find the reports of the one before.
    let used = tempfile::tempdir()?;
    std::fs::create_dir(used.path().join("reports"))?;
    // By default the reports are in the folder of the data.
    let unusable = Options { data: Some(file.clone()), reports: file.join("reports"), ..options()? };
    for (options, sign) in [
        (unusable, "give --data a writable folder"),
        (Options { data: Some(damaged), ..options()? }, "cannot open the database"),
        (Options { reports: file, ..options()? }, "give --reports a writable folder"),
        (Options { reports: used.path().to_owned(), ..options()? }, "give --reports a new folder"),
    ] {
        let error = System::start(&options, &fixed_clock()).await.err().context("the folder is unusable")?;
        assert!(error.to_string().contains(sign), "{error:#}");
    }
    Ok(())
}

/// What is damaged may answer for days as if nothing were wrong.
#[tokio::test]
async fn a_database_that_is_damaged_anywhere_is_found_at_the_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().to_owned()), ..options()? };
    let system = System::start(&options, &fixed_clock()).await?;
    assert!(exchange(&system.api_url(), &create()).await?.contains("201 Created"));
    system.stop().await?;
    let file = folder.path().join("payments.sqlite");
    let whole = std::fs::read(&file)?;
    let mut found = 0;
    for page in 1..whole.len() / 4_096 {
        let mut damaged = whole.clone();
        damaged[page * 4_096..][..4_096].fill(0xa5);
        std::fs::write(&file, damaged)?;
        let Err(error) = System::start(&options, &fixed_clock()).await else { continue };
        found += 1;
        let text = format!("{error:#}");
        assert!(text.contains("cannot open the database") && text.contains("put a copy of it in its place"), "{text}");
    }
    // A page that is free is not damaged.
    assert!(found * 10 > whole.len() / 4_096 * 9, "{found} of {}", whole.len() / 4_096);
    std::fs::write(&file, whole)?;
    let system = System::start(&options, &fixed_clock()).await?;
    assert!(exchange(&system.api_url(), &create()).await?.contains("idempotent-replayed: true"));
    system.stop().await
}

#[tokio::test]
async fn a_bank_that_lost_its_database_begins_anew_only_if_asked_to() -> Result<()> {
    for (of_reports, database) in [("reports", None), ("journal", None), ("reports", Some("")), ("journal", Some("x"))]
    {
        let folder = tempfile::tempdir()?;
        let (data, reports) = (folder.path().to_owned(), folder.path().join("reports"));
        std::fs::create_dir_all(reports.join(of_reports))?;
        if let Some(content) = database {
            std::fs::write(data.join("payments.sqlite"), content)?;
        }
        let options = Options { data: Some(data), reports, ..options()? };
        let error = System::start(&options, &fixed_clock()).await.err().context("it begins without a word")?;
        assert!(error.to_string().contains("put a copy of the database there"), "{error:#}");
        let system = System::start(&Options { new_bank: true, ..options.clone() }, &fixed_clock()).await?;
        system.stop().await?;
        // It has a database from now on.
        System::start(&options, &fixed_clock()).await?.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_tokens_no_other_site_acts_on_the_bank_and_no_other_host_reads_it() -> Result<()> {
    let system = System::start(&Options { sandbox: true, ..options()? }, &fixed_clock()).await?;
    let api = system.api_url();
    let created = exchange(&api, &create()).await?;
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let id = created.split("/accounts/acc-1/payments/").nth(1).and_then(|rest| rest.lines().next()).context("an id")?;
    let cancel = format!("/accounts/acc-1/payments/{id}/cancel");
    let site = "Origin: http://evil.example\nSec-Fetch-Site: cross-site\n";
    for request in [
        post(&cancel, site, ""),
        post("/webhook-endpoints/x/test", site, ""),
        post("/sandbox/clock", &format!("{site}Content-Type: text/plain\n"), r#"{"advanceSeconds":1}"#),
    ] {
        let reply = exchange(&api, &request).await?;
        assert!(reply.starts_with("HTTP/1.1 403") && reply.contains("another site"), "{reply}");
    }
    let list = "GET /accounts/acc-1/payments HTTP/1.1\nHost: HOST\nSec-Fetch-Site: same-origin\nConnection: close\n\n";
    for (host, status) in [("evil.example", "421"), ("127.0.0.1", "200"), ("localhost:8080", "200"), ("", "400")] {
        let reply = exchange(&api, &list.replace("HOST", host)).await?;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {reply}");
        assert_eq!(reply.contains("SCHEDULED"), status == "200", "{host}: {reply}");
    }
    for hosts in ["", "Host: 127.0.0.1\nHost: 127.0.0.1\n"] {
        let reply = exchange(&api, &list.replace("Host: HOST\n", hosts)).await?;
        assert!(reply.starts_with("HTTP/1.1 400"), "{hosts}: {reply}");
    }
    system.stop().await
}

#[tokio::test]
async fn a_client_that_closes_its_side_after_its_request_gets_the_answer() -> Result<()> {
    let system = System::start(&Options { sandbox: true, ..options()? }, &fixed_clock()).await?;
    let mut client = TcpStream::connect(system.api_url().replace("http://", "")).await?;
    // It takes so long that the end of what the client sends is seen before the answer.
    let request = post("/sandbox/clock", "", r#"{"advanceSeconds":432000}"#).replace('\n', "\r\n");
    client.write_all(request.as_bytes()).await?;
    client.shutdown().await?;
    let mut reply = String::new();
    client.read_to_string(&mut reply).await?;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    system.stop().await
}

#[tokio::test]
async fn a_table_whose_creator_was_killed_gets_its_time_to_live() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let client = stack.client();
    for table in [Table { time_to_live: None, ..PAYMENTS }, PAYMENTS, PAYMENTS] {
        create_table(&client, "killed", &table).await?;
    }
    let found = client.describe_time_to_live().table_name("killed").send().await?.time_to_live_description;
    let status = found.and_then(|found| found.time_to_live_status);
    assert_eq!(status, Some(TimeToLiveStatus::Enabled));
    stack.stop().await
}

#[tokio::test]
async fn the_bank_has_the_calendars_of_its_flags() -> Result<()> {
    let (calendars, cut_offs) = (Some("EUR=T2".to_owned()), Some("T2=16:00".to_owned()));
    let options = Options { dates: Dates { calendars, cut_offs, ..Dates::default() }, ..options()? };
    let system = System::start(&options, &fixed_clock()).await?;
    let reply = exchange(&system.api_url(), "GET /calendars HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n\n").await?;
    assert!(reply.contains("T2") && reply.contains("16:00") && !reply.contains("FED"), "{reply}");
    system.stop().await
}

/// As `invoke` of docs/commands.sh does.
#[tokio::test]
async fn functions_are_invoked_by_hand() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    for (function, input, status, says) in [
        ("daily-due-sweeper", r#"{"action":"redrive"}"#, "200 OK", "redriven"),
        ("RecountFunction", r#"{"action":"recount","from":"2026-11-20","to":"2026-11-21"}"#, "200 OK", "repaired"),
        ("recount", r#"{"action":"guess"}"#, "200 OK", "x-amz-function-error: Unhandled"),
        ("recount", "{", "400 Bad Request", "no JSON"),
        ("settle", "{}", "404 Not Found", "there are daily-due-sweeper, archive, report,"),
    ] {
        let request = post(&format!("/2015-03-31/functions/{function}/invocations"), "", input);
        let reply = exchange(&system.api_url(), &request).await?;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")) && reply.contains(says), "{function}: {reply}");
    }
    let page =
        post("/2015-03-31/functions/archive/invocations", "Origin: http://page.invalid\n", r#"{"action":"archive"}"#);
    assert!(
        exchange(&system.api_url(), &page).await?.starts_with("HTTP/1.1 403"),
        "a page of a browser invokes nothing"
    );
    system.stop().await
}

#[tokio::test]
async fn a_folder_in_use_is_an_error_that_names_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().to_owned()), ..options()? };
    let system = System::start(&options, &fixed_clock()).await?;
    let error = System::start(&options, &fixed_clock()).await.err().context("the folder is in use")?;
    let place = folder.path().display().to_string();
    assert!(error.to_string().contains(&place) && error.to_string().contains("is in use"), "{error:#}");
    assert!(exchange(&system.api_url(), &create()).await?.contains("201 Created"));
    system.stop().await
}

#[tokio::test]
async fn an_unreachable_engine_is_an_error_that_names_it() -> Result<()> {
    let options = Options { endpoint: Some("http://127.0.0.1:1".to_owned()), ..options()? };
    let error = System::start(&options, &fixed_clock()).await.err().context("nothing listens there")?;
    let text = error.to_string();
    assert!(text.contains("http://127.0.0.1:1,") && text.contains("DYNAMODB_ENDPOINT"), "{error:#}");
    Ok(())
}

#[tokio::test]
async fn a_path_is_decoded_before_its_route_is_looked_for() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let api = system.api_url();
    for (method, path, want, says) in [
        ("GET", "/%63ounts", "200 OK", "byStatus"),
        ("GET", "/accounts%2Facc-1%2fpayments", "200 OK", "nextCursor"),
        ("GET", "/accounts/acc%2D1/payments", "200 OK", "nextCursor"),
        ("GET", "/accounts/acc%2F1/payments", "404 Not Found", "no-such-route"),
        ("POST", "/accounts/acc%2F1/payments", "404 Not Found", "no-such-route"),
        ("POST", "/%63ounts", "405 Method Not Allowed", "GET"),
        // Decoded once.
        ("GET", "/accounts/acc%252F1/payments", "400 Bad Request", "accountId"),
        // An encoded question mark ends the path, and begins no query.
        ("GET", "/counts%3Ffrom=2026-01-01", "200 OK", "byStatus"),
        ("GET", "/accounts/acc%3F1/payments", "404 Not Found", "no-such-route"),
    ] {
        let request = format!("{method} {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nContent-Length: 0\n\n");
        let reply = exchange(&api, &request).await?;
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {want}")) && reply.contains(says),
            "{method} {path}: {reply:.400}"
        );
    }
    system.stop().await
}

#[tokio::test]
async fn a_broken_body_is_a_bad_request() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let head = "POST /payment-batches HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nTransfer-Encoding: chunked\n";
    let broken = format!("{head}Content-Type: application/json\n\nnot-a-length\n");
    let reply = exchange(&system.api_url(), &broken).await?;
    assert!(reply.starts_with("HTTP/1.1 400") && reply.ends_with(r#"{"message":"Bad Request"}"#), "{reply}");
    system.stop().await
}

#[tokio::test]
async fn half_sent_requests_time_out_and_do_not_delay_the_end() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let (api, engine) = (system.api_url(), system.dynamodb_url().to_owned());
    let half = "POST /payment-batches HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    let mut clients = Vec::new();
    for (url, sent) in
        [(&api, half.to_owned()), (&engine, half.to_owned()), (&api, format!("{half}Content-Length: 9\r\n\r\n{{"))]
    {
        let mut client = TcpStream::connect(url.strip_prefix("http://").context("a URL")?).await?;
        client.write_all(sent.as_bytes()).await?;
        clients.push(client);
    }
    let [mut head, _engine, mut body] = <[TcpStream; 3]>::try_from(clients).ok().context("three")?;
    // More than the ten seconds that a client has to send a request.
    let patient = Duration::from_secs(30);
    let (mut nothing, mut reply) = (Vec::new(), String::new());
    timeout(patient, head.read_to_end(&mut nothing)).await.context("the connection stays open")??;
    timeout(patient, body.read_to_string(&mut reply)).await.context("the connection stays open")??;
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    timeout(patient, system.stop()).await.context("the engine's client delays the end")?
}

#[tokio::test]
async fn the_gateway_rejects_a_body_over_its_limit() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let huge = "x".repeat(11 * 1024 * 1024);
    let reply = exchange(&system.api_url(), &post("/payment-batches", "Content-Type: application/json\n", &huge)).await;
    // The connection's reset may cut off the answer, but the server goes on.
    assert!(reply.is_err() || reply.is_ok_and(|reply| reply.contains("413")));
    assert!(exchange(&system.api_url(), &create()).await?.contains("201 Created"));
    system.stop().await
}

#[test]
fn the_welcome_shows_commands_for_today() -> Result<()> {
    let text = welcome::text(
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8000",
        "(in memory)",
        "reports",
        "2026-11-20".parse()?,
    )?;
    assert!(text.contains("\"scheduledFor\":\"2026-11-27\""), "{text}");
    // The id is that of the create above.
    assert!(text.contains("/payments/8d9a1951-d187-5122-b51e-d0e412752c83/cancel"), "{text}");
    // The first version of the AWS CLI does not know AWS_REGION.
    assert!(text.contains(" --region us-east-1") && !text.contains("AWS_REGION"), "{text}");
    Ok(())
}
