//! The text that `cargo local` prints when it has started: URLs, and commands to try.

use anyhow::{Context as _, Result};
use payments_machine::environment::TOKEN_PATH;
use payments_model::{AccountId, BusinessDate, IdempotencyKey, PaymentId, Settlement, TransactionId};

use crate::TRANSACTION_SERVICE;
use crate::docs::PAGE;

/// The path of the console's page.
const CONSOLE: &str = "/console";

/// Returns the text, whose commands work as they stand.
pub fn text(api: &str, dynamodb: &str, kept: &str, reports: &str, today: BusinessDate) -> Result<String> {
    let due = today.plus_days(7);
    let key = format!("rent-{due}");
    let account: AccountId = "acc-1".parse()?;
    let payment_id = PaymentId::derive(&account, &key.parse::<IdempotencyKey>()?);
    let (coffee, transaction) = processed(&account, &format!("coffee-{today}"))?;
    Ok(format!(
        r#"The system is running.

  HTTP API      {api}   described on {api}{PAGE}
  Console       {api}{CONSOLE}   what the payments are doing, in a browser
  DynamoDB API  {dynamodb}   {kept}
  Reports       {reports}   with the journal of events

Create a payment. Run it twice: the second response is the same payment, marked Idempotent-Replayed.

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: {key}' \
    -d '{{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"{due}","data":{{"note":"rent"}}}}'

List the payments of the account:

  curl '{api}/accounts/acc-1/payments?include=data'

Cancel the payment:

  curl -X POST {api}/accounts/acc-1/payments/{payment_id}/cancel

A payment for today is due at once. Within about a minute it is claimed, sent to the transaction
service and settled. A line is logged below for each step:

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: {coffee}' \
    -d '{{"payeeAccountId":"acc-3","amountMinor":350,"currency":"GBP","scheduledFor":"{today}"}}'

  curl '{api}/payments?dueDate={today}'
  curl '{api}/payments?transactionId={transaction}'
  curl '{api}/counts?to={today}'

Scan a table:

  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local \
    aws dynamodb scan --table-name payments --endpoint-url {dynamodb} --region us-east-1

Ctrl-C stops it."#
    ))
}

/// Returns the text for a system that requires tokens: how to get one, and every command with it.
pub fn with_tokens(text: &str, api: &str) -> String {
    let how = format!(
        r#"Get a token with every scope. It is valid for twelve hours, or until the system stops:

  TOKEN=$(curl -s {api}{TOKEN_PATH} -d grant_type=client_credentials | sed 's/.*"access_token":"\([^"]*\).*/\1/')

To get a token that can only read, or one for a customer with two accounts, add to grant_type:

  --data-urlencode scope=payments/read
  -d scope=payments/read+payments/write -d account=acc-1 -d account=acc-2

Create a payment."#
    );
    text.replace("  curl ", "  curl --oauth2-bearer \"$TOKEN\" ").replacen("Create a payment.", &how, 1)
}

/// Returns a key that begins like this, for a payment that the transaction service processes, and its transaction id.
fn processed(account: &AccountId, begins: &str) -> Result<(String, TransactionId)> {
    let candidate = |number: u32| {
        let key = format!("{begins}-{number}");
        match TRANSACTION_SERVICE.settlement_of(PaymentId::derive(account, &key.parse::<IdempotencyKey>().ok()?)) {
            Settlement::Processed(transaction) => Some((key, transaction)),
            Settlement::Failed(_) => None,
        }
    };
    (1..100).find_map(candidate).context("the transaction service fails all of the first hundred payments")
}
