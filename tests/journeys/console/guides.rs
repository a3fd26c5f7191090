//! The guides in the console: each alarm has its page, and every link to a guide leads to one.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_alarms::Alarm;
use payments_tests::{World, template};

use super::{assert_statuses, links, page, view};

#[tokio::test]
async fn each_alarm_has_its_page() -> Result<()> {
    let world = World::open().await?;
    let table = page(&world, "alarms").await?;
    for Alarm { name, .. } in Alarm::all(&template()?)? {
        let wanted = format!("alarms?at={}", name.to_lowercase());
        let entry = page(&world, &wanted).await?;
        assert!(entry.contains(&format!("<h1 tabindex=\"-1\">{name}</h1>")), "{entry}");
        // Neither Markdown nor the line for simulated operators is in an entry.
        assert!(!entry.contains("Actions:") && !entry.contains("](") && !entry.contains("**"), "{entry}");
        assert!(links(&table).any(|link| link == wanted), "the table does not lead to {name}");
    }
    let wrong = [("alarms?at=noalarm", 404), ("alarms?at=", 404), ("alarms?name=apierrors", 400)];
    assert_statuses(&world, &wrong).await
}

/// (The compiler checks the links of the console's own texts, and the build those of documents.)
#[tokio::test]
async fn every_link_leads_to_a_view() -> Result<()> {
    let world = World::open().await?;
    let mut to_visit = vec!["day".to_owned()];
    let shell = world.send(payments_tests::Ask::get("/console")).await?;
    to_visit.extend(links(&shell.text).filter(|link| link != "main"));
    let mut visited = BTreeSet::new();
    while let Some(wanted) = to_visit.pop() {
        let is_other_date = wanted.contains("date=") || wanted.contains("from=");
        if is_other_date || !visited.insert(wanted.clone()) {
            continue;
        }
        let reply = view(&world, &wanted).await?.with_status(200).with_context(|| wanted.clone())?;
        to_visit.extend(links(&reply.text));
    }
    // From the table to the entries, and from them to tasks and losses.
    for wanted in ["alarms?at=apierrors", "operations?at=pause-and-resume", "restore?at=a-new-epoch-of-the-log"] {
        assert!(visited.contains(wanted), "no link leads to {wanted}: {visited:#?}");
    }
    Ok(())
}
