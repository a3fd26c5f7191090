//! What a person sees when the bank opens: where it is, and what to try.

use anyhow::Result;
use payments_model::{AccountId, BusinessDate, IdempotencyKey, PaymentId};

/// The greeting, with commands that work as they stand.
///
/// # Errors
/// Never in practice: the example's account and key are well-formed.
pub fn text(api: &str, dynamodb: &str, kept: &str, today: BusinessDate) -> Result<String> {
    let due = today.plus_days(7);
    let key = format!("rent-{due}");
    let payment_id = PaymentId::derive(&"acc-1".parse::<AccountId>()?, &key.parse::<IdempotencyKey>()?);
    Ok(format!(
        r#"The bank is open.

  HTTP API      {api}
  DynamoDB API  {dynamodb}   {kept}

Put a payment in. Run it twice: the second answer is the same payment, marked Idempotent-Replayed.

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: {key}' \
    -d '{{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"{due}","data":{{"note":"rent"}}}}'

See what the account has coming:

  curl '{api}/accounts/acc-1/payments?include=data'

Take it back:

  curl -X POST {api}/accounts/acc-1/payments/{payment_id}/cancel

Look into the tables:

  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION=us-east-1 \
    aws dynamodb scan --table-name payments --endpoint-url {dynamodb}

Ctrl-C closes the bank."#
    ))
}
