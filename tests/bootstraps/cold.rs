//! The time of cold functions to their first response, beside an empty function: Lambda's runtime, an SDK client and no
//! work (`shared/boot/examples/empty.rs`). The two are measured in pairs, so that other load slows both. Times are
//! printed and not judged: they depend on the machine.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use payments_boot::Lookup;
use payments_tests::events::files::function_of;

use crate::deployed::Deployed;
use crate::events::Arranged;
use crate::tools::Tools;

/// The first event of each function, an addition to its name in the row, and a text in place of the
/// event that finds nothing to do, so that the start is compared and not the work.
const FIRST: [(&str, &str, Option<&str>); 17] = [
    ("ingest/create", "", None),
    ("query-account/list", "", None),
    ("query-due/transaction", "", None),
    ("webhooks/get-unknown", "", None),
    ("console/payment-unknown", "", None),
    ("daily-due-sweeper/action-unknown", "", Some(r#"{"action":"sweep"}"#)),
    ("dispatch/became-pending", "", None),
    ("settle/processed", "", None),
    ("stream-aggregator/became-pending", "", None),
    // The least work of these two functions takes 27 queries, and 3 in a row. So each also gets an event that it rejects.
    ("recount/from-after-to", ", rejecting", None),
    ("recount/action-unknown", ", one date", Some(r#"{"action":"recount","from":"2090-06-15","to":"2090-06-15"}"#)),
    // Without calendars it has nothing to look at.
    ("redate/action-unknown", "", Some(r#"{"action":"look"}"#)),
    ("undo/action-unknown", "", Some(r#"{"action":"continue"}"#)),
    ("archive/action-unknown", ", rejecting", None),
    ("archive/action-unknown", ", one shard", Some(r#"{"action":"archive"}"#)),
    ("report/action-unknown", "", Some(r#"{"action":"report"}"#)),
    ("publish/action-unknown", "", Some(r#"{"action":"publish"}"#)),
];

/// Measures `COLD_STARTS` pairs of each function and the program at `EMPTY_BOOTSTRAP`. Returns whether the
/// environment asks for it.
pub(crate) fn measure(tools: &Tools) -> Result<bool> {
    let lookup = Lookup::environment();
    let Some(pairs) = lookup.optional::<usize>("COLD_STARTS")? else { return Ok(false) };
    let empty: String =
        lookup.required("EMPTY_BOOTSTRAP", "the program to compare with, example empty of payments-boot")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("| function | zip | first response | the empty function's | ratio |\n|---|---|---|---|---|");
    for (event, case, text) in FIRST {
        let row = runtime.block_on(row(tools, Path::new(&empty), (event, case), text, pairs));
        println!("{}", row.with_context(|| event.to_owned())?);
    }
    Ok(true)
}

/// A row of the table: medians, and the median of the pairs' ratios.
async fn row(
    tools: &Tools,
    empty: &Path,
    (event, case): (&str, &str),
    text: Option<&str>,
    pairs: usize,
) -> Result<String> {
    let function = Deployed::for_package(function_of(event))?;
    let bootstrap = tools.bootstrap(&function.id, &function.package)?;
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let mut ratios = Vec::new();
    for _ in 0..pairs {
        let mut arranged = Arranged::for_event(event).await?;
        // The start of `settle` does not depend on its pace.
        arranged.other.insert("SETTLEMENTS_PER_SECOND".to_owned(), "0".to_owned());
        if let Some(text) = text {
            text.clone_into(&mut arranged.event);
            // One shard, so that there is one query and not ten.
            arranged.other.insert("READ_SHARDS".to_owned(), "1".to_owned());
        }
        let least = first_response(tools, empty, &arranged).await?;
        let took = first_response(tools, &bootstrap, &arranged).await?;
        ratios.push(took * 100 / least.max(1));
        ours.push(took);
        theirs.push(least);
    }
    let zip = hundredths(u128::try_from(deflated(&bootstrap)?)? / 10_000);
    let (ours, theirs) = (hundredths(median(ours) / 10), hundredths(median(theirs) / 10));
    let (package, ratio) = (&function.package, hundredths(median(ratios)));
    Ok(format!("| `{package}`{case} | {zip} MB | {ours} ms | {theirs} ms | {ratio} |"))
}

/// Returns the microseconds from the first event, at which the emulator starts the program, to its response.
async fn first_response(tools: &Tools, program: &Path, arranged: &Arranged) -> Result<u128> {
    let sandbox = arranged.sandbox(tools, program).await?;
    let began = Instant::now();
    let response = sandbox.invoke(&arranged.event).await?;
    let took = began.elapsed();
    ensure!(response.status == 200, "it responds with {}: {}", response.status, sandbox.said()?);
    Ok(took.as_micros())
}

/// Returns the size of a program in a zip file, without the file's own few hundred bytes.
fn deflated(program: &Path) -> Result<usize> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    std::io::copy(&mut std::fs::File::open(program)?, &mut encoder)?;
    Ok(encoder.finish()?.len())
}

fn median(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn hundredths(number: u128) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}
