//! The client's data of a sealed payment, which is in a part and no longer in the table.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use object_store::ObjectStoreExt as _;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use payments_http::{PaymentView, VersionsView};
use payments_machine::given::Given;
use payments_model::{Actor, Amended, AmendmentId, DataHash, Details, JsonText, PaymentData, SealedData, SealedPlace};
use payments_sealed::{PartName, SealedRow, encode, path};
use payments_store::{Cancelled, PutDetails};

use super::Alone;

/// The data of each version of a payment, with spaces that no writer of JSON would put.
const DATA: [&str; 2] = ["{\"memo\" : \"<b>first</b>\"}", "{\"memo\" : \"<b>second</b>\"}"];

/// The start and the end of what shows the data.
const FOLD: [&str; 2] = ["<details class=\"fold\"><summary>Client’s data", "</details>"];

/// Creates a payment, amends its data, and cancels it. Returns its details, the first ones first.
async fn amended(given: &Given, key: &str, stored: impl Fn(&str) -> Result<PaymentData>) -> Result<[Details; 2]> {
    let (store, now) = (&given.store, given.stack.clock.now());
    let by = Actor::client("test");
    let [data, changed] = DATA.map(stored);
    let data = Some(data?);
    let first = given.scheduled_as(key, "2026-12-01", |instruction| instruction.data = data).await?;
    let head = store.head(&first.key()).await?.context("a head")?;
    let mut instruction = first.instruction.clone();
    instruction.data = Some(changed?);
    let id = AmendmentId::derive(first.payment_id, &"change".parse()?);
    let last = first.amended(&head, id, instruction, (now, by.clone()));
    ensure!(store.put_details(&last).await? == PutDetails::Created);
    let name = last.amendment.context("an amendment")?.name;
    let change = Amended { at: now, by: by.clone(), changed: vec!["data".to_owned()] };
    store.amend(&head, &head.amended(name, &last, change)).await?;
    ensure!(matches!(store.cancel_payment(&first, now, &by).await?, Cancelled::Done(_)));
    Ok([first, last])
}

/// The bytes of the part with this payment.
async fn part(given: &Given, [first, last]: &[Details; 2]) -> Result<Vec<u8>> {
    let head = given.store.head(&first.key()).await?.context("a head")?;
    let readable = |_| anyhow::anyhow!("data that is not JSON");
    let view = PaymentView::new(&head).with_dates(last).with_data(last.instruction.data.as_ref()).map_err(readable)?;
    let versions = VersionsView::new(&[first.clone(), last.clone()], true).map_err(readable)?;
    let row = SealedRow::new(&serde_json::to_string(&view)?, Some(&serde_json::to_string(&versions)?))?;
    let name = PartName {
        due_date: head.due_date.to_string(),
        number: 1,
        rows_before: 0,
        sealed_at: "2027-01-10T04:10:00Z".parse()?,
        kept_days: 0,
    };
    Ok(encode(&name, &[row])?)
}

fn text(text: &str) -> Result<PaymentData> {
    Ok(JsonText::from_stored(text.to_owned())?.into())
}

/// The place of the part's row that has a text.
fn sealed(text: &str) -> Result<PaymentData> {
    let place = SealedPlace { date: "2026-12-01".parse()?, part: 1, row: 0 };
    Ok(PaymentData::Sealed(SealedData { place, hash: DataHash::new(text) }))
}

/// The page without the client's data, and the data.
fn split(page: &str) -> Result<(String, &str)> {
    let [start, end] = FOLD;
    let (before, rest) = page.split_once(start).context("no data")?;
    let (data, after) = rest.split_once(end).context("no end of the data")?;
    Ok((format!("{before}{after}"), data))
}

#[tokio::test]
async fn a_sealed_payment_is_shown_as_before_and_what_cannot_be_read_hides_nothing_else() -> Result<()> {
    let earlier = Alone::start().await?;
    let payment = amended(&earlier.given, "rent-1", text).await?;
    let wanted = format!("payment?id={}", payment[0].payment_id);
    let before = earlier.page(&wanted).await?;
    let (rest, data) = split(&before)?;
    assert!(data.contains("&lt;b&gt;second&lt;/b&gt;") && rest.contains("Amended: </b>the client’s data"), "{before}");

    let mut alone = Alone::start().await?;
    amended(&alone.given, "rent-1", sealed).await?;
    let (files, place) = (Arc::clone(&alone.given.stack.reports), path("2026-12-01".parse()?, 1));
    let bytes = part(&earlier.given, &payment).await?;
    files.put(&place, bytes.clone().into()).await?;
    assert_eq!(alone.page(&wanted).await?, before);

    let unreadable = "cannot be read from its sealed part; the function's log says why";
    let other = part(&earlier.given, &amended(&earlier.given, "rent-2", text).await?).await?;
    let cut = bytes[..bytes.len() - 1].to_vec();
    for (damaged, name) in [(Some(other), "the row of another payment"), (Some(cut), "a cut part"), (None, "no part")] {
        match damaged {
            Some(damaged) => drop(files.put(&place, damaged.into()).await?),
            None => files.delete(&place).await?,
        }
        assert_without_data(&alone.page(&wanted).await?, &rest, unreadable, name);
    }
    files.put(&place, bytes.into()).await?;
    let hours = ThrottleConfig { wait_get_per_call: Duration::from_secs(3_600), ..ThrottleConfig::default() };
    alone.read_parts_from(Arc::new(ThrottledStore::new(files, hours)))?;
    let late = "is not shown, because S3 has not answered; try again";
    // The view waits for 5 s, and no longer.
    let waited = alone.page(&wanted).await?.replace("09:00:05", "09:00:00");
    assert_without_data(&waited, &rest, late, "a late part");
    Ok(())
}

/// Asserts that a page says why it has no data, and is otherwise the same.
fn assert_without_data(page: &str, rest: &str, why: &str, when: &str) {
    let notice = format!("<p class=\"notice\">The client’s data {why}.</p>");
    assert!(page.contains(&notice), "{when}: {page}");
    assert_eq!(page.replace(&notice, ""), rest, "{when}");
}
