//! What a person sees when the bank opens: where it is, and what to try.

use payments_model::BusinessDate;

/// The greeting, with commands that work as they stand.
#[must_use]
pub fn text(api: &str, dynamodb: &str, kept: &str, today: BusinessDate) -> String {
    let due = today.plus_days(7);
    format!(
        r#"The bank is open.

  HTTP API      {api}
  DynamoDB API  {dynamodb}   {kept}

Put a payment in. Run it twice: the second answer is the same payment, marked Idempotent-Replayed.

  curl -i {api}/accounts/acc-1/payments \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: rent-{due}' \
    -d '{{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"{due}","data":{{"note":"rent"}}}}'

See what the account has coming:

  curl '{api}/accounts/acc-1/payments?include=data'

Take it back; the id is the "paymentId" of the first answer:

  curl -X POST {api}/accounts/acc-1/payments/PAYMENT_ID/cancel

Look into the tables:

  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION=us-east-1 \
    aws dynamodb scan --table-name payments --endpoint-url {dynamodb}

Ctrl-C closes the bank."#
    )
}
