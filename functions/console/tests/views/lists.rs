//! Lists of payments and of dates: their order, their filters and their ends.

use anyhow::Result;
use payments_model::ScheduledFor;

use super::Alone;

#[tokio::test]
async fn the_last_date_leads_no_further() -> Result<()> {
    let alone = Alone::start().await?;
    for (wanted, has, lacks) in [
        ("day?date=2099-12-31", "#day?date=2099-12-30", "Day after"),
        ("day?date=2000-01-01", "#day?date=2000-01-02", "Day before"),
        ("ahead?from=2099-12-15", "#ahead?from=2099-11-14", "Later"),
        ("ahead?from=2000-01-01", "#ahead?from=2000-02-01", "Earlier"),
    ] {
        let page = alone.page(wanted).await?;
        assert!(page.contains(has) && !page.contains(lacks), "{wanted}: {page}");
    }
    Ok(())
}

#[tokio::test]
async fn a_filter_looks_at_a_bounded_number_of_payments_and_goes_on() -> Result<()> {
    let alone = Alone::start().await?;
    for n in 0..120 {
        let reference = if n % 40 == 7 { "Rent 2026" } else { "other" };
        let payee = if n % 2 == 0 { "city-water" } else { "landlord" }.parse()?;
        let key = format!("key-{n}");
        let created = alone.given.scheduled_as(&key, "2026-12-01", |instruction| {
            (instruction.payee, instruction.reference) = (payee, reference.parse().ok());
        });
        created.await?;
    }
    const LIST: &str = "list?date=2026-12-01&status=SCHEDULED";
    for (filter, matching) in [
        ("&reference=rent", 3),
        ("&reference=RENT&payee=lord", 3),
        ("&reference=rent&payee=water", 0),
        ("&account=nobody", 0),
        ("&amount=5.00", 120),
        ("&amount=5.01", 0),
        ("&code=AM04", 0),
        ("", 120),
    ] {
        let pages = alone.pages(&format!("{LIST}{filter}")).await?;
        let rows = pages.iter().flatten().filter(|link| link.starts_with("payment?id=")).count();
        assert_eq!(rows, matching, "{filter}");
        assert_eq!(pages.len(), matching.div_ceil(50).max(1), "{filter}");
    }
    let filtered = alone.page(&format!("{LIST}&reference=rent")).await?;
    assert!(
        filtered.contains("3 of the 120 payments that were looked at here match. These are the last"),
        "{filtered}"
    );
    let nothing = alone.page(&format!("{LIST}&reference=no")).await?;
    assert!(nothing.contains("Nothing matches.") && nothing.contains("Clear filters"), "{nothing}");
    for wrong in ["&amount=x", "&code=am04", &format!("&account={}", "a".repeat(49)), "&account=a&account=b"] {
        assert_eq!(alone.view(&format!("{LIST}{wrong}")).await?.status, 400, "{wrong}");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_shows_each_payment_once_in_the_order_of_due_times() -> Result<()> {
    let alone = Alone::start().await?;
    let mut created = Vec::new();
    for n in 0..230 {
        let account = format!("payer-{}", n % 7).parse()?;
        let key = format!("key-{n}");
        let at = format!("2026-12-01T12:00:{:02}Z", n % 60);
        let at = ScheduledFor::Instant(at.parse()?);
        let created_now = alone.given.scheduled_as(&key, "2026-12-01", |instruction| {
            (instruction.account, instruction.scheduled_for) = (account, at);
        });
        created.push(created_now.await?.payment_id.to_string());
    }
    let links = alone.pages("list?date=2026-12-01&status=SCHEDULED").await?.concat();
    let ids = links.iter().filter_map(|link| link.strip_prefix("payment?id=")?.split('&').next());
    let mut shown: Vec<_> = ids.map(str::to_owned).collect();
    assert_eq!(shown.len(), 230);
    let times = |id: &String| {
        let place = created.iter().position(|known| known == id).unwrap_or(usize::MAX);
        (place % 60, id.clone())
    };
    assert!(shown.is_sorted_by_key(times), "{shown:?}");
    created.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, created);
    Ok(())
}
