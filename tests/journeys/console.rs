//! The console: its rights, its reads, its actions, and texts of clients, which it shows as text.

mod acting;
mod attention;
mod beyond_limit;
mod day;
mod deeds;
mod guides;
mod looking;
mod mending;
mod operating;
mod reports;
mod rights;
mod searching;
mod second;
mod story;
mod switching;
mod trail;
mod undoing;
mod waiting;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use payments_model::{AccountId, Event, PaymentId, Settlement};
use payments_store::{Job, LastRun};
use payments_tests::given::move_on;
use payments_tests::orders::failed;
use payments_tests::tables::details_key;
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

/// Texts that a page would run, follow or break on if it took them for anything but text.
const HOSTILE: [&str; 12] = [
    "<script>window.pwned=1</script>",
    "\"><script>window.pwned=1</script>",
    "'><img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "</pre></main><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<a href=javascript:window.pwned=1>x</a>",
    "<div data-hx-get=/console/views/day data-hx-trigger=load>",
    "<div hx-on:click=window.pwned=1>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}",
    "<!--",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
];

/// Texts of a page that shows a hostile text as markup.
const MARKUP: [&str; 8] =
    ["<script", "<img", "<svg", "<iframe", "<a href=j", "<div data-hx-get=/", "<div hx-on", "<!--"];

fn payment(scheduled_for: &str) -> Value {
    json!({ "payeeAccountId": "shop", "amountMinor": 1_234_567, "currency": "EUR", "scheduledFor": scheduled_for })
}

async fn view(world: &World, view: &str) -> Result<Reply> {
    world.send(Ask::get(&format!("/console/views/{view}"))).await
}

/// A view that is shown.
async fn page(world: &World, wanted: &str) -> Result<String> {
    let reply = view(world, wanted).await?;
    ensure!(reply.status == 200, "{wanted}: {reply}");
    Ok(reply.text)
}

/// Each view must answer with this status.
async fn assert_statuses(world: &World, wanted: &[(&str, i64)]) -> Result<()> {
    for (wanted, status) in wanted {
        view(world, wanted).await?.with_status(*status).with_context(|| (*wanted).to_owned())?;
    }
    Ok(())
}

/// A page must show hostile texts as text.
fn assert_plain(page: &str, case: &str) {
    for markup in MARKUP {
        assert!(!page.contains(markup), "{case}: {markup}");
    }
}

/// The views to which a page has links.
fn links(page: &str) -> impl Iterator<Item = String> {
    let links = page.split("href=\"#").skip(1).filter_map(|link| link.split('"').next());
    links.map(|link| link.replace("&amp;", "&"))
}

/// The pages of a view: each has a link with `more` to the next one.
async fn pages(world: &World, first: &str, more: &str) -> Result<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), Some(first.to_owned()));
    while let Some(wanted) = next {
        let page = page(world, &wanted).await?;
        next = links(&page).find(|link| link.contains(more));
        pages.push(page);
        ensure!(pages.len() < 20, "{first} does not end");
    }
    Ok(pages)
}

/// Creates a payment of a tenant, which is due on 1 December. Returns its id.
async fn rent(world: &World, key: &str) -> Result<String> {
    world.create("tenant", key, &payment("2026-12-01")).await
}

/// Claims a payment when it is due, and settles it if there is a settlement.
async fn claim(world: &World, id: &str, settlement: Option<Settlement>) -> Result<()> {
    let events = [Event::Sweep].into_iter().chain(settlement.map(Event::Settle)).collect();
    move_on(world, id.parse()?, events, "2026-12-01T10:00:00Z").await
}

/// Damages a payment's details so that they cannot be read.
async fn damage(world: &World, id: &str) -> Result<()> {
    world.update_details(id, "REMOVE currency", &[]).await
}

/// The attributes of an authorizer whose token has these claims.
fn token(claims: &Value) -> Value {
    json!({ "jwt": { "claims": claims, "scopes": null } })
}

#[tokio::test]
async fn a_payment_is_found_by_each_of_its_names() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "rent-1").await?;
    claim(&world, &id, Some(Settlement::Processed("TX-77".parse()?))).await?;
    for wanted in [
        format!("payment?id={id}"),
        format!("find?text={id}"),
        format!("find?text=+{id}+"),
        format!("find?text=3637440-{id}-2"),
        "find?text=TX-77".to_owned(),
        "find?account=tenant&key=rent-1".to_owned(),
    ] {
        let text = page(&world, &wanted).await?;
        assert!(text.contains(&format!("data-copy=\"{id}\"")), "{wanted}: {text}");
        assert!(text.contains("Processed") && text.contains("TX-77"), "{wanted}: {text}");
    }
    for wanted in ["find?text=TX-78", "find?text=", "find?account=tenant&key=rent-2", "find?text=%3Cscript%3E"] {
        let text = page(&world, wanted).await?;
        assert!(text.contains("Nothing found"), "{wanted}: {text}");
    }
    let wrong = [
        ("payment?id=1", 400),
        ("payment", 400),
        ("payment?id=00000000-0000-5000-8000-000000000000", 404),
        ("find?account=tenant", 400),
        ("day?date=today", 400),
        ("list?date=2026-12-01&status=LATE", 400),
        ("list?date=2026-12-01&status=PENDING&cursor=x", 400),
        ("day?other=1", 400),
        ("unknown", 404),
    ];
    assert_statuses(&world, &wrong).await
}

#[tokio::test]
async fn a_payment_whose_details_are_lost_or_damaged_is_shown_from_its_head() -> Result<()> {
    let world = World::open().await?;
    for key in ["lost", "damaged"] {
        let id = rent(&world, key).await?;
        match key {
            "lost" => world.delete(&world.environment.tables.history, &details_key(&id)).await?,
            _ => damage(&world, &id).await?,
        }
        let list = page(&world, "list?date=2026-12-01&status=SCHEDULED").await?;
        let link = links(&list).find(|link| link.contains(&id)).context("a link")?;
        let shown = page(&world, &link).await?;
        assert!(shown.contains("Scheduled") && shown.contains("are missing or cannot be read"), "{key}: {shown}");
        assert!(links(&shown).any(|link| link == "alarms?at=dispatchfailuresalarm"), "{key}: {shown}");
    }
    Ok(())
}

#[tokio::test]
async fn what_clients_choose_is_shown_as_text() -> Result<()> {
    let world = World::open().await?;
    for (n, text) in HOSTILE.iter().enumerate() {
        // A key has no spaces.
        let own_key = format!("{n}{}", text.replace(' ', "/"));
        let mut body = payment("2026-12-01");
        body["data"] = json!({ "note": text, (*text): [text] });
        // A reference has at most 35 characters, of fewer kinds.
        body["reference"] = json!(format!("rent {n} - (paid) + ? :"));
        let claims = json!({ "client_id": text, "scope": "payments/write", "custom:accounts": "tenant" });
        let created = world.send_authorized(&token(&claims), Ask::create("tenant", &own_key, &body)).await?;
        let created = created.with_status(201).with_context(|| text.to_string())?;
        let id = created.field("paymentId");
        let shown = page(&world, &format!("payment?id={id}")).await?;
        let account: AccountId = "tenant".parse()?;
        let key = own_key.parse()?;
        assert_eq!(PaymentId::derive(&account, &key).to_string(), id);
        assert_plain(&shown, text);
        let found = page(&world, &format!("find?{}", form(&[("account", "tenant"), ("key", &own_key)]))).await?;
        assert_eq!(found, shown);
        // Nothing that a request holds is shown raw either.
        let missing = view(&world, &format!("find?{}", form(&[("text", text)]))).await?;
        assert_plain(&missing.text, text);
        let refused = view(&world, &format!("day?{}", form(&[("date", text)]))).await?;
        assert_eq!(refused.header("content-type"), Some("application/problem+json"), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_direction_of_a_text_reorders_no_other_words() -> Result<()> {
    /// An override and an isolate without an end, which would turn the rest of a line around.
    const TURNED: &str = "\u{202e}gnp\u{2066}";
    let world = World::open().await?;
    let body = json!({ "url": "https://receiver.example.com/hook", "description": TURNED });
    world.send(Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&body)).await?.with_status(201)?;
    let mut body = payment("2026-12-01");
    body["data"] = json!({ "note": TURNED });
    let claims = json!({ "client_id": TURNED, "scope": "payments/write", "custom:accounts": "tenant" });
    let created =
        world.send_authorized(&token(&claims), Ask::create("tenant", "rent", &body)).await?.with_status(201)?;
    let id = created.field("paymentId");
    claim(&world, id, None).await?;
    world.settle(&[failed(id, &payment("2026-12-01"), "AM04", TURNED)]).await?;
    world.settle(&[failed(id, &payment("2026-12-01"), "AC04", TURNED)]).await?;
    world.set_clock("2026-12-01T11:00:00Z")?;
    let failing = LastRun::new(Job::Report, (world.now(), world.now()), None::<&Value>).with_failure(Some(TURNED));
    world.store().await.put_last_run(&failing).await?;
    let searched = format!("find?{}", form(&[("text", TURNED)]));
    for (wanted, least) in
        [(format!("payment?id={id}"), 5), ("endpoints?id=shop".to_owned(), 1), (searched, 1), ("bank".to_owned(), 1)]
    {
        let shown = page(&world, &wanted).await?;
        let before: Vec<&str> = shown.match_indices(TURNED).map(|(place, _)| &shown[..place]).collect();
        assert!(before.len() >= least, "{wanted}: {shown}");
        for before in before {
            let tag = before.rfind('<').map_or("", |place| &before[place..]);
            let is_attribute = !tag.contains('>');
            assert!(is_attribute || tag.starts_with("<bdi") || tag.starts_with("<pre"), "{wanted}: {tag}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn hostile_endpoints_are_shown_as_text() -> Result<()> {
    let world = World::open().await?;
    for (n, text) in HOSTILE.iter().enumerate() {
        let body = json!({ "url": "https://receiver.example.com/hook", "description": text });
        let put = world.send(Ask::new(Method::PUT, &format!("/webhook-endpoints/end-{n}")).json(&body)).await?;
        put.with_status(201).with_context(|| text.to_string())?;
    }
    let shown = page(&world, "endpoints").await?;
    assert_eq!(shown.matches("https://receiver.example.com/hook").count(), HOSTILE.len());
    assert_plain(&shown, "endpoints");
    Ok(())
}

fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
