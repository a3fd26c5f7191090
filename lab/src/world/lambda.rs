//! Lambda: sandboxes whose clocks differ, and invocations that can be killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::endpoint::{Endpoint, EndpointFuture, Params, ResolveEndpoint};
use aws_smithy_runtime_api::client::auth::AuthSchemeId;
use chrono::TimeDelta;
use object_store::ObjectStore;
use payments_bank::{Dependencies, Functions, OneMachine};
use payments_machine::layers::own_quota;
use payments_machine::layers::random::Seed;
use payments_machine::{Environment, Stack, Template};
use payments_store::Store;
use serde_json::Value;

use crate::plans::broken::{Broken, Part};
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::later::RESTORE;
use crate::plans::limits::DayLimits;
use crate::time::Time;
use crate::world::metrics::Metrics as Seen;
use crate::world::network::{Caller, Network};
use crate::world::receivers::Receivers;
use crate::world::sqs;

/// The milliseconds by which the sandboxes' clocks are ahead of the time.
const AHEAD: [i64; 3] = [0, 1_700, -1_300];

/// The end of an invocation.
pub(crate) trait Ended {
    /// Whether the code failed.
    fn has_failed(&self) -> bool;
}

impl Ended for Result<Value, String> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

impl Ended for ApiGatewayV2httpResponse {
    /// A response is not a failure, whatever its status.
    fn has_failed(&self) -> bool {
        false
    }
}

/// The sandboxes. Clones are the same.
#[derive(Clone)]
pub(crate) struct Lambda {
    /// The sandboxes of the functions, each with the functions of every limit of dates.
    sandboxes: Arc<[Vec<Arc<Functions>>]>,
    limits: Option<DayLimits>,
    faults: Faults,
    seed: Seed,
    broken: Broken,
    seen: Seen,
    invocations: Arc<Mutex<BTreeMap<&'static str, u64>>>,
    /// The store of the operator's tools.
    operator: Store,
}

impl Lambda {
    /// Creates the sandboxes over a network.
    pub(crate) fn new(
        (stack, closing, receivers): (&Stack, Option<Environment>, Receivers),
        network: &Network,
        reports: &Arc<dyn ObjectStore>,
        (seed, time, faults): (Seed, Time, &Faults),
        ((broken, seen), limits): ((&Broken, &Seen), Option<DayLimits>),
    ) -> Result<Self> {
        let (mut sandboxes, webhooks) = (Vec::new(), receivers.webhooks()?);
        for (sandbox, ahead) in AHEAD.into_iter().enumerate() {
            let ahead = if faults.are_enabled() { ahead } else { 0 };
            let own = |function: &'static str| {
                let caller = Caller { function, sandbox };
                let client = client(stack, network, caller);
                let ahead = TimeDelta::milliseconds(ahead) + network.ahead(caller);
                Ok(Dependencies {
                    store: Store::new(client, stack.environment.tables.clone()),
                    requests: sqs::queue_over(network.layers(caller), |config| config),
                    clock: time.clock(ahead),
                    metrics: stack.metrics.for_function(caller.function),
                    reports: Arc::clone(reports),
                    webhooks: webhooks.clone(),
                    operations: Arc::new(OneMachine::on(stack)),
                })
            };
            let mut functions = Functions::within(&stack.environment, own)?;
            if let Some(closing) = &closing {
                functions.redate = Functions::within(closing, own)?.redate;
            }
            let mut of_limits = vec![Arc::new(functions.clone())];
            for (place, limit) in limits.iter().flat_map(DayLimits::levels).enumerate() {
                let limited = Environment { max_day: limit.text(), ..stack.environment.clone() };
                let mut deployed = functions.clone();
                deployed.sweeper = Functions::within(&limited, own)?.sweeper;
                of_limits.truncate(place);
                of_limits.push(Arc::new(deployed));
            }
            sandboxes.push(of_limits);
        }
        let caller = Caller { function: RESTORE, sandbox: 0 };
        let operator = Store::new(client(stack, network, caller), stack.environment.tables.clone());
        let (broken, seen) = (broken.clone(), seen.clone());
        let (sandboxes, invocations) = (sandboxes.into(), Arc::default());
        Ok(Self { sandboxes, limits, faults: faults.clone(), seed, broken, seen, invocations, operator })
    }

    /// Invokes a function in some sandbox. An invocation that takes longer than the template permits is killed, and some are killed before.
    pub(crate) async fn invoke<Done: Future>(
        &self,
        what: &'static str,
        run: impl FnOnce(Arc<Functions>) -> Done,
    ) -> Result<Done::Output, String>
    where
        Done::Output: Ended,
    {
        if self.broken.is(Part::Function(what)) {
            self.seen.invoked(what, true);
            return Err(format!("{what} fails"));
        }
        let timeout = timeout_of(what)?;
        let number = {
            let mut invocations = self.invocations.lock().unwrap_or_else(PoisonError::into_inner);
            let count = invocations.entry(what).or_default();
            *count += 1;
            *count
        };
        let sandbox = self.seed.source(&format!("sandbox {what} {number}")).usize(0..AHEAD.len());
        let killed = self.faults.draw(FaultKind::Killed, 15);
        // Most invocations are short, some take minutes.
        let longest = if self.faults.millis(0..4).is_zero() { timeout.num_milliseconds() } else { 1_500 };
        let limit = if killed { self.faults.millis(1..longest) } else { timeout };
        let deployed = self.limits.as_ref().map_or(0, DayLimits::deployed);
        let run = run(Arc::clone(&self.sandboxes[sandbox][deployed]));
        let limit = limit.to_std().unwrap_or_default();
        let done = tokio::time::timeout(limit, run).await.map_err(|_| format!("{what} was killed"));
        self.seen.invoked(what, done.as_ref().map_or(true, Ended::has_failed));
        done
    }

    /// Returns the tables as the operator's tools reach them.
    pub(crate) fn operator(&self) -> &Store {
        &self.operator
    }

    /// Returns functions to read with, when nothing fails any more.
    pub(crate) fn functions(&self) -> &Functions {
        &self.sandboxes[0][0]
    }
}

/// Returns how long an invocation of a function may take, by the template.
pub(crate) fn timeout_of(function: &str) -> Result<TimeDelta, String> {
    let deployed = Template::ours().and_then(|template| template.function(function));
    deployed.map(|function| function.timeout).map_err(|error| error.to_string())
}

/// The engine's only endpoint. The rules of AWS's regions would find it again for each call.
#[derive(Debug)]
struct EngineEndpoint(Endpoint);

impl ResolveEndpoint for EngineEndpoint {
    fn resolve_endpoint<'a>(&'a self, _: &'a Params) -> EndpointFuture<'a> {
        EndpointFuture::ready(Ok(self.0.clone()))
    }
}

/// A sandbox's client of DynamoDB. Its process has a retry quota of its own.
fn client(stack: &Stack, network: &Network, caller: Caller) -> Client {
    let endpoint = EngineEndpoint(Endpoint::builder().url(stack.environment.endpoint.clone()).build());
    // The engine reads no signature, and making one takes a twentieth of a month.
    let config =
        stack.client().config().to_builder().allow_no_auth().auth_scheme_preference([AuthSchemeId::new("noAuth")]);
    let config = config.endpoint_resolver(endpoint);
    Client::from_conf(config.http_client(network.layers(caller)).retry_partition(own_quota()).build())
}
