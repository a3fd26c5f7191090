//! The index lags: it still shows what has long been reported, or shows late what was settled long ago.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use payments_local::functions::Surroundings;
use payments_local::{Functions, Wire};
use payments_store::Store;
use payments_tests::World;
use serde_json::{Value, json};

use super::bank::{END_OF_TIME, invoke, many, published, reported_ids, rows, run};

/// A wire whose queries of `unreported` are answered as they were answered first, for ever.
#[derive(Debug, Clone)]
struct StaleIndex {
    wire: Wire,
    answers: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl HttpClient for StaleIndex {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let connector = self.wire.http_connector(settings, components);
        SharedHttpConnector::new(StaleConnector { index: self.clone(), connector })
    }
}

#[derive(Debug)]
struct StaleConnector {
    index: StaleIndex,
    connector: SharedHttpConnector,
}

impl HttpConnector for StaleConnector {
    fn call(&self, request: aws_smithy_runtime_api::client::orchestrator::HttpRequest) -> HttpConnectorFuture {
        let (index, connector) = (self.index.clone(), self.connector.clone());
        HttpConnectorFuture::new(async move {
            let asked: Value =
                serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or(Value::Null);
            if asked["IndexName"] != "unreported" {
                return connector.call(request).await;
            }
            let question = format!("{} {}", asked["ExpressionAttributeValues"], asked["ExclusiveStartKey"]);
            let answers = || index.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = answers().get(&question).cloned() {
                let status = 200_u16.try_into().map_err(|_| ConnectorError::other("no such status".into(), None))?;
                return Ok(HttpResponse::new(status, SdkBody::from(known)));
            }
            let answer = connector.call(request).await?;
            let status = answer.status();
            let body = ByteStream::new(answer.into_body()).collect().await;
            let body = body.map_err(|error| ConnectorError::io(error.into()))?.to_vec();
            answers().insert(question, body.clone());
            Ok(HttpResponse::new(status, SdkBody::from(body)))
        })
    }
}

/// The bank's functions over an index that stays as they find it.
async fn over_a_stale_index(world: &World) -> Result<Functions> {
    let surroundings = world.surroundings_over(&world.wire).await;
    let index = StaleIndex { wire: world.wire.clone(), answers: Arc::default() };
    let config = world.client().await.config().to_builder().http_client(index).build();
    let store = Store::new(Client::from_conf(config), world.environment.tables.clone());
    world.functions_in(&Surroundings { store, ..surroundings })
}

#[tokio::test]
async fn entries_that_linger_in_the_index_are_not_reported_again() -> Result<()> {
    let world = World::open().await?;
    let stale = over_a_stale_index(&world).await?;
    let all = many(&world, "2026-11-20T09:20:00Z", 40, 0).await?;
    let first = invoke(&stale, "first", END_OF_TIME).await.map_err(anyhow::Error::msg)?;
    assert_eq!((&first["reported"], &first["drained"]), (&json!(40), &json!(40)), "{first}");
    // The index still shows all of them, and one of them has been archived, too.
    world.archive_all("payer-3").await?;
    let again = invoke(&stale, "again", END_OF_TIME).await.map_err(anyhow::Error::msg)?;
    assert_eq!(
        (&again["runsCommitted"], &again["skipped"], &again["moreWaits"]),
        (&json!(0), &json!(40), &json!(false)),
        "{again}"
    );
    assert_eq!(reported_ids(&world).await?, all);
    world.close().await
}

#[tokio::test]
async fn settlements_that_the_index_shows_late_are_in_a_later_report() -> Result<()> {
    let world = World::open().await?;
    let early = many(&world, "2026-11-20T09:20:00Z", 20, 0).await?;
    let stale = over_a_stale_index(&world).await?;
    // What this index shows is from before the second twenty.
    assert_eq!(invoke(&stale, "first", END_OF_TIME).await.map_err(anyhow::Error::msg)?["reported"], 20);
    let late = many(&world, "2026-11-20T09:05:00Z", 20, 1).await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    assert_eq!(invoke(&stale, "second", END_OF_TIME).await.map_err(anyhow::Error::msg)?["reported"], 0);
    // When it has caught up, they come, though they were settled before what was reported.
    assert_eq!(run(&world).await?["reported"], 20);
    let by_run: Vec<Vec<String>> = published(&world).await?.iter().map(|(_, csv)| rows(csv)).collect::<Result<_>>()?;
    assert_eq!(by_run.len(), 2);
    let mut all = [early, late].concat();
    all.sort();
    assert_eq!(reported_ids(&world).await?, all);
    world.close().await
}
