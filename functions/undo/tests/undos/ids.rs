//! `undo` selects payments by the ids of a file, and the last plan keeps what it selected.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use object_store::ObjectStoreExt as _;
use payments_model::undo::MAX_FILE_IDS;
use payments_model::{Actor, Hold, MAX_HOLDS, PaymentId, Switch, SwitchChange};
use serde_json::json;

use crate::kit::{Alone, ID, NOW, TODAY, by_ids, ends};

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
async fn the_last_plan_keeps_its_selection_unless_it_is_long() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let kept = async || -> Result<Vec<_>> {
        let plans = alone.given.store.undo(&ID.parse()?).await?.context("no undo")?.plans;
        Ok(plans.into_iter().map(|plan| plan.select).collect())
    };
    alone.plan(by_ids(&[&payment])).await?;
    assert_eq!(kept().await?, [[("ids".to_owned(), payment.payment_id.to_string())].into()]);
    let other = |place: usize| {
        anyhow::Ok(PaymentId::derive(&"tenant".parse()?, &format!("other-{place}").parse()?).to_string())
    };
    let many = (0..MANY).map(other).collect::<Result<Vec<_>>>()?;
    alone.plan(json!({ "ids": many })).await?;
    assert_eq!(kept().await?, [BTreeMap::new(), BTreeMap::new()]);
    Ok(())
}

#[tokio::test]
async fn a_plan_of_ids_that_are_of_no_payment_is_inexact() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let unknown = PaymentId::derive(&"tenant".parse()?, &"other".parse()?);
    let plan = alone.plan(json!({ "ids": [payment.payment_id.to_string(), unknown.to_string()] })).await?;
    assert_eq!((plan.payments, plan.inexact), (1, vec![format!("ids of no payment: 1, such as {unknown}")]));
    Ok(())
}

#[tokio::test]
async fn where_there_is_no_room_for_a_hold_those_of_others_suffice() -> Result<()> {
    let alone = Alone::start().await?;
    let (one, two) = (alone.given.scheduled("one", TODAY).await?, alone.given.scheduled("two", "2026-11-22").await?);
    let change = SwitchChange { by: Actor::operator("ada"), at: NOW.parse()?, reason: "a wrong feed".to_owned() };
    let hold = Hold { from: TODAY.parse()?, to: TODAY.parse()?, change };
    let full = Switch { version: 1, holds: vec![hold; MAX_HOLDS], ..Switch::default() };
    ensure!(alone.given.store.change_switch(&full).await?);
    assert_eq!(alone.plan(by_ids(&[&one])).await?.payments, 1);
    let error = alone.plan(by_ids(&[&two])).await.err().context("a date that nothing holds")?.to_string();
    assert!(error.contains("holds"), "{error}");
    assert_eq!(alone.given.store.switch().await?, full);
    Ok(())
}

/// As many ids as the console's form does not take.
const MANY: usize = 220;
