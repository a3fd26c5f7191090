//! Payments whose data is in sealed rows alone are shown as before, and a row that is not believed hides nothing else.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use payments_model::{DataHash, Details, PaymentData, PaymentId, SealedData, SealedPlace};
use payments_sealed::ROWS_AT_ONCE;
use payments_store::StoredDetails;
use payments_tests::prelude::*;

use super::{ARCHIVED_AT, DAY, SEALED_AT, body, create, day, order_with, parts, seal, world};
use crate::report::faulty_store::FaultyStore;

/// Every route that shows data, of the account and of these payments.
fn routes(ids: &[String]) -> Vec<String> {
    let list = format!("/accounts/tenant/payments?from={DAY}&to={DAY}");
    let of_one = ids.iter().flat_map(|id| {
        let path = format!("/accounts/tenant/payments/{id}");
        [path.clone(), format!("{path}/versions"), format!("{path}/versions?include=data")]
    });
    let lists =
        ["", "&include=data", "&include=data&order=desc", "&include=data&limit=1", "&include=data&status=FAILED"];
    let keys = ["one", "two"].map(|key| format!("/accounts/tenant/payments?idempotencyKey={key}&include=data"));
    of_one.chain(lists.map(|more| format!("{list}{more}"))).chain(keys).collect()
}

pub(super) async fn answers(world: &World, ids: &[String]) -> Result<Vec<String>> {
    let mut answers = Vec::new();
    for path in routes(ids) {
        answers.push(world.send(Ask::get(&path)).await?.with_status(200).with_context(|| path)?.text);
    }
    Ok(answers)
}

/// Puts the place of its sealed row in place of all data of the day's finished payments. Returns their ids, in the order of the rows.
async fn sealed(world: &World) -> Result<Vec<String>> {
    let store = world.store().await;
    let mut ids = Vec::new();
    for (_, part, rows, _) in parts(world).await? {
        for (row, sealed) in (0..).zip(rows) {
            let id = sealed.text("paymentId").context("an id")?.to_owned();
            for details in store.all_details(id.parse()?).await?.into_iter().map(StoredDetails::into_known) {
                let Some(PaymentData::Text(text)) = &details.instruction.data else { continue };
                let place = SealedPlace { date: DAY.parse()?, part: part.name.number, row };
                set(world, &details, &SealedData { place, hash: DataHash::new(text.as_str()) }).await?;
            }
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Puts the place of a sealed row in place of the data of details.
async fn set(world: &World, details: &Details, sealed: &SealedData) -> Result<()> {
    let of = details.payment_id.to_string();
    let name = details.amendment.map(|amendment| amendment.name.to_string());
    let is_its = |item: &&Item| item["sk"].as_s().is_ok_and(|sk| name.as_ref().is_none_or(|name| sk.ends_with(name)));
    let items = world.details(&of).await?;
    let item = items.iter().find(is_its).context("its details")?;
    let values = [
        (":codec", text("file")),
        (":row", text(sealed.place.to_string())),
        (":hash", AttributeValue::B(Blob::new(sealed.hash.as_bytes()))),
    ];
    let change = "SET codec = :codec, #row = :row, #hash = :hash REMOVE #data, frame, dataBytes";
    world
        .update_in(&world.environment.tables.history, key_of(item), &change.replace("#data,", "#data ,"), &values)
        .await
}

#[tokio::test]
async fn sealed_data_is_shown_and_compared_as_before() -> Result<()> {
    let world = world().await?;
    let (ids, _) = day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let before = answers(&world, &ids).await?;
    assert_eq!(sealed(&world).await?, ids);
    let details = world.store().await.details(ids[0].parse()?).await?.context("it has details")?;
    assert!(details.is_sealed(), "{details:?}");
    assert_eq!(answers(&world, &ids).await?, before);

    let repeated = world.send(Ask::create("tenant", "one", &body("one"))).await?.with_status(201)?;
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    let other = order_with(DAY, json!({ "data": { "key": "other" }, "reference": "one" }));
    let refused = world.send(Ask::create("tenant", "one", &other)).await?.with_status(422)?;
    assert_eq!(refused.body["fields"], json!(["data"]), "{refused}");

    // Without its head, the payment is lost. Its client must not hear that it may be sent under another key.
    let id = PaymentId::derive(&"tenant".parse()?, &"two".parse()?).to_string();
    let is_its = |head: &&Item| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id));
    let heads = world.archived_heads("tenant").await?;
    world.delete(&world.environment.tables.history, heads.iter().find(is_its).context("its head")?).await?;
    world.send(Ask::create("tenant", "two", &body("two"))).await?.with_status(500)?;
    Ok(())
}

#[tokio::test]
async fn a_list_of_more_rows_than_are_read_at_once_is_whole() -> Result<()> {
    let world = world().await?;
    for key in 0..2 * ROWS_AT_ONCE + 1 {
        let id = create(&world, &key.to_string()).await?;
        world.cancel("tenant", &id).await?;
    }
    world.set_clock(ARCHIVED_AT)?;
    world.archive().await?;
    world.count_all().await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let list = Ask::get(&format!("/accounts/tenant/payments?from={DAY}&to={DAY}&include=data"));
    let before = world.send(list.clone()).await?.with_status(200)?;
    assert_eq!(sealed(&world).await?.len(), 2 * ROWS_AT_ONCE + 1);
    assert_eq!(world.send(list).await?.text, before.text);
    Ok(())
}

#[tokio::test]
async fn a_row_that_cannot_be_believed_hides_nothing_else() -> Result<()> {
    let world = world().await?;
    day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let ids = sealed(&world).await?;
    let store = world.store().await;
    // One that was never amended: its first details have the data in force.
    let mut all = Vec::new();
    for id in &ids {
        all.push(store.all_details(id.parse()?).await?.into_iter().map(StoredDetails::into_known).collect::<Vec<_>>());
    }
    let first =
        all.into_iter().find(|all| all.len() == 1).and_then(|mut all| all.pop()).context("one has one version")?;
    let id = first.payment_id.to_string();
    let Some(PaymentData::Sealed(own)) = first.instruction.data.clone() else { bail!("it is not sealed") };
    let list = format!("/accounts/tenant/payments?from={DAY}&to={DAY}&include=data");
    let next = SealedPlace { row: own.place.row ^ 1, ..own.place };
    for (why, wrong) in [
        ("another payment's row", SealedData { place: next, ..own.clone() }),
        ("a row that is not there", SealedData { place: SealedPlace { row: 9, ..own.place }, ..own.clone() }),
        ("a part that is not there", SealedData { place: SealedPlace { part: 9, ..own.place }, ..own.clone() }),
        ("other data", SealedData { hash: DataHash::new("{}"), ..own.clone() }),
    ] {
        set(&world, &first, &wrong).await?;
        let page = world.send(Ask::get(&list)).await?.with_status(200)?;
        assert_eq!(page.body["unreadable"]["paymentIds"], json!([id]), "{why}: {page}");
        assert_eq!(
            page.body["payments"].as_array().map(Vec::len),
            Some(ids.len()),
            "{why}: the others, and the pending one"
        );
        world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?.with_status(500)?;
        world.send(Ask::get(&list.replace("&include=data", ""))).await?.with_status(200)?;
    }
    set(&world, &first, &own).await?;
    let (path, _, rows, bytes) = parts(&world).await?.pop().context("no part")?;
    let damaged: Vec<_> = rows.iter().filter_map(|row| row.text("paymentId")).collect();
    // As S3 refuses a file in an archive from which it has to be restored.
    let dependencies = world.dependencies_over(&world.recorder).await;
    let archived = path.clone();
    let refuse = move |_: &str, path: &Path| {
        if path.as_ref() == archived { Fate::Refuse(403, "InvalidObjectState") } else { Fate::Pass }
    };
    let reports = FaultyStore::over(&dependencies.reports, refuse);
    let functions = world.functions_in(&Dependencies { reports, ..dependencies })?;
    let page = world.send_to(&functions, Ask::get(&list)).await?.with_status(200)?;
    assert_eq!(page.body["unreadable"]["paymentIds"], json!(damaged), "{page}");
    // A part that was cut off.
    let mut changed = bytes.to_vec();
    changed.truncate(changed.len() - 1);
    world.outside.reports.put(&path.as_str().into(), changed.into()).await?;
    let page = world.send(Ask::get(&list)).await?.with_status(200)?;
    assert_eq!(page.body["unreadable"]["paymentIds"], json!(damaged), "{page}");
    Ok(())
}

#[tokio::test]
async fn a_storage_that_does_not_answer_is_a_503() -> Result<()> {
    let world = world().await?;
    day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let ids = sealed(&world).await?;
    let dependencies = world.dependencies_over(&world.recorder).await;
    let reports = FaultyStore::over(&dependencies.reports, |_, _| Fate::LoseRequest);
    let functions = world.functions_in(&Dependencies { reports, ..dependencies })?;
    for path in routes(&ids) {
        let needs_row = !path.ends_with("/versions") && (path.contains("include=data") || !path.contains('?'));
        let reply = world.send_to(&functions, Ask::get(&path)).await?.with_status(if needs_row { 503 } else { 200 })?;
        assert!(!needs_row || reply.header("retry-after").is_some(), "{reply}");
    }
    Ok(())
}
