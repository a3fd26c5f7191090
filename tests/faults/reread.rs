//! A stream that is read again from its oldest record sends nothing again, with and without stale reads, in batches
//! of any size.
//!
//! A month never reads the stream of `dispatch` from its beginning.

use anyhow::Result;
use payments_delivery::{StreamMapping, StreamSettings};
use payments_lab::Weakness;
use payments_machine::layers::random::Seed;
use payments_machine::triggers::stream_settings;

use crate::kit::fixture::{Fixture, dispatch};
use crate::kit::staleness::Lag;

/// Creates payments and cancels some; all are over at the end.
async fn a_day(fixture: &Fixture) -> Result<()> {
    for morning in 0..4 {
        let mut intents = fixture.created(5).await?;
        fixture.cancel(&mut intents[morning]).await?;
        assert_eq!(fixture.finish(&intents, Some(Seed(1).source("finish"))).await?, [""; 0]);
    }
    Ok(())
}

#[tokio::test]
async fn a_re_read_stream_sends_nothing_again() -> Result<()> {
    let fixture = Fixture::start().await?;
    a_day(&fixture).await?;
    let sent = fixture.faults.sent();
    assert!(sent >= 16, "{sent} were sent");
    for batch_size in [1, 3, 100] {
        for lag in [Lag::default(), Lag::always(40)] {
            fixture.faults.lag(lag);
            let settings =
                StreamSettings { batch_size, ..stream_settings("dispatch", Some(&fixture.dispatch_failures))? };
            let mut again = StreamMapping::new(settings, fixture.world.stream().await?)?;
            let read = again.drain(fixture.time.now(), 999, |event| dispatch(&fixture.functions, event)).await?;
            assert!(read.iter().map(|delivery| delivery.records).sum::<usize>() >= 16, "{read:?}");
            assert_eq!(fixture.faults.sent(), sent, "in batches of {batch_size}");
        }
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn with_stale_reads_a_re_read_stream_sends_again() -> Result<()> {
    let fixture = Fixture::start().await?;
    a_day(&fixture).await?;
    let sent = fixture.faults.sent();
    fixture.faults.weaken(Some(Weakness::Inconsistent));
    // Reads show heads from before the settlement, and details as they are.
    let lag = Lag { details_too: false, ..Lag::always(5) };
    fixture.faults.lag(lag);
    fixture.dispatching.lock().await.restart_from_trim_horizon();
    fixture.dispatch_all().await?;
    assert!(fixture.faults.sent() > sent, "a stale read shows settled payments as pending");
    fixture.assert_counters_exact().await
}
