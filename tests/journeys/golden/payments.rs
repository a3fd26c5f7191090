//! Golden payments: details in every form, heads in every status, in both tables, amended and not.

use payments_model::{DetailsKey, Event, Failure, HeadKey, PaymentId, SealedData, Settlement, UtcSecond};
use payments_store::key::parse_head_key;
use payments_store::{EXPIRES_AT, ItemKind, Store, StoredHead, UnreportedSort, expiry_of_reported};
use payments_tests::prelude::*;

use super::forms::golden_items;

/// The account of the golden payments.
const ACCOUNT: &str = "golden";

/// The time of the golden payments' claims, settlements, reports and cancellations.
const LATER: &str = "2026-11-20T10:00:00Z";

/// The end of retention of a sealed payment.
const KEPT_UNTIL: &str = "2036-12-01T04:10:00Z";

/// The fields of the orders beside payee, amount and currency.
const ORDERS: [(&str, &str); 20] = [
    ("plain", r#""scheduledFor":"2026-12-01""#),
    ("reference", r#""scheduledFor":"2026-12-01T09:30:00Z","reference":"INV 2026/117""#),
    ("own-rule", r#""scheduledFor":"2026-11-28","dateRule":"following""#),
    ("banks-rule", r#""scheduledFor":"2026-12-25T09:00:00Z""#),
    ("open", r#""scheduledFor":"2026-11-27","dateRule":"refuse""#),
    ("raw", r#""scheduledFor":"2026-12-01","data":{"note":"kürz 🙂","n":18446744073709551616}"#),
    ("zstd", r#""scheduledFor":"2026-12-01","data":"#),
    ("pending", r#""scheduledFor":"2026-12-01""#),
    ("redriven", r#""scheduledFor":"2026-12-01""#),
    ("processed", r#""scheduledFor":"2026-12-01","reference":"INV 2026/118""#),
    ("failed", r#""scheduledFor":"2026-12-01""#),
    ("reported", r#""scheduledFor":"2026-12-01""#),
    ("cancelled", r#""scheduledFor":"2026-12-01""#),
    ("archived", r#""scheduledFor":"2026-12-01""#),
    ("sealed", r#""scheduledFor":"2026-12-01","data":"#),
    ("amended", r#""scheduledFor":"2026-12-01""#),
    ("amended-twice", r#""scheduledFor":"2026-12-01""#),
    ("amended-pending", r#""scheduledFor":"2026-12-01""#),
    ("amended-processed", r#""scheduledFor":"2026-12-01""#),
    ("amended-cancelled", r#""scheduledFor":"2026-12-01""#),
];

/// The orders that created the golden payments: their idempotency keys and bodies, byte by byte.
pub(crate) fn orders() -> Vec<(&'static str, String)> {
    let line = |n: u32| format!(r#"{{"line":{n},"note":"Miete für Büro {}","minor":{}}}"#, n * 7 % 10, n * n * 31);
    let lines = format!("[{}]", (0..20).map(line).collect::<Vec<_>>().join(","));
    let body = |(key, more): (&'static str, &str)| {
        let data = if more.ends_with(':') { lines.as_str() } else { "" };
        (key, format!(r#"{{"payeeAccountId":"landlord","amountMinor":5,"currency":"GBP",{more}{data}}}"#))
    };
    ORDERS.into_iter().map(body).collect()
}

/// The amendments of a golden payment: their keys and dates.
fn amendments(key: &str) -> &'static [(&'static str, &'static str)] {
    match key {
        "amended" | "amended-cancelled" => &[("content", "2026-12-01")],
        "amended-twice" => &[("first", "2026-12-02"), ("last", "2026-11-23")],
        "amended-pending" | "amended-processed" => &[("last", "2026-11-23")],
        _ => &[],
    }
}

/// The events of a golden payment.
fn events(key: &str) -> Result<Vec<Event>> {
    let settled = |settlement| vec![Event::Sweep, Event::Settle(settlement)];
    Ok(match key {
        "pending" | "redriven" | "amended-pending" => vec![Event::Sweep],
        "processed" | "reported" | "amended-processed" => settled(Settlement::Processed(format!("TX-{key}").parse()?)),
        "failed" => settled(Settlement::Failed(Failure::new(Some("AC07"), "The payee's account is closed."))),
        "cancelled" | "archived" | "sealed" | "amended-cancelled" => vec![Event::Cancel],
        _ => Vec::new(),
    })
}

/// Tables with the golden payments.
pub(super) async fn written() -> Result<World> {
    let world = World::with(|environment| {
        environment.calendars = "EUR=T2,GBP=GB,USD=FED".to_owned();
        environment.date_rule = "preceding".to_owned();
    });
    let world = world.await?;
    let store = world.store().await;
    for (key, body) in orders() {
        let ask = Ask::post(&format!("/accounts/{ACCOUNT}/payments")).header("Idempotency-Key", key).text(body);
        let created = world.send(ask).await?;
        ensure!(created.status == 201, "{created}");
        let id = created.field("paymentId").to_owned();
        for (version, (amendment, date)) in (1..).zip(amendments(key)) {
            let other = json!({
                "payeeAccountId": "other-landlord", "amountMinor": 7, "currency": "EUR", "scheduledFor": date,
                "reference": "INV 2026/119", "data": { "n": version },
            });
            let amended = world.send(Ask::amend(ACCOUNT, &id, (amendment, version), &other)).await?;
            ensure!(amended.status == 200, "{amended}");
        }
        let id: PaymentId = id.parse()?;
        move_on(&world, id, events(key)?, LATER).await?;
        let head = store.details(id).await?.context("no details")?.key();
        match key {
            "redriven" => ensure!(store.redrive(&head, 1, 2, LATER.parse()?).await?, "it is pending"),
            "reported" => report(&store, &head).await?,
            "archived" => archive(&store, &head).await?,
            "sealed" => {
                archive(&store, &head).await?;
                seal(&store, &head).await?;
            }
            _ => {}
        }
    }
    Ok(world)
}

async fn archive(store: &Store, key: &HeadKey) -> Result<()> {
    let stored = store.stored_head(key).await?.context("no head")?;
    store.put_archived_head(&stored).await?;
    store.remove_head(&stored).await?;
    Ok(())
}

/// Clears the data of a payment that is kept for some years.
async fn seal(store: &Store, key: &HeadKey) -> Result<()> {
    let [details] = &store.all_details(key.slot.payment_id).await?[..] else { bail!("it was amended") };
    let hash = details.known().instruction.data.as_ref().context("no data")?.hash();
    let sealed = SealedData { place: "2026-12-01/1/57".parse()?, hash };
    let until = KEPT_UNTIL.parse()?;
    ensure!(store.clear_data(details, Some(&sealed), Some(until)).await?, "it is as it was read");
    keep(store, key, until).await
}

async fn keep(store: &Store, key: &HeadKey, until: UtcSecond) -> Result<()> {
    let (_, head) = store.archived_heads(std::slice::from_ref(key)).await?.pop().context("no head")?;
    ensure!(store.keep_head_until(&head?, until).await?, "it is as it was read");
    Ok(())
}

/// Marks a payment as reported.
async fn report(store: &Store, key: &HeadKey) -> Result<()> {
    let head = store.head(key).await?.context("no head")?;
    let settled_at = head.settled_at().context("it is not settled")?;
    let unreported = UnreportedSort { settled_at, payment_id: head.payment_id };
    store.mark_reported(key, &unreported, expiry_of_reported(head.due_date, LATER.parse()?)).await?;
    Ok(())
}

/// Writes again the items that it reads.
pub(super) async fn again(from: &World, to: &World) -> Result<()> {
    let (from, to) = (from.store().await, to.store().await);
    for kind in [ItemKind::FirstDetails, ItemKind::AmendedDetails] {
        for (_, item) in golden_items(kind, "payments")? {
            let text = |name: &str| item[name].as_s().cloned().unwrap_or_default();
            let amendment = text("sk").strip_prefix("DETAILS#").map(str::parse).transpose()?;
            let key = DetailsKey { payment_id: text("pk").trim_start_matches("PAY#").parse()?, amendment };
            let read = from.stored_details(&[key]).await?.remove(&key).context("no details")??;
            to.put_details(read.known()).await?;
            if let Some(until) = read.kept_until() {
                let written = to.stored_details(&[key]).await?.remove(&key).context("no details")??;
                ensure!(to.clear_data(&written, None, Some(until)).await?, "it is as it was read");
            }
        }
    }
    for (table, item) in golden_items(ItemKind::Head, "payments")? {
        let text = |name: &str| item[name].as_s().cloned().unwrap_or_default();
        let key = parse_head_key(&text("pk"), &text("sk"))?;
        if table == "payments" {
            let mut head = from.stored_head(&key).await?.context("no head")?.known().clone();
            let is_reported = item.contains_key(EXPIRES_AT);
            head.unreported |= is_reported;
            to.put_head(&head).await?;
            if is_reported {
                report(&to, &key).await?;
            }
        } else {
            let (_, read) = from.archived_heads(std::slice::from_ref(&key)).await?.pop().context("no head")?;
            let read = read?;
            to.put_archived_head(&StoredHead::new(read.known().clone())?).await?;
            if let Some(until) = read.kept_until() {
                keep(&to, &key, until).await?;
            }
        }
    }
    Ok(())
}
