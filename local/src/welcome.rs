//! What a person sees when the bank opens: where it is, and what to try.

use anyhow::{Context as _, Result};
use payments_model::{AccountId, BusinessDate, IdempotencyKey, PaymentId, Settlement, TransactionId};

use crate::TRANSACTION_SERVICE;
use crate::docs::PAGE;
use crate::gateway::TOKEN_PATH;

/// The greeting, with commands that work as they stand.
///
/// # Errors
/// Never in practice: the example's account and key are well-formed.
pub fn text(api: &str, dynamodb: &str, kept: &str, reports: &str, today: BusinessDate) -> Result<String> {
    let due = today.plus_days(7);
    let key = format!("rent-{due}");
    let account: AccountId = "acc-1".parse()?;
    let payment_id = PaymentId::derive(&account, &key.parse::<IdempotencyKey>()?);
    let (coffee, transaction) = processed(&account, &format!("coffee-{today}"))?;
    Ok(format!(
        r#"The bank is open.

  HTTP API      {api}   described on {api}{PAGE}
  DynamoDB API  {dynamodb}   {kept}
  Reports       {reports}

Put a payment in. Run it twice: the second answer is the same payment, marked Idempotent-Replayed.

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: {key}' \
    -d '{{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"{due}","data":{{"note":"rent"}}}}'

See what the account has coming:

  curl '{api}/accounts/acc-1/payments?include=data'

Take it back:

  curl -X POST {api}/accounts/acc-1/payments/{payment_id}/cancel

A payment for today falls due at once. Within about a minute it is swept, sent to the transaction
service and settled, and each step is a line below:

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: {coffee}' \
    -d '{{"payeeAccountId":"acc-3","amountMinor":350,"currency":"GBP","scheduledFor":"{today}"}}'

  curl '{api}/payments?dueDate={today}'
  curl {api}/transactions/{transaction}
  curl '{api}/counts?to={today}'

Look into the tables:

  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION=us-east-1 \
    aws dynamodb scan --table-name payments --endpoint-url {dynamodb}

Ctrl-C closes the bank."#
    ))
}

/// The greeting of a bank that wants tokens: how to get one first, and every command with it.
#[must_use]
pub fn with_tokens(greeting: &str, api: &str) -> String {
    let how = format!(
        r#"Get a token for a machine that may do everything. It is good for twelve hours, as long as the bank is open:

  TOKEN=$(curl -s {api}{TOKEN_PATH} -d grant_type=client_credentials | sed 's/.*"access_token":"\([^"]*\).*/\1/')

One that may only look, and one for a customer with two accounts, have besides grant_type:

  --data-urlencode scope=payments/read
  -d scope=payments/read+payments/write -d account=acc-1 -d account=acc-2

Put a payment in."#
    );
    greeting.replace("  curl ", "  curl --oauth2-bearer \"$TOKEN\" ").replacen("Put a payment in.", &how, 1)
}

/// A key that begins like this and makes a payment of the account that the transaction service does
/// not refuse, and the transaction id it gets.
fn processed(account: &AccountId, begins: &str) -> Result<(String, TransactionId)> {
    let outcome = |number: u32| {
        let key = format!("{begins}-{number}");
        match TRANSACTION_SERVICE.outcome_of(PaymentId::derive(account, &key.parse::<IdempotencyKey>().ok()?)) {
            Settlement::Processed(transaction) => Some((key, transaction)),
            Settlement::Failed(_) => None,
        }
    };
    (1..100).find_map(outcome).context("2 payments in a hundred fail, and not all of the first hundred")
}
