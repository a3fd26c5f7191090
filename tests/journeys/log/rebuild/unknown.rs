//! Attributes that only a later version knows survive every writer, a restore included.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::webhook::{EndpointId, SecretGeneration};
use payments_model::{Actor, DayCounts, DayLimit, EventFilter, Money, Switch, SwitchChange, UtcSecond};
use payments_store::{
    BlockingEvent, DayRelease, EXPIRES_AT, EndpointChoice, Item, ItemKind, Progress, SkippedEvent, Store, Undo,
    UndoPlan, UndoRun, WebhookCommit,
};
use payments_tests::given::create_endpoint;

use super::super::*;
use super::bank::{Bank, Moment, PAYER, attribute};
use super::contradictions::{close, contradict};
use crate::redate;
use crate::report::settlements;

/// The kinds of items that nobody changes once they are written.
const WRITTEN_ONCE: [ItemKind; 7] = [
    ItemKind::FirstDetails,
    ItemKind::AmendedDetails,
    ItemKind::AuditIntent,
    ItemKind::AuditOutcome,
    ItemKind::Approval,
    ItemKind::OpenFinding,
    ItemKind::Segment,
];

/// A table, partition and sort key.
type Place = (String, String, String);

/// Attributes of a later version: a text, a map and bytes.
fn later() -> Item {
    let deep = ("deep".to_owned(), AttributeValue::L(vec![number(1), text("map")]));
    [
        ("laterText", text("new")),
        ("laterMap", AttributeValue::M([deep].into())),
        ("laterBytes", AttributeValue::B(Blob::new([0_u8, 255]))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The first attribute of a later version that an item or an entry of its trail lacks, if it has to have them.
fn lacks(item: &Item, entries: usize) -> Option<String> {
    let trail = item.get("trail").and_then(|trail| trail.as_l().ok()).into_iter().flatten().take(entries);
    let maps = trail.filter_map(|entry| entry.as_m().ok()).chain([item]);
    let missing = |map: &Item| later().into_iter().find(|(name, value)| map.get(name) != Some(value));
    maps.filter_map(missing).next().map(|(name, _)| name)
}

fn entries(item: &Item) -> usize {
    item.get("trail").and_then(|trail| trail.as_l().ok()).map_or(0, Vec::len)
}

/// The items that got attributes of a later version, as they were then.
#[derive(Default)]
struct Marked(BTreeMap<Place, Item>);

impl Marked {
    /// All items of a bank.
    async fn all(bank: &Bank) -> Result<BTreeMap<Place, Item>> {
        let (tables, mut all) = (&bank.environment.tables, BTreeMap::new());
        for table in [&tables.payments, &tables.history, &tables.log] {
            for item in bank.items_of(table).await? {
                let [pk, sk] = ["pk", "sk"].map(|name| attribute(&item, name).to_owned());
                all.insert((table.clone(), pk, sk), item);
            }
        }
        Ok(all)
    }

    /// Gives the attributes of a later version to each item without such attributes, and to each entry of a trail.
    async fn mark(&mut self, bank: &Bank) -> Result<()> {
        for (place, mut item) in Self::all(bank).await? {
            if later().keys().any(|name| item.contains_key(name)) {
                continue;
            }
            item.extend(later());
            if let Some(AttributeValue::L(trail)) = item.get_mut("trail") {
                let maps = trail.iter_mut().filter_map(|entry| entry.as_m().ok().cloned().map(|map| (entry, map)));
                maps.for_each(|(entry, map)| *entry = AttributeValue::M(map.into_iter().chain(later()).collect()));
            }
            bank.put_items(&place.0, [item.clone()]).await?;
            self.0.insert(place, item);
        }
        Ok(())
    }

    /// Forgets the lost items: those that the copies of the hot table do not have, and the head of
    /// a payment that no table has.
    fn lose(&mut self, bank: &Bank, head: &str) {
        let is_in = |item: &Item, (pk, sk): (&str, &str)| item["pk"] == text(pk) && item["sk"] == text(sk);
        let has = |key: (&str, &str)| bank.at_t.hot.iter().any(|item| is_in(item, key) && lacks(item, 0).is_none());
        let is_lost = |(table, pk, sk): &Place| {
            let is_there = match ItemKind::from_key(pk, sk) {
                Some(ItemKind::Head) => !sk.ends_with(head),
                // A restore deletes the findings and checkpoints of a stream and of counters that no longer exist.
                Some(ItemKind::Checkpoint | ItemKind::Drift) => false,
                _ => has((pk, sk)),
            };
            *table == bank.environment.tables.payments && !is_there
        };
        self.0.retain(|place, _| !is_lost(place));
    }

    /// Every item that was marked has the attributes, where it still is and where it was copied to. Returns the kinds of those that changed
    /// since.
    async fn check(&self, bank: &Bank) -> Result<BTreeSet<ItemKind>> {
        let tables = &bank.environment.tables;
        let all = Self::all(bank).await?;
        let mut changed = BTreeSet::new();
        for ((table, pk, sk), marked) in &self.0 {
            let kind = ItemKind::from_key(pk, sk).with_context(|| format!("{pk} / {sk} is of no kind"))?;
            let is_hot_head = *table == tables.payments && kind == ItemKind::Head;
            let copy = is_hot_head.then(|| all.get(&(tables.history.clone(), pk.clone(), sk.clone()))).flatten();
            let here = all.get(&(table.clone(), pk.clone(), sk.clone()));
            for item in here.into_iter().chain(copy) {
                assert_eq!(lacks(item, entries(marked)), None, "{table} {pk} / {sk}: {item:#?}");
                if item != marked {
                    changed.insert(kind);
                }
            }
        }
        Ok(changed)
    }
}

/// A finding of a payment, which `settle` puts and the console closes.
async fn find_or_close(bank: &Bank, is_again: bool) -> Result<()> {
    if !is_again {
        return contradict(bank, "e", "no").await.map(drop);
    }
    let found = bank.store().await.findings_of(bank.id("e").parse()?).await?.pop();
    close(bank, &found.context("no finding")??).await
}

/// Changes that are rare, made once before and once after everything was marked: findings, endpoints and the audit trail.
async fn rare(bank: &Bank, is_again: bool) -> Result<()> {
    let (store, now) = (bank.store().await, bank.now());
    find_or_close(bank, is_again).await?;
    let id: EndpointId = "erp".parse()?;
    let url = "https://hooks.shop.co.uk/payments".parse()?;
    let chosen = EndpointChoice { url, description: "The shop's books".to_owned(), filter: EventFilter::default() };
    // The second one raises the number of those that were created.
    create_endpoint(&store, now, if is_again { "books" } else { "erp" }, &chosen, LogPosition::BEGINNING).await?;
    // The report and the sweep write the figures of a day.
    store.add_failures("2026-12-01".parse()?, 1 + u64::from(is_again), &[("AC01".parse()?, 1)].into()).await?;
    store.add_sample("2026-12-01".parse()?, now, &DayCounts::default()).await?;
    // An operator turns the switch.
    let switch = Switch { version: 1 + u64::from(is_again), ..Switch::default() };
    ensure!(store.change_switch(&switch).await?, "it is turned");
    undos(&store, is_again, now).await?;
    limits(&store, is_again, now).await?;
    // Parts are cleared one after the other, and each restore puts off the next clear.
    store.begin_clear("2026-12-01".parse()?, 1 + u32::from(is_again)).await?;
    store.clear_not_before(now.saturating_add(TimeDelta::days(is_again.into()))).await?;
    if is_again {
        ensure!(store.change_webhook_endpoint(&id, &chosen, false, now).await?, "it is changed");
        ensure!(store.rotate_webhook_secret(&id, SecretGeneration::FIRST, now, now).await?, "it has a new secret");
        ensure!(store.ask_webhook_test(&id, now, None).await?, "a test is asked for");
        let taken = store.take_webhook(&id, now, now).await?.context("nobody has it")?;
        store.finish_webhook_test(&id, &taken, &Progress::default()).await?;
        let after = LogPosition { offset: 1, ..LogPosition::BEGINNING };
        let blocking = BlockingEvent { event_id: "1-a-1".to_owned(), after };
        let progress = Progress { failures: 1, blocking: Some(blocking.clone()), ..Progress::default() };
        let to = taken.position;
        let commit = WebhookCommit { to, progress: &progress, lease_until: None, disabled: None };
        let state = store.commit_webhook(&id, &taken, &commit).await?.context("the lease is ours")?;
        let by = Actor::operator("ops-1");
        let skipped = SkippedEvent { at: now, event_id: blocking.event_id.clone(), by };
        ensure!(store.skip_webhook_event(&id, &state, &blocking, skipped, None).await?, "it is skipped");
        ensure!(store.replay_webhook(&id, LogPosition::BEGINNING, None).await?, "it is replayed");
        ensure!(store.change_webhook_endpoint(&id, &chosen, true, now).await?, "it is switched off");
    } else {
        // An operator's action leaves its intent and its outcome.
        let action = "5f1c1f6e-4f0e-5a37-9d0e-0a3f6b7c8d9e";
        let cancel =
            json!({ "step": "do", "payments": format!("{}@1", bank.id("e")), "at": now.to_string(), "id": action });
        bank.answered(Ask::post("/console/actions/cancel").json(&cancel), 200).await?;
    }
    Ok(())
}

/// A due date with a limit, which an operator raises: the sweep reserves a claim.
async fn limits(store: &Store, is_again: bool, now: UtcSecond) -> Result<()> {
    let (date, up_to) = ("2026-12-01".parse()?, "payments=9".parse::<DayLimit>()?);
    let reason = if is_again { "it is right" } else { "it is large" }.to_owned();
    let change = SwitchChange { by: Actor::operator("ada"), at: now, reason };
    let amount = if is_again { "7" } else { "5" };
    let claims = [Money { amount: amount.parse()?, currency: "GBP".parse()? }].into_iter().collect();
    ensure!(store.reserve_claims(date, &claims, &up_to, None).await?, "it is within the limit");
    let version = 1 + u64::from(is_again);
    ensure!(store.release_day(date, &DayRelease { version, up_to, change }).await?, "it is released");
    Ok(())
}

/// An undo, whose run goes on. Later there is another.
async fn undos(store: &Store, is_again: bool, now: UtcSecond) -> Result<()> {
    let run = UndoRun {
        approval: None,
        ticket: "INC-4711".parse().ok(),
        began_at: now,
        place: 0,
        ends: BTreeMap::new(),
        ended_at: None,
    };
    let (totals, sha256) = (BTreeMap::new(), "f".repeat(64));
    let plan = UndoPlan {
        number: 1,
        select: Default::default(),
        sha256,
        inexact: Vec::new(),
        payments: 0,
        totals,
        held_at: now,
        run: Some(run),
    };
    let undo = |id: &str, revision| anyhow::Ok(Undo { id: id.parse()?, revision, plans: vec![plan.clone()] });
    ensure!(store.change_undo(&undo("0123456789abcdef", 1 + u64::from(is_again))?).await?, "it is changed");
    if is_again {
        ensure!(store.change_undo(&undo("fedcba9876543210", 1)?).await?, "it is another");
    }
    Ok(())
}

/// Somebody changes a counter by hand, and a recount finds it, in place of its earlier finding.
async fn find(bank: &Bank) -> Result<()> {
    let counter = key("COUNTS#0", "2026-10-01");
    bank.update(&counter, "ADD PENDING :one, moves :one", &[(":one", number(1))]).await?;
    let request = json!({ "action": "recount", "from": "2026-10-01", "to": "2026-10-01" });
    let done = bank.run("recount", request).await?;
    ensure!(done["drifted"] == 1, "{done}");
    Ok(())
}

/// The day of a bank whose items all got attributes of a later version: payments that are created, amended, claimed, settled and reported.
async fn marked_day(marked: &Mutex<Marked>) -> Result<Bank> {
    let bank = Bank::with(async |bank: &Bank, moment| {
        match moment {
            Moment::BeforeT => {
                bank.create("m", "2026-12-03").await?;
                bank.amend("m", 1, "2026-12-04").await?;
                bank.publish().await?;
                rare(bank, false).await?;
                find(bank).await?;
            }
            Moment::AfterT => {
                bank.amend("m", 2, "2026-12-07").await?;
            }
            Moment::Created => {}
        }
        marked.lock().await.mark(bank).await
    });
    bank.await
}

/// The rest of the payments' lives: claimed, settled, reported and archived.
async fn rest_of_life(bank: &Bank) -> Result<()> {
    bank.set_clock("2026-12-10T09:00:00Z")?;
    bank.sweep().await?;
    bank.settle(&["z", "g", "m"].map(|name| (name, Ok(name)))).await?;
    let report = settlements::run(bank).await?;
    ensure!(report["reported"] == 3, "{report}");
    bank.set_clock("2026-12-20T02:30:00Z")?;
    bank.run("archive", json!({ "action": "archive" })).await?;
    let left: Vec<Item> = bank.heads(PAYER).await?.into_iter().filter(|head| !head.contains_key(EXPIRES_AT)).collect();
    ensure!(left.is_empty(), "{left:#?}");
    Ok(())
}

#[tokio::test]
async fn what_only_a_later_version_knows_survives_a_life_and_a_restore() -> Result<()> {
    let marked = Mutex::new(Marked::default());
    let bank = marked_day(&marked).await?;
    let mut marked = marked.into_inner();
    let wanted = bank.hot().await?;
    bank.lose().await?;
    bank.apply().await?;
    // g was created after T and not settled: the log knows it, and no table has its head.
    let restored = bank.hot().await?;
    for (key, item) in &wanted {
        let (mut item, now) = (item.clone(), restored.get(key).with_context(|| key.clone())?);
        if key.ends_with(&bank.id("g")) {
            later().keys().for_each(|name| drop(item.as_object_mut().and_then(|item| item.remove(name))));
            let trail = item["trail"]["L"].as_array_mut().into_iter().flatten();
            trail
                .filter_map(|entry| entry["M"].as_object_mut())
                .for_each(|map| map.retain(|name, _| !name.starts_with("later")));
        }
        assert_eq!(item, *now, "{key}");
    }
    marked.lose(&bank, &bank.id("g"));
    // A retried create finds what a later version has written.
    bank.create_again("z", "2026-12-01").await?;
    bank.go_on(&[]).await?;
    find(&bank).await?;
    marked.mark(&bank).await?;
    rare(&bank, true).await?;
    find(&bank).await?;
    rest_of_life(&bank).await?;
    bank.count().await?;
    bank.publish().await?;
    let mut changed = marked.check(&bank).await?;
    changed.extend(WRITTEN_ONCE);
    assert_eq!(changed, ItemKind::ALL.iter().copied().collect(), "every kind was marked, and changed since");
    Ok(())
}

#[tokio::test]
async fn what_only_a_later_version_knows_of_details_is_in_those_of_a_redate() -> Result<()> {
    let world = World::open().await?;
    let before =
        redate::bank(&world, &world.recorder, |environment| environment.calendars = "USD=FED".to_owned()).await?;
    let order = json!({
        "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": redate::HOLIDAY,
        "dateRule": "following",
    });
    world.send_to(&before, Ask::create("tenant", "rent", &order)).await?.with_status(201)?;
    let bank = Bank::in_world(world).await?;
    let mut marked = Marked::default();
    marked.mark(&bank).await?;
    let after = redate::bank(&bank, &bank.recorder, redate::england).await?;
    assert_eq!(redate::run(&after, "move").await?.moved, 1);
    assert!(marked.check(&bank).await?.contains(&ItemKind::Head), "the head names other details");
    let all = Marked::all(&bank).await?;
    let redated: Vec<_> = all.iter().filter(|((_, _, sk), _)| sk.starts_with("DETAILS#")).collect();
    assert_eq!(redated.len(), 1);
    assert_eq!(lacks(redated[0].1, 0), None, "{redated:#?}");
    Ok(())
}
