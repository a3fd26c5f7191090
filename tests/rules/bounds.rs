//! Adds up what takes time: the longest chain of calls of every handler fits into its timeout.

mod chains;
mod limits;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use payments_boot::MARGIN;
use payments_model::LAST_CREATE;
use payments_sqs::{CONCURRENT_BATCHES, MAX_BATCH_MESSAGES};
use payments_store::{CALL_TIMEOUT, CLOCKS_DIFFER, MAX_BATCH_GET};
use payments_tests::deployed;
use syn::visit::{self, Visit};

use self::chains::CHAINS;
use crate::template::template;
use crate::tree::read;

/// After this time API Gateway answers instead of the function.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The ways in which a file looks at the deadline before its calls: by itself, or through
/// `shared/work`, which drives or retries.
const LOOKS: [&str; 4] =
    ["deadline.has_come()", " drive(&mut self, ", "payments_work::retried(", " retried(deadline, "];

/// Functions that look at their deadline before their calls, and the files in which they look.
const UNTIL_DEADLINE: [(&str, &[&str]); 9] = [
    ("daily-due-sweeper", &["functions/daily-due-sweeper/src/sweep.rs", "functions/daily-due-sweeper/src/redrive.rs"]),
    ("settle", &["functions/settle/src/message.rs"]),
    ("stream-aggregator", &["functions/stream-aggregator/src/function.rs"]),
    ("recount", &["functions/recount/src/look.rs"]),
    ("redate", &["functions/redate/src/shard.rs"]),
    ("undo", &["functions/undo/src/part.rs", "functions/undo/src/select.rs"]),
    ("archive", &["functions/archive/src/shard.rs"]),
    ("seal", &["functions/seal/src/date.rs", "functions/seal/src/clear.rs"]),
    ("report", &["functions/report/src/retry.rs", "functions/report/src/drain.rs", "functions/report/src/publish.rs"]),
];

/// The timeout of a package's function.
fn timeout_of(name: &str) -> Result<Duration> {
    Ok(deployed()?.function(name)?.timeout.to_std()?)
}

/// The number of calls to the store and to sealed rows in a file, each place once.
fn calls_in(path: &str) -> Result<u32> {
    struct Calls(u32);
    impl<'ast> Visit<'ast> for Calls {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            let is_called = |name: &str| match &*call.receiver {
                syn::Expr::Field(field) => matches!(&field.member, syn::Member::Named(member) if member == name),
                syn::Expr::Path(path) => path.path.is_ident(name),
                _ => false,
            };
            self.0 += u32::from(is_called("store") || is_called("sealed"));
            visit::visit_expr_method_call(self, call);
        }
    }
    let mut calls = Calls(0);
    calls.visit_file(&syn::parse_file(&read(path)?)?);
    Ok(calls.0)
}

#[test]
fn requests_end_before_their_functions_and_api_gateways_timeout() -> Result<()> {
    for chain in CHAINS {
        let (path, timeout) = (chain.path, timeout_of(chain.package)?);
        ensure!(timeout < GATEWAY_TIMEOUT, "{path}");
        assert_eq!(calls_in(path)?, chain.calls, "{path}: how long is its longest chain now?");
        // An engine on one machine has the longer timeout of a call.
        let longest = chain.of_request(CALL_TIMEOUT);
        ensure!(longest < timeout, "{path}: {longest:?} of {timeout:?}");
    }
    // A transaction id is looked up once, and then up to two heads of each table are read.
    ensure!(CALL_TIMEOUT * (1 + 2 * 2) < timeout_of("query-due")?);
    Ok(())
}

#[test]
fn what_follows_a_look_at_the_deadline_fits_into_the_margin() -> Result<()> {
    // A copy that the archive writes twice, or a page and its heads that the redrive reads.
    ensure!(CALL_TIMEOUT * 2 < MARGIN);
    for (name, paths) in UNTIL_DEADLINE {
        let timeout = timeout_of(name)?;
        ensure!(MARGIN * 2 < timeout, "{name}: the margin takes more than half of {timeout:?}");
        for path in paths {
            let text = read(path)?;
            ensure!(LOOKS.iter().any(|look| text.contains(look)), "{path} does not look at the deadline");
        }
    }
    for path in ["shared/work/src/drive.rs", "shared/work/src/retried.rs"] {
        ensure!(read(path)?.contains(LOOKS[0]), "{path} does not look at the deadline");
    }
    let report = Duration::from_secs(u64::try_from(report::FILE_CALL.num_seconds())?);
    ensure!((MARGIN + report) * 2 < timeout_of("report")?);
    // A look at a payment of an undo takes four calls. Then its part is stored, and the place moves.
    let undo = Duration::from_secs(u64::try_from(undo::RESERVED.num_seconds())?);
    ensure!(CALL_TIMEOUT * (4 + 1) + report < undo && (MARGIN + undo) * 2 < timeout_of("undo")?);
    Ok(())
}

/// An undo says of a create that it never comes, only once no create can end any more, and before the archive begins.
#[test]
fn the_last_create_of_a_date_ends_before_an_undo_gives_it_up() -> Result<()> {
    let slowest = timeout_of("ingest")? + CLOCKS_DIFFER.to_std()?;
    ensure!(slowest < LAST_CREATE.to_std()?, "{slowest:?}");
    Ok(())
}

/// Nothing asks whether a lease is still there when a request begins.
#[test]
fn a_run_of_publish_is_over_before_its_leases() -> Result<()> {
    ensure!(timeout_of("publish")? + Duration::from_secs(5) <= publish::LEASE.to_std()?);
    Ok(())
}

/// `dispatch` has no deadline, because its batches are small: one read of heads, one of settlements, updates of those heads at
/// once, one read of details, and a few sends.
#[test]
fn a_batch_of_dispatch_fits_into_its_timeout() -> Result<()> {
    let template = template()?;
    let mapping = &template["Resources"]["DispatchFunction"]["Properties"]["Events"]["BecamePending"]["Properties"];
    let batch = usize::try_from(mapping["BatchSize"].as_u64().context("no batch size")?)?;
    ensure!(batch <= MAX_BATCH_GET);
    let rounds = batch.div_ceil(MAX_BATCH_MESSAGES).div_ceil(CONCURRENT_BATCHES);
    let longest = CALL_TIMEOUT * u32::try_from(4 + rounds)?;
    ensure!(longest < timeout_of("dispatch")?, "{longest:?}");
    Ok(())
}
