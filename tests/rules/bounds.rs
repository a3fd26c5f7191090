//! Adds up what takes time: the longest chain of calls of every handler fits into its timeout, and while DynamoDB is
//! slow, the API does not take all of an account's concurrent invocations.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use payments_boot::{HTTP_BUDGET, HTTP_CALL_TIMEOUT, MARGIN};
use payments_machine::template::overrides;
use payments_sqs::{CONCURRENT_BATCHES, MAX_BATCH_MESSAGES};
use payments_store::{CALL_TIMEOUT, MAX_BATCH_GET};
use payments_tests::deployed;
use serde_json::Value;
use syn::visit::{self, Visit};

use crate::template::{API, FUNCTION, resources, template};
use crate::tree::read;

/// The concurrent invocations of an account by default, and how many of them AWS keeps unreserved.
const ACCOUNT_QUOTA: u64 = 1_000;
const UNRESERVED: u64 = 100;

/// After this time API Gateway answers instead of the function.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The feed: a million payments in half an hour, in batches of 100.
const FEED_BATCHES_PER_SECOND: u64 = (1_000_000_u64 / 100).div_ceil(30 * 60);

/// A file whose requests to the API call the store.
struct Chain {
    package: &'static str,
    path: &'static str,
    /// The number of calls in the file.
    calls: u32,
    /// The most of them that one request makes, one after the other.
    longest: u32,
    /// Whether they may begin until the end of the budget for a request.
    has_budget: bool,
}

/// The details are put or, for a date that has passed, only read. Then the head is read, beside a look for amendments. Then it is put, or
/// the details of an amendment are read, or a head that was not there is looked for again.
const CREATE: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/create.rs", calls: 7, longest: 3, has_budget: true };
/// The first details are read, then the head and its amendments, in the budget. At its end the new details are put and the head is changed.
/// If somebody else was first, the head is read again.
const AMEND: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/amend.rs", calls: 5, longest: 4, has_budget: true };
/// The details are read, and the head is changed as they say. If it was amended, it is changed as it is, and once more if somebody else was
/// first. Then the details of the amendment are read. If it is archived, it is read.
const CANCEL: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/cancel.rs", calls: 2, longest: 5, has_budget: false };

/// All of them. One payment takes two reads, one more if it was amended, and its versions as many as the budget allows. A page of a list takes
/// one, and then one for the data of some of its payments.
const CHAINS: [Chain; 20] = [
    CREATE,
    AMEND,
    CANCEL,
    Chain {
        package: "query-account",
        path: "functions/query-account/src/function.rs",
        calls: 5,
        longest: 3,
        has_budget: true,
    },
    Chain {
        package: "query-account",
        path: "functions/query-account/src/page.rs",
        calls: 1,
        longest: 1,
        has_budget: true,
    },
    // All endpoints are read beside the log's head and the number of created ones. Then a page of the log, beside all endpoints again, or the endpoint's
    // consumer is read, and one of them is written between the calls of the audit trail. A damaged endpoint is read after it was written, all at once.
    // A create that was overtaken within the budget is tried again: the number, all endpoints, the write, and the trail's outcome.
    Chain {
        package: "webhooks",
        path: "functions/webhooks/src/endpoints.rs",
        calls: 19,
        longest: 5,
        has_budget: false,
    },
    // An endpoint, its consumer and the log's head are read at once. Then a page of the log is read, and the consumer is written between the calls of the
    // audit trail. If somebody else was first, it is read again.
    Chain { package: "webhooks", path: "functions/webhooks/src/operate.rs", calls: 5, longest: 5, has_budget: false },
    Chain { package: "webhooks", path: "functions/webhooks/src/audited.rs", calls: 2, longest: 2, has_budget: false },
    // Between the calls of the audit trail. If the function ends there, the trail has no outcome, and a repeat looks.
    Chain {
        package: "console",
        path: "functions/console/src/actions/cancel.rs",
        calls: 6,
        longest: 4,
        has_budget: true,
    },
    // The switch is read and changed, up to two times. A preview reads it, and the counters.
    Chain {
        package: "console",
        path: "functions/console/src/actions/switch.rs",
        calls: 3,
        longest: 4,
        has_budget: false,
    },
    // The details, the head, the switch and the write, between the calls of the audit trail.
    Chain {
        package: "console",
        path: "functions/console/src/actions/send_again.rs",
        calls: 3,
        longest: 4,
        has_budget: false,
    },
    // The write, and a look after a failed condition.
    Chain {
        package: "console",
        path: "functions/console/src/actions/finding.rs",
        calls: 2,
        longest: 2,
        has_budget: false,
    },
    Chain {
        package: "console",
        path: "functions/console/src/actions/endpoint.rs",
        calls: 10,
        longest: 5,
        has_budget: false,
    },
    Chain { package: "query-due", path: "functions/query-due/src/date.rs", calls: 2, longest: 1, has_budget: true },
    Chain { package: "console", path: "functions/console/src/views/list.rs", calls: 2, longest: 1, has_budget: true },
    // Twice one after the other, and each as long as there is time.
    Chain {
        package: "console",
        path: "functions/console/src/views/waiting.rs",
        calls: 1,
        longest: 2,
        has_budget: true,
    },
    // A search looks for ids, for an account and on a date while there is time, and then shows what it has found.
    Chain { package: "console", path: "functions/console/src/views/find.rs", calls: 5, longest: 2, has_budget: true },
    Chain {
        package: "console",
        path: "functions/console/src/views/find/dates.rs",
        calls: 2,
        longest: 1,
        has_budget: true,
    },
    Chain {
        package: "console",
        path: "functions/console/src/views/account.rs",
        calls: 1,
        longest: 1,
        has_budget: true,
    },
    // A search may be before it. The details and the head are read. Then the findings are read beside the amendments, while there is time, and
    // beside the endpoints with the log's head, and then the segments at their places. Calls within `join!` are not counted.
    Chain {
        package: "console",
        path: "functions/console/src/views/payment.rs",
        calls: 3,
        longest: 4,
        has_budget: true,
    },
];

impl Chain {
    /// The longest that one payment takes, if a call takes this long.
    fn of_one(&self, call: Duration) -> Duration {
        call * self.longest
    }

    /// The longest that a request takes.
    fn of_request(&self, call: Duration) -> Duration {
        let budget = if self.has_budget { HTTP_BUDGET } else { Duration::ZERO };
        budget + self.of_one(call)
    }
}

/// The ways in which a file looks at the deadline before its calls: by itself, or through
/// `shared/work`, which drives or retries.
const LOOKS: [&str; 3] = ["deadline.has_come()", " drive(&mut self, ", "payments_work::retried("];

/// Functions that look at their deadline before their calls, and the files in which they look.
const UNTIL_DEADLINE: [(&str, &[&str]); 8] = [
    ("daily-due-sweeper", &["functions/daily-due-sweeper/src/sweep.rs", "functions/daily-due-sweeper/src/redrive.rs"]),
    ("settle", &["functions/settle/src/message.rs"]),
    ("stream-aggregator", &["functions/stream-aggregator/src/function.rs"]),
    ("recount", &["functions/recount/src/look.rs"]),
    ("redate", &["functions/redate/src/shard.rs"]),
    ("undo", &["functions/undo/src/part.rs", "functions/undo/src/select.rs"]),
    ("archive", &["functions/archive/src/shard.rs"]),
    ("report", &["functions/report/src/retry.rs", "functions/report/src/drain.rs", "functions/report/src/publish.rs"]),
];

/// The timeout of a package's function.
fn timeout_of(name: &str) -> Result<Duration> {
    Ok(deployed()?.function(name)?.timeout.to_std()?)
}

/// The number of calls to the store in a file, each place once.
fn calls_in(path: &str) -> Result<u32> {
    struct Calls(u32);
    impl<'ast> Visit<'ast> for Calls {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            let is_store = match &*call.receiver {
                syn::Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "store"),
                syn::Expr::Path(path) => path.path.is_ident("store"),
                _ => false,
            };
            self.0 += u32::from(is_store);
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

/// The value of a property, for a parameter's value in this environment.
fn number(template: &Value, value: &Value, environment: &BTreeMap<String, String>) -> Result<u64> {
    let Some(parameter) = value["!Ref"].as_str() else { return value.as_u64().context("not a number") };
    let default = || template["Parameters"][parameter]["Default"].as_u64();
    let given = environment.get(parameter).map(|given| given.parse());
    given.transpose()?.or_else(default).with_context(|| parameter.to_owned())
}

/// The most concurrent invocations of `ingest` while each call takes as long as it may: API Gateway
/// allows a burst, and then its rate.
fn concurrency_of_ingest(template: &Value, environment: &BTreeMap<String, String>) -> Result<u64> {
    let [(_, api)] = resources(template, API)?[..] else { anyhow::bail!("one API") };
    let routes = [
        ("POST /accounts/{accountId}/payments", CREATE.of_one(HTTP_CALL_TIMEOUT)),
        ("POST /payment-batches", CREATE.of_request(HTTP_CALL_TIMEOUT)),
        ("POST /accounts/{accountId}/payment-batches", CREATE.of_request(HTTP_CALL_TIMEOUT)),
        ("PUT /accounts/{accountId}/payments/{paymentId}", AMEND.of_request(HTTP_CALL_TIMEOUT)),
        ("POST /accounts/{accountId}/payments/{paymentId}/cancel", CANCEL.of_request(HTTP_CALL_TIMEOUT)),
    ];
    let mut concurrency = 0;
    for (route, longest) in routes {
        let settings = &api["Properties"]["RouteSettings"][route];
        let rate = number(template, &settings["ThrottlingRateLimit"], environment).context(route)?;
        let burst = number(template, &settings["ThrottlingBurstLimit"], environment).context(route)?;
        concurrency += burst + rate * longest.as_secs();
    }
    Ok(concurrency)
}

#[test]
fn ingest_leaves_concurrency_to_the_others_while_dynamodb_is_slow() -> Result<()> {
    let template = template()?;
    let reserved: u64 = resources(&template, FUNCTION)?
        .iter()
        .filter_map(|(_, function)| function["Properties"]["ReservedConcurrentExecutions"]["!If"][1].as_u64())
        .sum();
    ensure!(reserved <= ACCOUNT_QUOTA - UNRESERVED, "{reserved} are reserved");
    for environment in ["default", "dev", "prod"] {
        let given = overrides(environment)?;
        let is_reserved = given.get("ReserveConcurrency").is_some_and(|given| given == "true");
        let concurrency = concurrency_of_ingest(&template, &given)?;
        ensure!(
            is_reserved || concurrency <= ACCOUNT_QUOTA - UNRESERVED,
            "{environment}: ingest may take {concurrency} concurrent invocations"
        );
        assert_eq!(is_reserved, environment == "prod", "{environment}");
    }
    let [(_, api)] = resources(&template, API)?[..] else { anyhow::bail!("one API") };
    let batches = &api["Properties"]["RouteSettings"]["POST /payment-batches"]["ThrottlingRateLimit"];
    ensure!(batches.as_u64().is_some_and(|rate| rate > FEED_BATCHES_PER_SECOND), "the feed needs room for its retries");
    Ok(())
}
