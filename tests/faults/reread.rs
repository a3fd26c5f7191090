//! A stream that is read again from its oldest record after the day sends nothing again, in good
//! weather and in bad, and however its records are cut into batches.

use anyhow::Result;
use payments_delivery::{StreamMapping, StreamSettings};
use payments_local::triggers::dispatch_settings;

use crate::dice::Dice;
use crate::rig::{Rig, dispatch, stream_of};
use crate::staleness::Lag;
use crate::weakness::Weakness;

/// A day of payments, some of them cancelled; everything is over at its end.
async fn a_day(rig: &Rig) -> Result<()> {
    for morning in 0..4 {
        let mut intents = rig.created(5).await?;
        rig.cancel(&mut intents[morning]).await?;
        assert_eq!(rig.finish(&intents, Some(Dice::seeded(1))).await?, [""; 0]);
    }
    Ok(())
}

#[tokio::test]
async fn a_re_read_stream_sends_nothing_again() -> Result<()> {
    let rig = Rig::set_up().await?;
    a_day(&rig).await?;
    let sent = rig.line.sent();
    assert!(sent >= 16, "{sent} were sent");
    for batch_size in [1, 3, 100] {
        for lag in [Lag::none(), Lag::always(40)] {
            rig.line.staleness().set(lag);
            let settings = StreamSettings { batch_size, ..dispatch_settings(&rig.put_aside)? };
            let mut again = StreamMapping::new(settings, stream_of(&rig.world).await?)?;
            let read = again.drain(rig.time.now(), 999, |event| dispatch(&rig.functions, event)).await?;
            assert!(read.iter().map(|delivery| delivery.records).sum::<usize>() >= 16, "{read:?}");
            assert_eq!(rig.line.sent(), sent, "in batches of {batch_size}");
        }
    }
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn it_would_with_stale_reads() -> Result<()> {
    let rig = Rig::set_up().await?;
    a_day(&rig).await?;
    let sent = rig.line.sent();
    rig.line.weaken(Some(Weakness::Inconsistent));
    // The heads are read as they were before they were settled, the details as they are.
    let lag = Lag { details_too: false, ..Lag::always(5) };
    rig.line.staleness().set(lag);
    rig.dispatching.lock().await.restart_from_trim_horizon();
    rig.dispatch_all().await?;
    assert!(rig.line.sent() > sent, "a stale read shows settled payments as pending");
    rig.assert_counters_exact().await
}
