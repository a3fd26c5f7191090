//! Moves of a date that has passed: a run continues past midnight, or nothing was swept on the closed date.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{AFTER, Announced, HOLIDAY, ask, bank, england, moved, numbers, run};

/// One payment more than are judged at once.
const PAYMENTS: usize = 26;

/// Each head with its due key's date and time, and its status.
async fn due(announced: &Announced) -> Result<Vec<String>> {
    let heads = announced.world.heads("tenant").await?;
    let text = |value: &str| value.rsplit_once('#').map_or_else(String::new, |(due, _)| due.to_owned());
    Ok(heads.iter().filter_map(|head| head["due"].as_s().ok()).map(|due| text(due)).collect())
}

/// The last payment is judged five minutes after midnight, on the day to which all others moved. It moves there, too.
#[tokio::test]
async fn a_move_that_runs_past_midnight_moves_all_to_the_same_day() -> Result<()> {
    let announced = Arc::new(Announced::with(|environment| environment.shards = 1).await?);
    for n in 0..PAYMENTS {
        let later = json!({ "scheduledFor": format!("{HOLIDAY}T23:58:00Z"), "dateRule": "following" });
        announced.create_as(&format!("rent-{n}"), &later).await?;
    }
    announced.world.set_clock("2026-12-28T23:50:00Z")?;
    let (inside, reads) = (Arc::clone(&announced), AtomicUsize::new(0));
    let recorder = Recorder::with_fate(move |call| {
        // Heads and details of the first 25, then heads of the last one.
        if call.operation == "BatchGetItem" && reads.fetch_add(1, Ordering::Relaxed) == 2 {
            let moved = inside.world.set_clock("2026-12-29T00:05:00Z");
            return if moved.is_ok() { Fate::Pass } else { Fate::Refuse(400, "AccessDeniedException") };
        }
        Fate::Pass
    });
    let functions = bank(&announced.world, &recorder, england).await?;
    let outcome = run(&functions, "move").await?;
    assert_eq!(numbers(&outcome), moved(26, 26));
    assert_eq!(announced.world.now().to_string(), "2026-12-29T00:05:00Z");
    assert_eq!(due(&announced).await?, vec![format!("SCHEDULED#{AFTER}#{AFTER}T00:00:00Z"); PAYMENTS]);
    // The payments are due at once, and a second move finds no payment.
    assert_eq!(run(&announced.after, "move").await?, moved(0, 0));
    announced.world.sweep().await?;
    assert_eq!(due(&announced).await?, vec![format!("PENDING#{AFTER}#{AFTER}T00:00:00Z"); PAYMENTS]);
    Ok(())
}

/// The sweep was paused on the holiday, or on the Friday before. The schedule's look finds what waits, and a move moves it to today or to
/// the next open date.
#[tokio::test]
async fn what_was_not_swept_on_a_closed_date_is_moved_days_later() -> Result<()> {
    for (closed, now, date) in [
        (HOLIDAY, "2026-12-29T10:00:00Z", AFTER),
        (HOLIDAY, "2027-01-04T10:00:00Z", "2027-01-04"),
        ("2026-12-25", "2026-12-26T10:00:00Z", AFTER),
    ] {
        for rule in ["following", "preceding"] {
            let announced = Announced::new().await?;
            let id = announced.create_as("rent", &json!({ "scheduledFor": closed, "dateRule": rule })).await?;
            announced.world.set_clock(now)?;
            let look = ask(&announced.after, &json!({ "action": "look" }), NO_DEADLINE).await?;
            assert_eq!((look.waiting, &look.examples), (1, &vec![id.clone()]), "{closed} {now}");
            let request = json!({ "action": "move", "calendar": "GB", "from": closed, "to": HOLIDAY });
            assert_eq!(numbers(&ask(&announced.after, &request, NO_DEADLINE).await?), moved(1, 1), "{closed} {now}");
            let want = (format!("{date}T00:00:00Z"), "holiday".to_owned(), 2);
            assert_eq!(announced.due(&id).await?, want, "{closed} {now}");
            announced.world.set_clock(&format!("{date}T10:05:00Z"))?;
            announced.world.sweep().await?;
            assert_eq!(announced.get(&id).await?.field("status"), "PENDING", "{closed} {now}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_week_is_as_far_back_as_a_run_looks() -> Result<()> {
    let announced = Announced::new().await?;
    announced.create("following").await?;
    announced.world.set_clock("2027-01-05T10:00:00Z")?;
    let refused = run(&announced.after, "move").await.expect_err("eight days ago").to_string();
    let want = "\"from\" (2026-12-28) is more than 7 days ago; give 2026-12-29 or a later date";
    assert!(refused.ends_with(want), "{refused}");
    Ok(())
}
