//! Without log and journal: cancels that only the old hot table or people know are repeated.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use payments_model::{AccountId, BusinessDate, HeadKey, PaymentId, ShardCount, Status, UtcSecond};
use payments_store::key::{account_partition, head_sort};
use payments_store::{DueRange, DueUntil, Store};
use serde_json::{Value, json};

use crate::call::Call;
use crate::note::{Kind, Note};
use crate::stack::StackNow;
use crate::stages::{fact, wait};
use crate::step::{Act, Runner, Step, Want};

/// The heads that one query reads.
const PAGE: u16 = 1_000;

/// The client that trails and events name.
const CLIENT: &str = "restore";

/// The most times that the logs are asked whether a query is complete.
const MAX_ASKED: u32 = 60;

/// A payment whose cancel the restore took back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    account: AccountId,
    payment: PaymentId,
    /// The sort key of its head, if a table told it.
    sort: Option<String>,
}

/// The text is not a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected ACCOUNT/ID: a payment's account and its id")]
pub struct LostError;

impl FromStr for Lost {
    type Err = LostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (account, payment) = text.split_once('/').ok_or(LostError)?;
        let account = account.parse().map_err(|_| LostError)?;
        Ok(Self { account, payment: payment.parse().map_err(|_| LostError)?, sort: None })
    }
}

/// Returns the payments of a list that people give: `ACCOUNT/ID` a line.
///
/// # Errors
/// If the file cannot be read, or a line is not a payment.
pub fn listed(path: &Path) -> Result<Vec<Lost>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| {
            line.parse().with_context(|| format!("line {number} of {name} is {line:?}, and nothing is done"))
        })
        .collect()
}

/// Returns the payments that the old hot table has cancelled, and the new one has scheduled.
///
/// # Errors
/// If a table cannot be read.
pub async fn lost(old: &Store, new: &Store, shards: ShardCount) -> Result<Vec<Lost>> {
    ensure!(
        old.tables().payments != new.tables().payments,
        "the stack still has the old hot table; import the new one first"
    );
    let cancelled = heads(old, shards, Status::Cancelled).await?;
    let scheduled = heads(new, shards, Status::Scheduled).await?;
    Ok(cancelled.intersection(&scheduled).cloned().collect())
}

/// Counts the scheduled payments of the new hot table, which are paid when they are due.
///
/// # Errors
/// If the table cannot be read.
pub async fn scheduled(new: &Store, shards: ShardCount) -> Result<usize> {
    Ok(heads(new, shards, Status::Scheduled).await?.len())
}

async fn heads(store: &Store, shards: ShardCount, status: Status) -> Result<BTreeSet<Lost>> {
    let mut heads = BTreeSet::new();
    for shard in shards.all() {
        let mut after = None;
        loop {
            let range = DueRange { shard, status, until: DueUntil::Before(BusinessDate::MAX), after };
            let page = store.due_page(&range, PAGE).await?;
            for row in page.rows {
                heads.insert(Lost::from_key(&row?.head));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(heads)
}

impl Lost {
    /// The payment's id.
    pub fn payment(&self) -> PaymentId {
        self.payment
    }

    fn from_key(key: &HeadKey) -> Self {
        Self { account: key.account.clone(), payment: key.slot.payment_id, sort: Some(head_sort(key.slot)) }
    }

    /// The command that reads the status of its head, and the answer's part.
    fn status(&self, table: &str) -> (Call, &'static str) {
        let partition = json!({"S": account_partition(&self.account)});
        if let Some(sort) = &self.sort {
            let call = Call::aws(&format!("dynamodb get-item --consistent-read --table-name {table} --key"));
            return (call.with(json!({"pk": partition, "sk": {"S": sort}}).to_string()), "/Item/status/S");
        }
        // Only the details say when it is due, and they may be lost.
        let call =
            Call::aws(&format!("dynamodb query --consistent-read --table-name {table} --key-condition-expression"))
                .with("pk = :account")
                .with("--expression-attribute-values")
                .with(json!({":account": partition}).to_string())
                .with("--query")
                .with(format!("Items[?ends_with(sk.S, '#{}')].status.S | [0]", self.payment));
        (call, "")
    }
}

/// The steps that cancel these payments: a refused cancel stops no other. Trails and events show them as cancels of a client,
/// `restore`.
///
/// # Errors
/// If the stack is not this system's.
pub fn cancels(note: &Note, stack: &StackNow, lost: &[Lost]) -> Result<Vec<Step>> {
    let (function, claim) = (stack.resource("IngestFunction")?, stack.parameter("AccountClaim")?);
    let of_one = |one: &Lost| {
        let (account, payment) = (one.account.to_string(), one.payment.to_string());
        let call = Call::invoke(function, &event(&account, &payment, claim));
        let (read, part) = one.status(&note.hot.new);
        let remedy = "compare the payment with the transaction service: never cancel what it has paid";
        let done = fact(format!("status of {payment}"), read, part, Want::Is(json!("CANCELLED")), remedy);
        Step {
            needs: vec![stack.has_table(Kind::Hot, &note.hot.new)],
            act: Act::Try(call),
            within: std::time::Duration::ZERO,
            ..wait(format!("Cancel {payment} of {account}"), vec![done])
        }
    };
    Ok(lost.iter().map(of_one).collect())
}

/// The event of API Gateway for a client's cancel.
fn event(account: &str, payment: &str, claim: &str) -> Value {
    let route = "POST /accounts/{accountId}/payments/{paymentId}/cancel";
    let path = format!("/accounts/{account}/payments/{payment}/cancel");
    json!({
        "version": "2.0", "routeKey": route, "rawPath": path, "rawQueryString": "", "headers": {},
        "requestContext": {
            "authorizer": {"jwt": {"claims": {
                "client_id": CLIENT, "scope": "payments/write", claim: account,
            }, "scopes": null}},
            "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": format!("restore-{payment}"), "routeKey": route, "stage": "$default",
        },
        "pathParameters": {"accountId": account, "paymentId": payment}, "isBase64Encoded": false,
    })
}

/// Counts the cancels and the amendments since T that clients were told about, repeated ones too.
///
/// # Errors
/// If the access log cannot be queried.
pub fn told(note: &Note, runner: &mut Runner<'_>, now: UtcSecond) -> Result<()> {
    let to = note.hot.to.context("the hot table was not restored")?;
    let [from, until] = [to, now].map(|at| at.as_chrono().timestamp());
    for (what, route) in [("cancels", "/cancel/"), ("amendments", "/PUT/")] {
        let start = Call::aws(&format!(
            "logs start-query --log-group-name /aws/vendedlogs/{}/api --start-time {from} --end-time {until} --query-string",
            note.stack
        ))
        .with(format!("filter route like {route} and status like /200/ | stats count() as told"));
        let started = runner.read(&start)?;
        let id = started["queryId"].as_str().context("the stack has no access log")?;
        let results = Call::aws(&format!("logs get-query-results --query-id {id}"));
        let mut answer = runner.read(&results)?;
        for _ in 0..MAX_ASKED {
            if ["Complete", "Failed", "Cancelled", "Timeout"].iter().any(|end| answer["status"] == *end) {
                break;
            }
            (runner.pause)(std::time::Duration::from_secs(2));
            answer = runner.read(&results)?;
        }
        ensure!(answer["status"] == "Complete", "the query of {what} is {}; run this again", answer["status"]);
        let count = answer["results"][0][0]["value"].as_str().unwrap_or("0");
        (runner.say)(&format!("Clients were told about {count} {what} since {to}, repeated ones included."));
    }
    Ok(())
}
