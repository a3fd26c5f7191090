//! The start of `cargo local`: its folders, its ports, its flags, and clear errors.

use payments_tests::prelude::*;
use std::net::TcpListener;

use aws_sdk_dynamodb::types::TimeToLiveStatus;
use payments_local::{Options, System, welcome};
use payments_machine::{EngineChoice, Stack};
use payments_store::schema::{PAYMENTS, Table, create_table};

use super::{create, fixed_clock, get, options, start, start_fails};

/// Starts the system and creates the payment. Returns whether it was there.
async fn is_there(options: &Options) -> Result<bool> {
    let system = System::start(options, &fixed_clock()).await?;
    let created = create(&system.api_url()).await?.with_status(201)?;
    system.stop().await?;
    Ok(created.header("idempotent-replayed").is_some())
}

#[tokio::test]
async fn kept_data_survives_a_restart_and_is_one_systems_at_a_time() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().join("bank")), ..options()? };
    assert!(!is_there(&options).await?);
    let system = System::start(&options, &fixed_clock()).await?;
    start_fails(&options, &folder.path().join("bank").display().to_string()).await?;
    start_fails(&options, "is in use").await?;
    assert!(create(&system.api_url()).await?.header("idempotent-replayed").is_some());
    system.stop().await
}

#[tokio::test]
async fn what_cannot_be_used_is_an_error_that_names_it() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let (file, damaged) = (tempfile::NamedTempFile::new()?, tempfile::tempdir()?);
    std::fs::write(damaged.path().join("payments.sqlite"), "x".repeat(10_000))?;
    let (file, damaged) = (file.path().to_owned(), damaged.path().to_owned());
    // A bank that begins empty would find the reports of the one before.
    let used = tempfile::tempdir()?;
    std::fs::create_dir(used.path().join("reports"))?;
    // By default the reports are in the folder of the data.
    let unusable = Options { data: Some(file.clone()), reports: file.join("reports"), ..options()? };
    let unreachable = Options { endpoint: Some("http://127.0.0.1:1".to_owned()), ..options()? };
    for (options, says) in [
        (Options { api_port: port, ..options()? }, "--api-port"),
        (Options { dynamodb_port: port, ..options()? }, "--dynamodb-port"),
        (unusable, "give --data a writable folder"),
        (Options { data: Some(damaged), ..options()? }, "cannot open the database"),
        (Options { reports: file, ..options()? }, "give --reports a writable folder"),
        (Options { reports: used.path().to_owned(), ..options()? }, "give --reports a new folder"),
        (unreachable.clone(), "http://127.0.0.1:1,"),
        (unreachable, "DYNAMODB_ENDPOINT"),
    ] {
        start_fails(&options, says).await?;
    }
    Ok(())
}

/// A damaged database may answer for days as if nothing were wrong.
#[tokio::test]
async fn a_database_that_is_damaged_anywhere_is_found_at_the_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().to_owned()), ..options()? };
    assert!(!is_there(&options).await?);
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
    assert!(is_there(&options).await?);
    Ok(())
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
        start_fails(&options, "put a copy of the database there").await?;
        assert!(!is_there(&Options { new_bank: true, ..options.clone() }).await?);
        // The bank has a database from now on.
        assert!(is_there(&options).await?);
    }
    Ok(())
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
    let system = start(|options| {
        options.dates.calendars = Some("EUR=T2".to_owned());
        options.dates.cut_offs = Some("T2=16:00".to_owned());
    });
    let system = system.await?;
    let reply = get(&system.api_url(), "/calendars").await?.body;
    assert!(reply.contains("T2") && reply.contains("16:00") && !reply.contains("FED"), "{reply}");
    system.stop().await
}

#[test]
fn the_welcome_shows_commands_for_today() -> Result<()> {
    let today = "2026-11-20".parse()?;
    let text = welcome::text("http://127.0.0.1:8080", "http://127.0.0.1:8000", "(in memory)", "reports", today)?;
    for says in [
        "\"scheduledFor\":\"2026-11-27\"",
        // The id is that of the create above.
        "/payments/8d9a1951-d187-5122-b51e-d0e412752c83/cancel",
        // The first version of the AWS CLI does not know AWS_REGION.
        " --region us-east-1",
        "http://127.0.0.1:8080/docs",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert!(!text.contains("AWS_REGION"), "{text}");
    Ok(())
}
