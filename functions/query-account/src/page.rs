//! Pages of an account's payments, cut before Lambda's response becomes too large.

use payments_boot::Deadline;
use payments_http::{PaymentView, Problem};
use payments_model::{Head, HeadSort, JsonText, PaymentId};
use payments_store::{AccountPage, Store};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::plan::Plan;

/// The largest page, in bytes of Lambda's response, where the body is a JSON string and each quote and backslash
/// takes two bytes. Lambda's own limit is 6 MB.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The bytes kept for the object around the payments and its cursor.
const FRAME_BYTES: usize = 1_024;

/// How many payments' data is read at once: the most keys of one BatchGetItem.
const DATA_CHUNK: usize = 100;

/// A page's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageView {
    payments: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// A page under construction.
struct Page {
    payments: Vec<Box<RawValue>>,
    bytes: usize,
    last: Option<HeadSort>,
}

impl Page {
    /// Adds a payment, unless the page is full.
    fn push(&mut self, head: &Head, data: Option<&JsonText>) -> Result<bool, Problem> {
        let view = PaymentView::of(head).with_data(data)?;
        let json = serde_json::value::to_raw_value(&view).map_err(Problem::internal)?;
        let bytes = self.bytes + escaped_bytes(json.get()) + ",".len();
        // The first payment always fits: a payment is far smaller than a page.
        if bytes > MAX_PAGE_BYTES {
            return Ok(false);
        }
        self.bytes = bytes;
        self.payments.push(json);
        self.last = Some(head.sort());
        Ok(true)
    }
}

/// Renders a page of heads, with the payments' data if the plan includes it.
pub(crate) async fn render(
    store: &Store,
    plan: &Plan,
    read: AccountPage,
    deadline: &Deadline,
) -> Result<PageView, Problem> {
    let mut page = Page { payments: Vec::new(), bytes: FRAME_BYTES, last: None };
    let mut full = false;
    for heads in read.heads.chunks(DATA_CHUNK) {
        let data = if plan.with_data {
            let ids: Vec<PaymentId> = heads.iter().map(|head| head.payment_id).collect();
            store.data_of(&ids).await?
        } else {
            vec![None; heads.len()]
        };
        for (head, data) in heads.iter().zip(data) {
            full = full || !page.push(head, data.as_ref())?;
        }
        // If reads are slow, the page ends early, and its cursor continues there.
        full = full || deadline.has_come();
        if full {
            break;
        }
    }
    let all = page.payments.len() == read.heads.len();
    let next = if all { read.next } else { page.last };
    Ok(PageView { payments: page.payments, next_cursor: next.map(|after| plan.cursor(after)) })
}

/// The bytes that a text takes inside a JSON string.
fn escaped_bytes(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        _ => 0,
    };
    text.len() + text.bytes().map(escape).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn escaped_bytes_are_what_serde_json_writes(value in ".{0,40}", blank in "[ \n\r\t]{0,4}") {
            // A client's JSON may have escaped strings, and white space between values.
            let json = format!("{blank}{}", serde_json::to_string(&value)?);
            let travels = serde_json::to_string(&json)?;
            prop_assert_eq!(escaped_bytes(&json) + "\"\"".len(), travels.len());
        }
    }
}
