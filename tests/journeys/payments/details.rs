//! Details whose data is stored in different forms, in one table: those of today, and the golden ones.

use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_tests::prelude::*;
use serde_json::value::RawValue;

use crate::golden::{golden_details, orders};

/// The date of all payments.
const DAY: &str = "2026-12-01";

/// The list of all payments.
const ALL: &str = "/accounts/golden/payments?from=2026-12-01&to=2026-12-01&include=data";

/// A payment of any form: its idempotency key and data.
#[derive(Debug, Clone)]
struct Sent {
    key: String,
    data: String,
}

impl Sent {
    fn ask(&self) -> Result<Ask> {
        self.with(&self.data)
    }

    /// The create with other data. The text stays as it is, byte by byte.
    fn with(&self, data: &str) -> Result<Ask> {
        let data: &RawValue = serde_json::from_str(data)?;
        let body = format!(
            r#"{{"payeeAccountId":"landlord","amountMinor":5,"currency":"GBP","scheduledFor":"{DAY}","data":{data}}}"#
        );
        Ok(Ask::post("/accounts/golden/payments").header("Idempotency-Key", &self.key).text(body))
    }
}

/// The golden details with data, and what their client had sent. Sealed details alone make no payment.
fn golden() -> Result<Vec<(Sent, Item)>> {
    let mut golden = Vec::new();
    for (key, body) in orders() {
        let Some((_, data)) = body.split_once("\"data\":") else { continue };
        let data = data.strip_suffix('}').context("a body ends")?.to_owned();
        let item = golden_details("golden", key)?;
        if !item.contains_key("row") {
            golden.push((Sent { key: key.to_owned(), data }, item));
        }
    }
    Ok(golden)
}

/// Creates payments of every kind, which are stored in every form. Returns them with the golden ones.
async fn mixed(world: &World) -> Result<Vec<Sent>> {
    let mut all = Vec::new();
    for (sent, item) in golden()? {
        world.put_items(&world.environment.tables.history, [item]).await?;
        all.push(sent);
    }
    for (seed, kind) in (1..).zip(DataKind::ALL) {
        let sent = Sent { key: kind.name().to_owned(), data: kind.text(&mut Rng::with_seed(seed), 3_000) };
        let reply = world.send(sent.ask()?).await?.with_status(201)?;
        ensure!(reply.header("idempotent-replayed").is_none(), "{reply}");
        all.push(sent);
    }
    Ok(all)
}

#[tokio::test]
async fn details_in_every_form_are_read_from_one_table() -> Result<()> {
    let world = World::open().await?;
    let all = mixed(&world).await?;
    let mut data_of = BTreeMap::new();
    for sent in &all {
        // A retry finds the payment, and completes it where no head was.
        let reply = world.send(sent.ask()?).await?.replayed()?;
        let id = reply.field("paymentId").to_owned();
        let before = world.details(&id).await?;
        for other in
            [sent.data.replacen(['e', '1'], "0", 1), format!(" {}", sent.data.replacen('"', " \"", 1)), "1".to_owned()]
        {
            if serde_json::from_str::<Value>(&other).is_ok() && other.trim() != sent.data {
                let reply = world.refused(sent.with(&other)?, 422, "idempotency-key-reused").await?;
                assert_eq!(reply.body["fields"], json!(["data"]), "{}: {reply}", sent.key);
            }
        }
        let got = world.payment("golden", &id).await?;
        assert!(got.text.contains(&sent.data), "{}: {got}", sent.key);
        assert_eq!(world.details(&id).await?, before, "a retry writes nothing");
        data_of.insert(id, sent.data.clone());
    }
    let list = world.get(ALL).await?;
    assert_eq!((list.payments().len(), list.body.get("unreadable")), (all.len(), None));
    for (payment, id) in list.payments().iter().zip(list.ids()) {
        assert_eq!(payment["data"], serde_json::from_str::<Value>(&data_of[&id])?);
    }
    // And they are sent, with the data as it came.
    claim(&world).await?;
    world.dispatch(&world.heads("golden").await?).await?;
    let requests = world.take_requests();
    assert_eq!(requests.len(), all.len());
    for request in requests {
        let id = serde_json::from_str::<Value>(&request)?["paymentId"].as_str().context("an id")?.to_owned();
        assert!(request.contains(&data_of[&id]), "{request}");
    }
    Ok(())
}

async fn claim(world: &World) -> Result<()> {
    world.set_clock("2026-12-01T09:00:00Z")?;
    world.sweep().await
}

#[tokio::test]
async fn what_cannot_be_decompressed_is_neither_shown_nor_sent() -> Result<()> {
    let world = World::open().await?;
    let sent = |n: usize| Sent { key: n.to_string(), data: DataKind::Prose.text(&mut Rng::with_seed(9), 3_000) };
    let damages = [
        ("SET codec = :value", Some(text("brotli"))),
        ("SET frame = :value", Some(text("a text"))),
        ("SET dataBytes = :value", Some(number(2_999))),
        ("SET dataBytes = :value", Some(number(9_000))),
        ("REMOVE frame", None),
        ("REMOVE codec", None),
        ("REMOVE dataBytes", None),
    ];
    let mut damaged = BTreeSet::new();
    for (n, (expression, value)) in damages.into_iter().enumerate() {
        let id = world.send(sent(n).ask()?).await?.field("paymentId").to_owned();
        let values: Vec<_> = value.into_iter().map(|value| (":value", value)).collect();
        world.update_details(&id, expression, &values).await?;
        let got = world.send(Ask::get(&format!("/accounts/golden/payments/{id}"))).await?;
        let again = world.send(sent(n).ask()?).await?;
        assert_eq!((got.status, again.status), (500, 500), "{expression}: {got} {again}");
        damaged.insert(id);
    }
    let whole = world.send(sent(damaged.len()).ask()?).await?.field("paymentId").to_owned();
    let list = world.get(ALL).await?;
    let unreadable = list.body["unreadable"]["paymentIds"].as_array().into_iter().flatten();
    assert_eq!(unreadable.filter_map(|id| id.as_str().map(str::to_owned)).collect::<BTreeSet<_>>(), damaged);
    assert_eq!(list.ids(), [whole.as_str()]);
    claim(&world).await?;
    // A batch that begins with poison fails, so that Lambda halves it. The others of the batch are sent all the same.
    drop(world.dispatch(&world.heads("golden").await?).await);
    let requests = world.take_requests();
    assert!(requests.len() == 1 && requests[0].contains(&whole), "{requests:?}");
    assert_eq!(world.metric("PoisonRecords")?, u64::try_from(damaged.len())?);
    Ok(())
}
