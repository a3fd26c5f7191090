//! `undo` selects payments by the ids of a file, and a plan keeps what it selected.

use anyhow::{Context as _, Result};
use object_store::ObjectStoreExt as _;
use payments_model::PaymentId;
use payments_model::undo::MAX_FILE_IDS;
use serde_json::json;

use crate::kit::{Alone, ID, TODAY, by_ids, ends};

#[tokio::test]
async fn payments_are_selected_by_the_ids_of_a_file() -> Result<()> {
    let alone = Alone::start().await?;
    let (one, two) = (alone.given.scheduled("one", TODAY).await?, alone.given.scheduled("two", "2026-11-22").await?);
    let select = json!({ "file": "feed-1" });
    let path = payments_files::ids_path("feed-1");
    let error = alone.plan(select.clone()).await.err().context("no file")?.to_string();
    assert!(error.contains("undo/ids/feed-1.txt does not exist"), "{error}");
    for (text, says) in [
        ("\n".to_owned(), "line 1 of the file"),
        (format!("{}\n\nx\n", one.payment_id), "line 3 of the file"),
        (format!("{}\n", one.payment_id).repeat(MAX_FILE_IDS + 1), "has more than 100000 ids"),
        ("\n".repeat(38 * MAX_FILE_IDS + 1), "has more than 100000 ids"),
    ] {
        alone.given.stack.reports.put(&path, text.into()).await?;
        let error = alone.plan(select.clone()).await.err().context("a file that cannot be used")?.to_string();
        assert!(error.contains(says), "{error}");
    }
    let ids = format!("{}\r\n{}\n{0}", one.payment_id, two.payment_id);
    alone.given.stack.reports.put(&path, ids.into()).await?;
    let plan = alone.plan(select).await?;
    let switch = alone.given.store.switch().await?;
    assert!(switch.is_held(TODAY.parse()?) && switch.is_held("2026-11-22".parse()?), "{switch:?}");
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "cancelled": 2 }));
    Ok(())
}

#[tokio::test]
async fn a_plan_keeps_its_selection_unless_it_is_long() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    alone.plan(by_ids(&[&payment])).await?;
    let other = |place: usize| {
        anyhow::Ok(PaymentId::derive(&"tenant".parse()?, &format!("other-{place}").parse()?).to_string())
    };
    let many = (0..MANY).map(other).collect::<Result<Vec<_>>>()?;
    alone.plan(json!({ "ids": many })).await?;
    let plans = alone.given.store.undo(&ID.parse()?).await?.context("no undo")?.plans;
    assert_eq!(plans[0].select, [("ids".to_owned(), payment.payment_id.to_string())].into());
    assert!(plans[1].select.is_empty());
    Ok(())
}

/// As many ids as the console's form does not take.
const MANY: usize = 220;
