//! Lambda, SQS and S3, as a deployed console reaches them.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_lambda::types::InvocationType;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use payments_boot::{ConfigError, Lookup};
use payments_files::LinkedFiles;
use payments_model::{OutageKind, UtcSecond};
use payments_queue::in_process::MAX_RECEIVED;
use payments_sqs::kind_of;

use crate::gate::is_closed;
use crate::operations::{
    BankQueue, LastMove, MoveBack, OperationError, Operations, QueueState, REPORTS, ReportFile, SampledMessage,
    Startable,
};
use crate::resources::Resources;

/// Lifetime of a download link. Chosen, not measured: an operator clicks it at once.
const LINK_LASTS: Duration = Duration::from_secs(60);

/// Time for which SQS looks for messages. Without a wait SQS asks only some of its servers, and may
/// miss a few messages.
const LOOKS_FOR_SECONDS: i32 = 1;

/// The services of AWS, with the role of the function.
#[derive(Debug, Clone)]
pub struct AwsOperations {
    resources: Resources,
    lambda: aws_sdk_lambda::Client,
    sqs: aws_sdk_sqs::Client,
    files: LinkedFiles,
}

impl AwsOperations {
    /// The operations of a deployed console.
    ///
    /// # Errors
    /// The storage of the reports cannot be opened.
    pub async fn configured(resources: &Resources, lookup: &Lookup<'_>) -> Result<Arc<dyn Operations>, ConfigError> {
        let files = resources.reports.open_with_links("REPORTS_URL", lookup)?;
        Ok(Arc::new(Self {
            resources: resources.clone(),
            lambda: payments_boot::lambda().await,
            sqs: payments_boot::sqs().await,
            files,
        }))
    }

    /// A queue's attributes, and its ARN.
    async fn state_and_arn(&self, queue: BankQueue) -> Result<(QueueState, Option<String>), OperationError> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible, Policy, QueueArn,
        };
        let asked = [ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible, Policy, QueueArn];
        let call = self.sqs.get_queue_attributes().queue_url(self.resources.queue(queue));
        let answer = call.set_attribute_names(Some(asked.into())).send().await;
        let mut attributes = answer.map_err(failed("SQS", "GetQueueAttributes"))?.attributes.unwrap_or_default();
        let arn = attributes.remove(&QueueArn);
        let policy = attributes.remove(&Policy);
        let mut number = |name| attributes.remove(&name).and_then(|text| text.parse().ok());
        let missing = || incomplete("SQS", "GetQueueAttributes");
        let waiting = number(ApproximateNumberOfMessages).ok_or_else(missing)?;
        let in_flight = number(ApproximateNumberOfMessagesNotVisible).ok_or_else(missing)?;
        let is_closed = policy.map_or(Some(false), |policy| is_closed(&policy)).ok_or_else(missing)?;
        Ok((QueueState { waiting, in_flight, is_closed, last_move: None }, arn))
    }

    async fn last_move(&self, arn: &str) -> Result<Option<LastMove>, OperationError> {
        let answer = self.sqs.list_message_move_tasks().source_arn(arn).max_results(1).send().await;
        let answer = answer.map_err(failed("SQS", "ListMessageMoveTasks"))?;
        Ok(answer.results.unwrap_or_default().into_iter().next().map(|task| LastMove {
            status: task.status.unwrap_or_default(),
            moved: task.approximate_number_of_messages_moved.try_into().unwrap_or(0),
            of: task.approximate_number_of_messages_to_move.and_then(|number| number.try_into().ok()),
            started_at: millis(task.started_timestamp),
            failure: task.failure_reason,
        }))
    }
}

#[async_trait]
impl Operations for AwsOperations {
    async fn start(&self, function: Startable, input: &str) -> Result<(), OperationError> {
        let call = self.lambda.invoke().function_name(self.resources.function(function));
        let call = call.invocation_type(InvocationType::Event).payload(input.as_bytes().into());
        call.send().await.map(drop).map_err(failed("Lambda", "Invoke"))
    }

    async fn queue(&self, queue: BankQueue) -> Result<QueueState, OperationError> {
        let (mut state, arn) = self.state_and_arn(queue).await?;
        if let Some(arn) = arn.filter(|_| queue.source().is_some()) {
            state.last_move = self.last_move(&arn).await?;
        }
        Ok(state)
    }

    async fn sample(&self, queue: BankQueue) -> Result<Vec<SampledMessage>, OperationError> {
        let call = self.sqs.receive_message().queue_url(self.resources.queue(queue));
        let most = i32::try_from(MAX_RECEIVED).unwrap_or(i32::MAX);
        // Visible again at once: no receiver waits for a message that an operator looks at.
        let call = call.max_number_of_messages(most).visibility_timeout(0).wait_time_seconds(LOOKS_FOR_SECONDS);
        let asked = [MessageSystemAttributeName::SentTimestamp, MessageSystemAttributeName::ApproximateReceiveCount];
        let answer = call.set_message_system_attribute_names(Some(asked.into())).send().await;
        let messages = answer.map_err(failed("SQS", "ReceiveMessage"))?.messages.unwrap_or_default();
        // With such a timeout SQS returns a message several times at once (aws-sdk-java, issue 705).
        let mut sampled: Vec<SampledMessage> = Vec::new();
        for message in messages.into_iter().map(sampled_message) {
            match sampled.iter_mut().find(|known| known.id == message.id) {
                Some(known) => known.receives = known.receives.max(message.receives),
                None => sampled.push(message),
            }
        }
        Ok(sampled)
    }

    async fn move_back(&self, dead_letters: BankQueue) -> Result<MoveBack, OperationError> {
        let (_, arn) = self.state_and_arn(dead_letters).await?;
        let arn = arn.ok_or_else(|| incomplete("SQS", "GetQueueAttributes"))?;
        let Err(error) = self.sqs.start_message_move_task().source_arn(&arn).send().await else {
            return Ok(MoveBack::Begun);
        };
        let error = failed("SQS", "StartMessageMoveTask")(error);
        // SQS runs one move for each queue, and rejects a second one, including a retry whose first try it accepted.
        let is_running =
            error.kind == OutageKind::Broken && self.last_move(&arn).await?.is_some_and(|last| last.is_running());
        if is_running { Ok(MoveBack::UnderWay) } else { Err(error) }
    }

    async fn reports(&self, after: &str, most: usize) -> Result<Vec<ReportFile>, OperationError> {
        let found = self.files.list(REPORTS, after, most).await;
        let found = found.map_err(|error| not_stored("ListObjectsV2", error))?;
        let files = found.into_iter();
        Ok(files.map(|file| ReportFile { path: file.location.to_string(), bytes: file.size }).collect())
    }

    async fn report_link(&self, path: &str) -> Result<Option<String>, OperationError> {
        let link = self.files.link(path, LINK_LASTS).await;
        link.map_err(|error| not_stored("presign", error))
    }
}

fn sampled_message(message: aws_sdk_sqs::types::Message) -> SampledMessage {
    let mut attributes = message.attributes.unwrap_or_default();
    let sent_at = attributes.remove(&MessageSystemAttributeName::SentTimestamp).and_then(|text| text.parse().ok());
    let receives = attributes.remove(&MessageSystemAttributeName::ApproximateReceiveCount);
    SampledMessage {
        id: message.message_id.unwrap_or_default(),
        body: message.body.unwrap_or_default(),
        sent_at: sent_at.and_then(millis),
        receives: receives.and_then(|text| text.parse().ok()),
    }
}

fn millis(since_1970: i64) -> Option<UtcSecond> {
    chrono::DateTime::from_timestamp_millis(since_1970).and_then(|at| UtcSecond::new(at).ok())
}

fn failed<E>(service: &'static str, call: &'static str) -> impl FnOnce(SdkError<E>) -> OperationError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    move |error| OperationError { service, call, kind: kind_of(&error), cause: Arc::new(error) }
}

/// A service's answer lacks the requested value.
#[derive(Debug, thiserror::Error)]
#[error("the answer lacks what was asked for")]
struct Incomplete;

fn incomplete(service: &'static str, call: &'static str) -> OperationError {
    OperationError { service, call, kind: OutageKind::Unavailable, cause: Arc::new(Incomplete) }
}

fn not_stored(call: &'static str, error: object_store::Error) -> OperationError {
    use object_store::Error::{InvalidPath, NotImplemented, NotSupported, PermissionDenied, Unauthenticated};
    let is_broken = matches!(
        error,
        InvalidPath { .. }
            | NotImplemented { .. }
            | NotSupported { .. }
            | PermissionDenied { .. }
            | Unauthenticated { .. }
    );
    let kind = if is_broken { OutageKind::Broken } else { OutageKind::Unavailable };
    OperationError { service: "S3", call, kind, cause: Arc::new(error) }
}

#[cfg(test)]
mod tests;
