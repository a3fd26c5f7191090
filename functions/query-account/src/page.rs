//! Pages of an account's payments, cut before Lambda's response becomes too large.

use std::collections::VecDeque;
use std::error::Error;

use payments_boot::Deadline;
use payments_http::{PaymentView, Problem, Unreadable};
use payments_model::{DetailsKey, Head, PaymentData, Place, causes};
use payments_sealed::{ROWS_AT_ONCE, SealedRows};
use payments_store::{AccountPage, Store, StoreError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::plan::Plan;

/// The largest page, in bytes of Lambda's response, where the body is a JSON string and each quote and backslash
/// takes two bytes. Lambda's own limit is 6 MB.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The bytes kept for the object around the payments and its cursor.
const FRAME_BYTES: usize = 1_024;

/// The bytes of the id of a payment that is left out: a UUID between escaped quotes, and a comma.
const LEFT_OUT_BYTES: usize = 41;

/// The most payments whose data is read at once: the most keys of one BatchGetItem.
const DATA_CHUNK: usize = 100;

/// A page's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageView {
    from: String,
    to: String,
    payments: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Unreadable::is_empty")]
    pub(crate) unreadable: Unreadable,
}

/// A page under construction.
struct Page {
    payments: Vec<Box<RawValue>>,
    unreadable: Unreadable,
    bytes: usize,
    /// The number of payments that were shown or left out, and the last of them.
    done: usize,
    last: Option<Place>,
}

impl Page {
    /// Adds a payment, unless the page is full.
    fn push(&mut self, head: &Head, data: Option<&PaymentData>) -> Result<bool, Problem> {
        let view = PaymentView::new(head).with_data(data)?;
        let json = serde_json::value::to_raw_value(&view).map_err(Problem::internal)?;
        let bytes = self.bytes + escaped_bytes(json.get()) + ",".len();
        // The first payment always fits: a payment is far smaller than a page.
        if bytes > MAX_PAGE_BYTES {
            return Ok(false);
        }
        self.bytes = bytes;
        self.payments.push(json);
        self.pass(head.place());
        Ok(true)
    }

    /// Leaves out a payment that cannot be read. The others are shown.
    fn leave_out(&mut self, place: Option<Place>, error: &(dyn Error + 'static)) {
        let payment_id = place.map(|place| place.payment_id.to_string());
        tracing::error!(payment_id, causes = ?causes(error), "a payment cannot be read and is left out of the list");
        self.unreadable.add(place.map(|place| place.payment_id));
        self.bytes += LEFT_OUT_BYTES;
        if let Some(place) = place {
            self.pass(place);
        }
    }

    fn pass(&mut self, place: Place) {
        self.done += 1;
        self.last = Some(place);
    }
}

/// A head of a page, or the reason why it cannot be read.
type PageHead = (Place, Result<Head, StoreError>);

/// The data of a payment, or the reason why it cannot be read.
type PageData = Result<Option<PaymentData>, Box<dyn Error + Send + Sync>>;

/// Renders a page of heads, with the payments' data if the plan includes it.
pub(crate) async fn render(
    store: &Store,
    sealed: &SealedRows,
    plan: &Plan,
    read: AccountPage,
    deadline: &Deadline,
) -> Result<PageView, Problem> {
    let mut page =
        Page { payments: Vec::new(), unreadable: Unreadable::default(), bytes: FRAME_BYTES, done: 0, last: None };
    for error in &read.without_key {
        page.leave_out(None, error);
    }
    let sealed_until = sealed.page_end();
    let mut full = false;
    for heads in read.heads.chunks(DATA_CHUNK) {
        let data = data_of(store, plan, heads).await?;
        let mut rest: VecDeque<_> = heads.iter().zip(data).collect();
        while !full && !rest.is_empty() {
            let (some, has_sealed) = opened(sealed, &mut rest).await?;
            for ((place, head), data) in some {
                match head.as_ref().map(|head| (head, data)) {
                    _ if full => {}
                    Ok((head, Ok(data))) => full = !page.push(head, data.as_ref())?,
                    Ok((_, Err(error))) => page.leave_out(Some(*place), &*error),
                    Err(error) => page.leave_out(Some(*place), error),
                }
            }
            // If reads are slow, the page ends early, and its cursor continues there.
            full = full || deadline.has_come() || has_sealed && sealed_until.has_come();
        }
        if full {
            break;
        }
    }
    let next = if page.done == read.heads.len() { read.next } else { page.last };
    let next_cursor = next.map(|after| plan.cursor(after));
    let (from, to) = plan.range();
    let (from, to) = (from.to_string(), to.to_string());
    Ok(PageView { from, to, payments: page.payments, next_cursor, unreadable: page.unreadable })
}

/// Reads the data of the payments with these heads, in their order, if the plan includes it.
async fn data_of(store: &Store, plan: &Plan, heads: &[PageHead]) -> Result<Vec<PageData>, Problem> {
    if !plan.with_data {
        return Ok(heads.iter().map(|_| Ok(None)).collect());
    }
    let key = |(place, head): &PageHead| match head {
        Ok(head) => head.details_key(),
        Err(_) => DetailsKey { payment_id: place.payment_id, amendment: None },
    };
    let keys: Vec<DetailsKey> = heads.iter().map(key).collect();
    Ok(store.data_of(&keys).await?.into_iter().map(|data| data.map_err(Into::into)).collect())
}

/// Takes the first payments, with at most 16 sealed rows, and reads these. The others keep their order.
async fn opened<'h>(
    sealed: &SealedRows,
    rest: &mut VecDeque<(&'h PageHead, PageData)>,
) -> Result<(Vec<(&'h PageHead, PageData)>, bool), Problem> {
    let (mut some, mut wanted) = (Vec::new(), Vec::new());
    while let Some((head, data)) = rest.pop_front() {
        if let Ok(Some(PaymentData::Sealed(row))) = &data {
            if wanted.len() == ROWS_AT_ONCE {
                rest.push_front((head, data));
                break;
            }
            wanted.push((head.0.payment_id, row.clone()));
        }
        some.push((head, data));
    }
    let mut texts = sealed.data(&wanted).await?.into_iter();
    for (_, data) in &mut some {
        if matches!(data, Ok(Some(PaymentData::Sealed(_)))) {
            let text = texts.next().map(|text| text.map(PaymentData::Text));
            *data = text.transpose().map_err(Into::into);
        }
    }
    Ok((some, !wanted.is_empty()))
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
