//! Invocations of functions by hand, and functions that differ from those of the world.

use anyhow::{Result, ensure};
use archive::ArchiveOutcome;
use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_machine::{Call, Environment, Fate, Handlers as _, Recorder};
use payments_store::Item;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tables::{NO_DEADLINE, context, json_of_item};
use crate::world::World;

/// Invokes a function with a schedule's input, and enough time.
pub async fn invoke<Request: DeserializeOwned, Outcome, Run>(
    handle: impl FnOnce(LambdaEvent<Request>) -> Run,
    input: Value,
) -> Result<Outcome>
where
    Run: Future<Output = Result<Outcome, lambda_runtime::Error>>,
{
    invoke_until(handle, input, NO_DEADLINE).await
}

/// Invokes a function that has time until a deadline, in milliseconds.
pub async fn invoke_until<Request: DeserializeOwned, Outcome, Run>(
    handle: impl FnOnce(LambdaEvent<Request>) -> Run,
    input: Value,
    deadline: u64,
) -> Result<Outcome>
where
    Run: Future<Output = Result<Outcome, lambda_runtime::Error>>,
{
    let event = LambdaEvent::new(serde_json::from_value(input)?, context(deadline));
    handle(event).await.map_err(anyhow::Error::from_boxed)
}

/// Runs one of these functions by its name, with a schedule's input. Returns its outcome.
pub async fn scheduled(functions: &Functions, function: &'static str, input: Value) -> Result<Value> {
    functions.scheduled(function, input, context(NO_DEADLINE)).await.map_err(anyhow::Error::msg)
}

impl World {
    /// Runs a scheduled function. Returns its outcome.
    pub async fn run(&self, function: &'static str, input: Value) -> Result<Value> {
        scheduled(self.functions(), function, input).await
    }

    /// Runs one sweep.
    pub async fn sweep(&self) -> Result<()> {
        invoke(|event| self.functions().sweeper.handle(event), json!({ "action": "sweep" })).await.map(drop)
    }

    /// Runs the archive.
    pub async fn archive(&self) -> Result<ArchiveOutcome> {
        invoke(|event| self.functions().archive.handle(event), json!({ "action": "archive" })).await
    }

    /// Delivers settlement results, ten to a batch. The queue delivers once more what fails.
    pub async fn settle(&self, results: &[Value]) -> Result<()> {
        for some in results.chunks(10) {
            let record =
                |(n, result): (usize, &Value)| json!({ "messageId": n.to_string(), "body": result.to_string() });
            let records: Vec<Value> = some.iter().enumerate().map(record).collect();
            let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
            let mut response = self.functions().settle_batch(event.clone()).await;
            if !response.batch_item_failures.is_empty() {
                response = self.functions().settle_batch(event).await;
            }
            ensure!(response.batch_item_failures.is_empty(), "{response:?}");
        }
        Ok(())
    }

    /// Delivers these heads to `dispatch`, as the records of their claims.
    pub async fn dispatch(&self, heads: &[Item]) -> Result<()> {
        let record = |(n, head): (usize, &Item)| {
            let image = json_of_item(head);
            json!({
                "eventID": n.to_string(), "eventName": "MODIFY", "awsRegion": "eu-west-2",
                "dynamodb": {
                    "ApproximateCreationDateTime": 1_796_115_600, "Keys": { "pk": image["pk"], "sk": image["sk"] },
                    "NewImage": image, "SequenceNumber": (n + 100).to_string(), "SizeBytes": 1,
                    "StreamViewType": "NEW_IMAGE",
                },
            })
        };
        let records: Vec<Value> = heads.iter().enumerate().map(record).collect();
        let response = self.functions().dispatch.handle(serde_json::from_value(json!({ "Records": records }))?).await;
        let response = response.map_err(anyhow::Error::from_boxed)?;
        ensure!(response.batch_item_failures.is_empty(), "{response:?}");
        Ok(())
    }

    /// Takes the requests from the queue of the transaction service.
    pub fn take_requests(&self) -> Vec<String> {
        let (requests, now) = (&self.outside.requests, self.now().as_chrono());
        let received = std::iter::from_fn(|| Some(requests.receive(10, now)).filter(|some| !some.is_empty())).flatten();
        let taken = received.inspect(|message| assert!(requests.delete(&message.receipt_handle)));
        taken.map(|message| message.body).collect()
    }

    /// The functions of a bank with other settings.
    pub async fn functions_with(&self, change: impl FnOnce(&mut Environment)) -> Result<Functions> {
        let mut environment = self.environment.clone();
        change(&mut environment);
        let dependencies = self.dependencies_over(&self.recorder).await;
        Functions::within(&environment, |_| Ok(dependencies.clone()))
    }

    /// The functions of the world. Calls that `meets` selects have this fate.
    pub async fn functions_meeting(
        &self,
        fate: Fate,
        meets: impl Fn(&Call) -> bool + Send + Sync + 'static,
    ) -> Result<Functions> {
        let recorder = Recorder::with_fate(move |call| if meets(call) { fate } else { Fate::Pass });
        self.functions_over(&recorder).await
    }
}

/// Returns a recorder: before each call that `when` selects, something happens, and if it fails, so does the call. The
/// test's runtime must have several threads.
pub fn interrupted<Done: Future<Output = Result<()>>>(
    when: impl Fn(&Call) -> bool + Send + Sync + 'static,
    happens: impl Fn() -> Done + Send + Sync + 'static,
) -> Recorder {
    let handle = tokio::runtime::Handle::current();
    Recorder::with_fate(move |call| {
        if !when(call) {
            return Fate::Pass;
        }
        match tokio::task::block_in_place(|| handle.block_on(happens())) {
            Ok(()) => Fate::Pass,
            Err(_) => Fate::Refuse(400, "AccessDeniedException"),
        }
    })
}
