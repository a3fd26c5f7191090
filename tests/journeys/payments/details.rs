//! Details whose data is stored in different forms, in one table: those of today, and the golden ones.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_store::Item;
use payments_tests::tables::{details_key, json_of_item, number, text};
use payments_tests::{Ask, World};
use serde_json::{Value, json, value::RawValue};

use crate::golden::{golden_details, orders};

/// The date of all payments.
const DAY: &str = "2026-12-01";

/// A payment of any form: its account, idempotency key and data.
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

/// The golden details with data, and what their client had sent.
fn golden() -> Result<Vec<(Sent, Item)>> {
    let mut golden = Vec::new();
    for (key, body) in orders() {
        let Some((_, data)) = body.split_once("\"data\":") else { continue };
        let data = data.strip_suffix('}').context("a body ends")?.to_owned();
        golden.push((Sent { key: key.to_owned(), data }, golden_details("golden", key)?));
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
        let reply = world.send(sent.ask()?).await?;
        ensure!(reply.status == 201 && reply.header("idempotent-replayed").is_none(), "{reply}");
        all.push(sent);
    }
    Ok(all)
}

/// A payment's details, as stored.
async fn stored(world: &World, id: &str) -> Result<Item> {
    let get = world.client().await.get_item().table_name(&world.environment.tables.history);
    get.set_key(Some(details_key(id))).send().await?.item.context("no details")
}

#[tokio::test]
async fn details_in_every_form_are_read_from_one_table() -> Result<()> {
    let world = World::open().await?;
    let all = mixed(&world).await?;
    let mut data_of = BTreeMap::new();
    for sent in &all {
        // A retry finds the payment, and completes it where no head was.
        let reply = world.send(sent.ask()?).await?;
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, Some("true")), "{}: {reply}", sent.key);
        let id = reply.field("paymentId").to_owned();
        for other in
            [sent.data.replacen(['e', '1'], "0", 1), format!(" {}", sent.data.replacen('"', " \"", 1)), "1".to_owned()]
        {
            if serde_json::from_str::<Value>(&other).is_ok() && other.trim() != sent.data {
                let reply = world.send(sent.with(&other)?).await?;
                assert_eq!((reply.status, &reply.body["fields"]), (422, &json!(["data"])), "{}: {reply}", sent.key);
            }
        }
        let before = stored(&world, &id).await?;
        let got = world.send(Ask::get(&format!("/accounts/golden/payments/{id}"))).await?;
        assert!(got.text.contains(&sent.data), "{}: {got}", sent.key);
        assert_eq!(stored(&world, &id).await?, before, "a retry writes nothing");
        data_of.insert(id, sent.data.clone());
    }
    let list = world.send(Ask::get(&format!("/accounts/golden/payments?from={DAY}&to={DAY}&include=data"))).await?;
    assert_eq!((list.payments().len(), list.body.get("unreadable")), (all.len(), None));
    for payment in list.payments() {
        let data: Value = serde_json::from_str(&data_of[payment["paymentId"].as_str().context("an id")?])?;
        assert_eq!(payment["data"], data);
    }
    // And they are sent, with the data as it came.
    let requests = dispatched(&world).await?;
    assert_eq!(requests.len(), all.len());
    for request in requests {
        let id = serde_json::from_str::<Value>(&request)?["paymentId"].as_str().context("an id")?.to_owned();
        assert!(request.contains(&data_of[&id]), "{request}");
    }
    Ok(())
}

/// Sweeps, and dispatches what was claimed. Returns the requests.
async fn dispatched(world: &World) -> Result<Vec<String>> {
    world.set_clock("2026-12-01T09:00:00Z")?;
    world.sweep().await?;
    let record = |(n, head): (usize, &Item)| {
        let keys = json!({ "pk": json_of_item(head)["pk"], "sk": json_of_item(head)["sk"] });
        json!({
            "eventID": n.to_string(), "eventName": "MODIFY", "awsRegion": "eu-west-2",
            "dynamodb": {
                "ApproximateCreationDateTime": 1_796_115_600, "Keys": keys, "NewImage": json_of_item(head),
                "SequenceNumber": format!("{}", n + 100), "SizeBytes": 1, "StreamViewType": "NEW_IMAGE",
            },
        })
    };
    let records: Vec<Value> = world.heads("golden").await?.iter().enumerate().map(record).collect();
    // A batch that begins with poison fails, so that Lambda halves it. What can be sent is sent all the same.
    drop(world.functions().dispatch.handle(serde_json::from_value(json!({ "Records": records }))?).await);
    let now = chrono::DateTime::parse_from_rfc3339("2026-12-01T09:00:01Z")?.to_utc();
    let mut requests = Vec::new();
    loop {
        let received = world.outside.requests.receive(10, now);
        if received.is_empty() {
            return Ok(requests);
        }
        for message in received {
            requests.push(message.body.clone());
            world.outside.requests.delete(&message.receipt_handle);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_decompressed_is_neither_shown_nor_sent() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    let damages = [
        ("SET codec = :value", Some(text("brotli"))),
        ("SET frame = :value", Some(text("a text"))),
        ("SET dataBytes = :value", Some(number(2_999))),
        ("SET dataBytes = :value", Some(number(9_000))),
        ("REMOVE frame", None),
        ("REMOVE codec", None),
        ("REMOVE dataBytes", None),
    ];
    for n in 0..=damages.len() {
        let sent = Sent { key: n.to_string(), data: DataKind::Prose.text(&mut Rng::with_seed(9), 3_000) };
        let reply = world.send(sent.ask()?).await?;
        ids.push((sent, reply.field("paymentId").to_owned()));
    }
    for ((_, id), (expression, value)) in ids.iter().zip(&damages) {
        let values: Vec<_> = value.iter().map(|value| (":value", value.clone())).collect();
        world.update_details(id, expression, &values).await?;
    }
    let (_, whole) = ids.last().context("one is whole")?.clone();
    for (sent, id) in &ids[..damages.len()] {
        let got = world.send(Ask::get(&format!("/accounts/golden/payments/{id}"))).await?;
        let again = world.send(sent.ask()?).await?;
        assert_eq!((got.status, again.status), (500, 500), "{got} {again}");
    }
    let list = world.send(Ask::get(&format!("/accounts/golden/payments?from={DAY}&to={DAY}&include=data"))).await?;
    let unreadable: BTreeSet<&str> =
        list.body["unreadable"]["paymentIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(unreadable, ids[..damages.len()].iter().map(|(_, id)| id.as_str()).collect());
    assert_eq!(list.payments().iter().map(|it| it["paymentId"].as_str()).collect::<Vec<_>>(), [Some(&*whole)]);
    let requests = dispatched(&world).await?;
    assert_eq!(requests.len(), 1);
    assert!(requests[0].contains(&whole));
    assert_eq!(world.metric("PoisonRecords")?, u64::try_from(damages.len())?);
    Ok(())
}
