//! A property that holds however batches are cut, split, failed and lost.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A runtime of several threads can move a mapping between them.
#[tokio::test]
async fn a_step_can_run_on_any_thread() {
    let mut mapping = mapping(settings(), &stream(3)).with_batch_cuts(|fits| fits);
    let task = tokio::spawn(async move {
        let function = async |_: Value| {
            tokio::task::yield_now().await;
            Ok(Value::Null)
        };
        mapping.redeliver(&shard(), &1.into(), &2.into(), function).await.unwrap();
        mapping.drain(at(0), 9, function).await.unwrap().len()
    });
    assert_eq!(task.await.unwrap(), 1);
}

/// Returns a source of pseudo-random numbers.
fn random(seed: u64) -> impl FnMut(usize) -> usize + Send {
    let mut state = seed | 1;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// The variation of a delivery by [`deliver`].
#[derive(Debug, Clone, Copy)]
struct Variation {
    seed: u64,
    count: u64,
    bisect: bool,
    windows: bool,
    recut: bool,
}

/// Delivers a stream with random cuts, splits, errors, lost responses and partial responses, and returns the records that
/// succeeded, in order of success.
async fn deliver(Variation { seed, count, bisect, windows, recut }: Variation) -> Vec<u64> {
    let settings = StreamSettings {
        batch_size: 7,
        report_batch_item_failures: true,
        bisect_batch_on_function_error: bisect,
        tumbling_window: windows.then_some(TimeDelta::seconds(60)),
        ..settings()
    };
    let stream = stream(0);
    for number in 1..=count {
        stream.push(&shard(), record(number, i64::try_from(number).unwrap() * 10, "head")).unwrap();
    }
    let mut mapping = mapping(settings, &stream);
    if recut {
        let mut cut = random(seed);
        mapping = mapping.with_batch_cuts(move |fits| 1 + cut(fits));
    }
    let (chance, done) = (RefCell::new(random(seed + 1)), RefCell::new(Vec::new()));
    let function = async |event: Value| {
        let numbers = numbers(&event);
        let chance = &mut *chance.borrow_mut();
        let (succeeded, failures) = match chance(4) {
            0 => return Err("killed before it did anything".to_owned()),
            1 => {
                done.borrow_mut().extend(numbers);
                return Err("done, and the answer was lost".to_owned());
            }
            2 if !numbers.is_empty() => {
                let index = chance(numbers.len());
                (&numbers[..index], &numbers[index..=index])
            }
            _ => (numbers.as_slice(), [].as_slice()),
        };
        done.borrow_mut().extend(succeeded);
        let mut answer = failed(failures.iter().copied());
        answer["state"] = json!({});
        Ok(answer)
    };
    mapping.drain(at(99_999), 10_000, function).await.unwrap();
    let left = mapping.step(at(99_999), async |_| Err("nothing is left".to_owned())).await.unwrap();
    assert_eq!(left, []);
    assert_eq!(mapping.checkpoints()[&shard()], (count > 0).then(|| count.into()));
    done.take()
}

proptest! {
    #[test]
    fn everything_is_delivered_and_first_in_order(
        seed in any::<u32>(), count in 0_u64..60, bisect in any::<bool>(), windows in any::<bool>(),
        recut in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let done = runtime.block_on(deliver(Variation { seed: seed.into(), count, bisect, windows, recut }));
        let mut seen = BTreeSet::new();
        let first: Vec<u64> = done.into_iter().filter(|number| seen.insert(*number)).collect();
        prop_assert_eq!(first, (1..=count).collect::<Vec<_>>());
    }
}
