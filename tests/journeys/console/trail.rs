//! The audit trail in the console: each action once, the newest first, and a search within a bound.

use anyhow::Result;
use payments_tests::World;

use super::acting::{NO_OUTCOME, action, confirm, offered_cancel, only_entry, troubled};
use super::{HOSTILE, assert_plain, assert_statuses, links, page, pages, rent};

/// The links to entries of the trail.
const ENTRY: &str = "audit?entry=";

#[tokio::test]
async fn the_trail_is_searched_by_person_action_and_payment_within_a_bound() -> Result<()> {
    let world = World::open().await?;
    let ids = [rent(&world, "a").await?, rent(&world, "b").await?];
    confirm(&world, "first", &offered_cancel(&world, &ids[..1]).await?).await?;
    // More actions than one read returns.
    for minute in 0..59 {
        world.set_clock(&format!("2026-11-20T10:{minute:02}:00Z"))?;
        let (at, name) = (world.now().to_string(), format!("00000000-0000-5000-8000-{minute:012}"));
        let form = format!("payments={}@1&at={at}&id={name}&step=do", ids[1]);
        world.send_named(world.functions(), &name, action("cancel", &form)).await?.with_status(200)?;
    }
    for (filter, found, reads) in [
        (format!("thing={}", ids[0]), 1, 2),
        (format!("thing={}", &ids[0][..8]), 1, 2),
        (format!("thing={}", ids[0].to_uppercase()), 1, 2),
        (format!("thing={}&action=cancel&person=LOCAL", ids[0]), 1, 2),
        // Enough of them are found by the first read.
        (format!("thing={}", ids[1]), 50, 1),
        ("person=mallory".to_owned(), 0, 2),
        ("action=redate".to_owned(), 0, 2),
        ("thing=%3Cscript%3E".to_owned(), 0, 2),
    ] {
        world.forget();
        let shown = page(&world, &format!("audit?month=2026-11&{filter}")).await?;
        assert_eq!(links(&shown).filter(|link| link.starts_with(ENTRY)).count(), found, "{filter}: {shown}");
        assert_eq!(world.recorder.take_operations(), vec!["Query"; reads], "{filter}");
        assert!(found > 0 || shown.contains("Nothing matches."), "{filter}: {shown}");
        assert_plain(&shown, &filter);
    }
    let long = "a".repeat(201);
    assert_statuses(&world, &[(&format!("audit?person={long}"), 400)]).await
}

#[tokio::test]
async fn the_trail_shows_each_action_once_the_newest_first() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "a").await?;
    let mut wanted = Vec::new();
    for minute in 0..59 {
        world.set_clock(&format!("2026-11-20T10:{minute:02}:00Z"))?;
        let (at, name) = (world.now().to_string(), format!("00000000-0000-5000-8000-{minute:012}"));
        let ask = action("cancel", &format!("payments={id}@1&at={at}&id={name}&step=do"));
        // Every seventh has no outcome, so pages end between an outcome and its intent.
        let (functions, _) = troubled(&world, NO_OUTCOME).await?;
        let on = if minute % 7 == 3 { &functions } else { world.functions() };
        world.send_named(on, &name, ask).await?;
        wanted.insert(0, name);
    }
    let pages = pages(&world, "audit?month=2026-11", "before=").await?;
    let entries: Vec<String> =
        pages.iter().flat_map(|page| links(page)).filter(|link| link.starts_with(ENTRY)).collect();
    assert_eq!(entries.iter().filter_map(|link| link.split('_').next_back()).collect::<Vec<_>>(), wanted);
    assert!(pages.len() >= 2, "{}", pages.len());
    let entry = page(&world, &entries[0]).await?;
    assert!(entry.contains(&wanted[0]) && entry.contains(&format!("#payment?id={id}")), "{entry}");
    let nobody = page(&world, "audit?month=2026-12").await?;
    assert!(nobody.contains("Nobody acted in December 2026.") && !nobody.contains(ENTRY), "{nobody}");
    let wrong =
        ["audit?month=2026", "audit?month=2026-13", "audit?month=2026-11-20", "audit?before=x", "audit?entry=x"];
    assert_statuses(&world, &wrong.map(|wanted| (wanted, 400))).await
}

#[tokio::test]
async fn a_cancel_may_have_a_reason_which_the_trail_keeps_and_shows_as_text() -> Result<()> {
    for reason in HOSTILE
        .into_iter()
        .filter(|text| text.chars().any(char::is_alphanumeric))
        .chain(["salary file sent twice, see 00000000-0000-5000-8000-000000000001"])
    {
        let world = World::open().await?;
        let id = rent(&world, "a").await?;
        let offer = offered_cancel(&world, std::slice::from_ref(&id)).await?;
        let shown = world.answered(action("cancel", &format!("step=preview&payments={id}&reason=x")), 200).await?.text;
        assert!(shown.contains("name=\"reason\" maxlength=\"200\">") && !shown.contains("value=\"x\""), "{shown}");
        for wrong in [" ", "a\nb", "a\u{7f}", &"é".repeat(201)] {
            world.answered(offer.clone().with("reason", wrong).ask(), 400).await?;
        }
        assert_eq!(world.audit_trail().await?, []);
        let with = offer.clone().with("reason", &format!(" {reason} "));
        let done = confirm(&world, "first", &with).await?;
        assert_plain(&done.text, reason);
        assert_eq!(only_entry(&world).await?.intent.arguments, format!("payments: {id}@1\nreason: {reason}"));
        // The same preview with another reason is not the same action.
        world.answered(offer.ask(), 422).await?;
        assert_eq!(confirm(&world, "second", &with).await?.text, done.text);
        let (trail, entry) = (page(&world, "audit").await?, only_entry(&world).await?.intent.name);
        let entry = page(&world, &format!("audit?entry={}_{}", entry.previewed_at, entry.id)).await?;
        for page in [&trail, &entry] {
            assert_plain(page, reason);
            assert!(page.contains("&lt;") == reason.contains('<') || reason.contains("&lt;"), "{reason}: {page}");
        }
        assert!(trail.contains("1 payment ") && !trail.contains("payment?id=00000000"), "{trail}");
    }
    Ok(())
}
