//! Words, marks and fields of views: late payments, redates, dates in force, and selections.

use anyhow::{Context as _, Result};
use payments_model::BusinessDate;
use payments_store::{Job, LastRun};
use serde_json::json;

use super::Alone;

#[tokio::test]
async fn a_date_on_which_payments_wait_for_a_redate_is_marked() -> Result<()> {
    let alone = Alone::start().await?;
    let now = alone.given.stack.clock.now();
    let dates = json!([{ "date": "2026-12-05", "calendar": "GB", "count": 3 }]);
    let look = LastRun::new(Job::Look, (now, now), Some(&json!({ "waiting": 3, "waitingDates": dates })));
    alone.given.store.put_last_run(&look).await?;
    let ahead = alone.page("ahead?from=2026-12-01").await?;
    let (before, after) = ahead.split_once("wait for a redate").context("a mark")?;
    assert!(before.ends_with(">Sat 5 Dec</a> <span class=\"pill warn\">") && !after.contains("redate"), "{ahead}");
    Ok(())
}

#[tokio::test]
async fn a_payment_that_was_sent_in_time_is_not_late() -> Result<()> {
    let alone = Alone::start().await?;
    // Due at midnight, created at nine and claimed at once.
    alone.given.pending("rent").await?;
    let waiting = alone.page("waiting").await?;
    assert!(waiting.contains("<small>9 h ago</small>") && !waiting.contains(" late"), "{waiting}");
    // Not claimed for more than half an hour.
    alone.given.scheduled("gas", "2026-11-20").await?;
    let waiting = alone.page("waiting").await?;
    assert!(waiting.contains("<small>9 h late</small>"), "{waiting}");
    Ok(())
}

#[tokio::test]
async fn all_that_match_are_selected_up_to_the_limit_of_a_cancel() -> Result<()> {
    let alone = Alone::start().await?;
    for n in 0..120 {
        let payee = if n % 2 == 0 { "city-water" } else { "landlord" }.parse()?;
        alone.given.scheduled_as(&format!("key-{n}"), "2026-12-01", |instruction| instruction.payee = payee).await?;
    }
    for (view, most) in [
        ("list?date=2026-12-01&status=SCHEDULED", 100),
        ("list?date=2026-12-01&status=SCHEDULED&payee=water", 60),
        ("account?id=tenant", 100),
        ("account?id=tenant&payee=city-water", 60),
    ] {
        let page = alone.page(view).await?;
        assert!(page.contains("Select all that match, up to 100") && !page.contains(" checked"), "{view}: {page}");
        let links: Vec<_> = page.split("href=\"#").filter_map(|link| link.split('"').next()).collect();
        let all = links.into_iter().find(|link| link.contains("select=all")).unwrap_or_default().replace("&amp;", "&");
        let selected = alone.page(&all).await?;
        assert_eq!(selected.matches(" checked").count(), most, "{all}");
        assert_eq!(selected.contains("More match: one cancel takes 100"), most == 100, "{all}");
        assert!(!selected.contains("Select all that match"), "{all}");
    }
    let few = alone.page("account?id=tenant&payee=nobody").await?;
    assert!(!few.contains("Select all that match"), "{few}");
    for wrong in ["account?id=tenant&select=x", "list?date=2026-12-01&status=SCHEDULED&select=x"] {
        assert_eq!(alone.view(wrong).await?.status, 400, "{wrong}");
    }
    Ok(())
}

#[tokio::test]
async fn an_account_shows_the_dates_in_force_and_leads_to_payments_to_it() -> Result<()> {
    let alone = Alone::start().await?;
    let today: BusinessDate = "2026-11-20".parse()?;
    let (today, before) = (today.to_string(), today.minus_days(1).to_string());
    for (arguments, from, to, is_filter) in [
        ("", today.as_str(), "", false),
        ("&from=2026-11-20", &today, "", false),
        ("&from=2026-11-21", "2026-11-21", "", true),
        ("&show=past", "", before.as_str(), false),
        ("&show=past&to=2026-11-19", "", &before, false),
        ("&show=all", "", "", false),
        ("&show=all&from=2026-11-20", &today, "", true),
    ] {
        let page = alone.page(&format!("account?id=landlord{arguments}")).await?;
        for (name, value) in [("from", from), ("to", to)] {
            assert!(page.contains(&format!("name=\"{name}\" value=\"{value}\"")), "{arguments} {name}: {page}");
        }
        assert_eq!(page.contains("Clear filters"), is_filter, "{arguments}");
        assert!(page.contains("href=\"#find?text=landlord\"") && page.contains("Payments to it"), "{arguments}");
    }
    let found = alone.page("find?text=landlord").await?;
    assert!(found.contains("payments to a payee are found only within one"), "{found}");
    Ok(())
}
