//! The stories of `stories.txt`, line by line.

use std::ops::RangeInclusive;

use futures::FutureExt as _;
use payments_queue::in_process::QueueSettings;

use super::*;
use crate::filter::Filter;

/// Why records are delivered again whose function reported failures.
const REPORTED: &str = "the function reported batch item failures";

#[test]
fn every_story_happens_as_it_is_told() {
    let stories = include_str!("stories.txt").trim_end().split("\n\n").skip(1);
    for story in stories {
        let (name, lines) = story.split_once('\n').unwrap();
        let mut stage = Stage::new();
        for line in lines.lines().map(str::trim) {
            assert_eq!(stage.play(line), line, "{name}");
        }
    }
}

/// A stream and the mapping that reads it.
struct Stage {
    stream: InMemoryStream,
    mapping: StreamMapping,
    failures: Queue,
    now: DateTime<Utc>,
}

impl Stage {
    fn new() -> Self {
        let stream = InMemoryStream::new(ARN);
        let failures = Queue::new(QueueSettings::named("dispatch-failures"));
        Self { mapping: mapping(settings(), &stream), stream, failures, now: at(0) }
    }

    /// Does what a line says, and returns the line of what was seen.
    fn play(&mut self, line: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split(' ');
        match word {
            "records" => self.arrive(words.next().unwrap().into(), words),
            "shard" => self.stream.add_shard(words.next().unwrap().into(), words.next().map(ShardId::from)).unwrap(),
            "split" => {
                let parent = words.next().unwrap().into();
                self.stream.split(&parent, &words.map(ShardId::from).collect::<Vec<_>>(), self.now).unwrap();
            }
            "trim" => drop(self.stream.trim_before(at(rest.parse().unwrap()))),
            "at" => self.now = at(rest.parse().unwrap()),
            "mapping" => {
                self.mapping = self.begin(rest);
                drop(self.ready());
            }
            "resume" => self.mapping.resume_from_checkpoints(),
            "restart" => self.mapping.restart_from_trim_horizon(),
            "ready" => return format!("ready {}", self.ready()),
            "checkpoint" => return format!("checkpoint {}", self.checkpoints()),
            "failed" => return format!("failed {}", self.failed()),
            "nothing" if rest.is_empty() => {
                let step = self.mapping.step(self.now, async |_| Err("invoked".to_owned())).now_or_never();
                assert_eq!(step.unwrap().unwrap(), []);
            }
            "nothing" => assert_eq!(self.step(rest, "invoked").1, Some(Ok(None))),
            "unknown" => assert_eq!(self.step(rest, "invoked").1, Some(Err(format!("there is no shard {rest}")))),
            "redeliver" => return self.redeliver(line),
            shard => return self.invoke(shard, line),
        }
        line.to_owned()
    }

    fn arrive<'l>(&self, shard: ShardId, records: impl Iterator<Item = &'l str>) {
        if !self.stream.shards().iter().any(|known| known.id == shard) {
            self.stream.add_shard(shard.clone(), None).unwrap();
        }
        for text in records {
            let (text, kind) = text.split_once(':').unwrap_or((text, "head"));
            let (numbers, second) = text.split_once('@').unwrap_or((text, "0"));
            for number in range(numbers) {
                self.stream.push(&shard, record(number, second.parse().unwrap(), kind)).unwrap();
            }
        }
    }

    /// Makes another mapping, with these settings.
    fn begin(&self, rest: &str) -> StreamMapping {
        let (mut settings, mut cuts) = (settings(), None);
        for (name, value) in rest.split(", ").map(|setting| setting.split_once(' ').unwrap_or((setting, ""))) {
            let seconds = || TimeDelta::seconds(value.parse().unwrap());
            match name {
                "" => {}
                "batch" => settings.batch_size = value.parse().unwrap(),
                "wait" => settings.maximum_batching_window = seconds(),
                "window" => settings.tumbling_window = Some(seconds()),
                "retries" => settings.maximum_retry_attempts = value.parse().ok(),
                "bisect" => settings.bisect_batch_on_function_error = true,
                "report" => settings.report_batch_item_failures = true,
                "destination" => settings.on_failure = Some(self.failures.clone()),
                "heads" => settings.filter = Filter::parse(r#"{"dynamodb":{"NewImage":{"kind":{"S":["head"]}}}}"#).ok(),
                "cuts" => cuts = Some(value.split(' ').map(|cut| cut.parse().unwrap()).collect::<Vec<_>>()),
                other => panic!("no setting {other}"),
            }
        }
        let mapping = mapping(settings, &self.stream);
        let Some(cuts) = cuts else { return mapping };
        let mut cuts = cuts.into_iter().cycle();
        mapping.with_batch_cuts(move |_| cuts.next().unwrap())
    }

    fn ready(&mut self) -> String {
        let ready = self.mapping.ready().now_or_never().unwrap().unwrap();
        ready.iter().map(ShardId::as_str).collect::<Vec<_>>().join(" ")
    }

    fn checkpoints(&self) -> String {
        let checkpoint = |number: Option<SequenceNumber>| number.map_or("none".to_owned(), |it| it.to_string());
        let all = self.mapping.checkpoints().into_iter().map(|(id, number)| format!("{id} {}", checkpoint(number)));
        all.collect::<Vec<_>>().join(", ")
    }

    /// The failure records, in short.
    fn failed(&self) -> String {
        let shown = |body: &str| {
            let record: Value = serde_json::from_str(body).unwrap();
            let (batch, context) = (&record["DDBStreamBatchInfo"], &record["requestContext"]);
            assert_eq!(context["condition"], "RetryAttemptsExhausted");
            let [from, to] = ["startSequenceNumber", "endSequenceNumber"].map(|end| batch[end].as_str().unwrap());
            format!("{from}..{to} of {} after {}", batch["batchSize"], context["approximateInvokeCount"])
        };
        let records = self.failures.receive(10, self.now);
        records.iter().map(|message| shown(&message.body)).collect::<Vec<_>>().join(", ")
    }

    /// Steps a shard. Returns what the function saw, and the delivery: none if the function was killed.
    fn step(&mut self, shard: &str, answer: &str) -> (String, Option<Result<Option<Delivery>, String>>) {
        let seen = RefCell::new((String::new(), 0));
        let function = async |event: Value| {
            seen.replace((shown(&event), numbers(&event).len()));
            if answer == "killed" { std::future::pending().await } else { answered(answer) }
        };
        let step = self.mapping.step_shard(&shard.into(), self.now, function).now_or_never();
        let (seen, records) = seen.into_inner();
        if let Some(Ok(Some(delivery))) = &step {
            let kind = if seen.starts_with("end") { Invocation::WindowEnd } else { Invocation::Batch };
            assert_eq!((&delivery.shard, delivery.invocation, delivery.records), (&shard.into(), kind, records));
        }
        (seen, step.map(|step| step.map_err(|error| error.to_string())))
    }

    /// Invokes the function as often as a line says. Returns the line of what was seen, if it was the same each time.
    fn invoke(&mut self, shard: &str, line: &str) -> String {
        let (row, times) = line.rsplit_once(" x").unwrap_or((line, "1"));
        let (_, rest) = row.split_once(" -> ").unwrap();
        let answer = rest.split(" => ").next().unwrap();
        for _ in 0..times.parse().unwrap() {
            let (seen, step) = self.step(shard, answer);
            let outcome = step.map_or_else(String::new, |step| outcome(step.unwrap(), answer));
            let found = format!("{shard} {seen} -> {answer}{outcome}");
            if found != row {
                return found;
            }
        }
        line.to_owned()
    }

    fn redeliver(&mut self, line: &str) -> String {
        let (done, _) = line.split_once(" => ").unwrap();
        let (what, answer) = done.split_once(" -> ").unwrap();
        let [_, shard, from, to] = what.split([' ', '-']).collect::<Vec<_>>()[..] else { panic!("{what}") };
        let seen = RefCell::new(Vec::new());
        let function = async |event: Value| {
            seen.borrow_mut().push((shown(&event), numbers(&event).len()));
            answered(answer)
        };
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let delivered = self.mapping.redeliver(&shard.into(), &from, &to, function).now_or_never();
        let (events, counts): (Vec<_>, Vec<usize>) = seen.into_inner().into_iter().unzip();
        assert_eq!(delivered.unwrap().unwrap(), counts.into_iter().sum::<usize>());
        format!("{done} => {}", events.join(", "))
    }
}

/// The numbers of `4` or `4..7`.
fn range(text: &str) -> RangeInclusive<u64> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    from.parse().unwrap()..=to.parse().unwrap()
}

/// An event in short.
fn shown(event: &Value) -> String {
    let numbers = numbers(event);
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first}..{last}")],
        few => few.iter().map(u64::to_string).collect(),
    });
    let mut words: Vec<String> = runs.collect();
    words.extend((event["isFinalInvokeForWindow"] == true).then(|| "end".to_owned()));
    words.extend(event.get("state").map(|state| state.to_string().replace("\"count\":", "")));
    words.join(" ")
}

fn answered(answer: &str) -> Result<Value, String> {
    let (words, count) = answer.split_once(" {").unwrap_or((answer, ""));
    let mut answer = match words.split(' ').collect::<Vec<_>>()[..] {
        ["ok"] => json!({}),
        ["fails", ref numbers @ ..] => failed(numbers.iter().map(|number| number.parse().unwrap())),
        ["error" | "invoked"] => return Err(words.to_owned()),
        _ => return Ok(serde_json::from_str(answer).unwrap()),
    };
    if let Some(count) = count.strip_suffix('}') {
        answer["state"] = json!({"count": count.parse::<u64>().unwrap()});
    }
    Ok(answer)
}

/// The outcome of an invocation, as rows say it.
fn outcome(delivery: Option<Delivery>, answer: &str) -> String {
    let Some(delivery) = delivery else { return " => not invoked".to_owned() };
    match delivery.outcome {
        DeliveryOutcome::Succeeded => String::new(),
        DeliveryOutcome::Discarded { records } => format!(" => {records} lost"),
        DeliveryOutcome::Retrying { why, remaining } if why == answer || why == REPORTED => {
            format!(" => {remaining} left")
        }
        DeliveryOutcome::Retrying { why, remaining } => format!(" => {remaining} left: {why}"),
    }
}
