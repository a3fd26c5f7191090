//! Lists that are read page by page while their payments move.

use fastrand::Rng;
use payments_tests::prelude::*;

use super::{amend, rent_with};

/// A bank of payments of one account, which change their days.
struct Moving {
    world: World,
    random: Rng,
    ids: Vec<String>,
    /// The number of amendments of each payment.
    amended: Vec<u32>,
}

impl Moving {
    async fn new(seed: u64) -> Result<Self> {
        let (world, mut random) = (World::open().await?, Rng::with_seed(seed));
        let mut ids = Vec::new();
        for n in 0..10 {
            let body = rent_with(json!({ "scheduledFor": day(&mut random) }));
            ids.push(world.create("tenant", &format!("rent-{n}"), &body).await?);
        }
        Ok(Self { world, random, amended: vec![0; ids.len()], ids })
    }

    /// Moves some of the first half of the payments to other days. The other half stays.
    async fn amend_some(&mut self) -> Result<()> {
        for _ in 0..self.random.usize(0..3) {
            let which = self.random.usize(0..self.ids.len() / 2);
            let (id, version) = (&self.ids[which], 1 + self.amended[which]);
            let key = format!("to-{version}");
            let moved = amend(id, (&key, version), json!({ "scheduledFor": day(&mut self.random) }));
            let reply = self.world.send(moved).await?;
            ensure!(matches!(reply.status, 200 | 409), "{reply}");
            self.amended[which] += u32::from(reply.status == 200);
        }
        Ok(())
    }

    /// Reads a list to its end, and amends between its pages. Returns how often each payment was shown.
    async fn shown(&mut self, list: &str, is_moving: bool) -> Result<BTreeMap<String, u32>> {
        let (mut shown, mut cursor) = (BTreeMap::new(), String::new());
        loop {
            let page = self.world.get(&format!("{list}{cursor}")).await?;
            page.ids().into_iter().for_each(|id| *shown.entry(id).or_default() += 1);
            let Some(next) = page.body["nextCursor"].as_str() else { return Ok(shown) };
            cursor = format!("&cursor={next}");
            if is_moving {
                self.amend_some().await?;
            }
        }
    }
}

fn day(random: &mut Rng) -> String {
    format!("2026-12-{:02}", random.u32(1..=6))
}

#[tokio::test]
async fn a_list_shows_a_payment_twice_only_if_it_moved_and_misses_none_that_did_not() -> Result<()> {
    for seed in 0..12 {
        let mut bank = Moving::new(seed).await?;
        for (order, limit) in [("asc", 1), ("desc", 1), ("asc", 3), ("desc", 2)] {
            let list = format!("/accounts/tenant/payments?order={order}&limit={limit}");
            bank.amend_some().await?;
            let before = bank.amended.clone();
            let shown = bank.shown(&list, true).await?;
            for (which, id) in bank.ids.iter().enumerate() {
                let times = shown.get(id).copied().unwrap_or(0);
                let was_amended = bank.amended[which] > before[which];
                assert!(was_amended || times == 1, "seed {seed}, {order} by {limit}: {id} is shown {times} times");
            }
            // Once nothing moves, each is shown once.
            let shown = bank.shown(&list, false).await?;
            let once: BTreeMap<String, u32> = bank.ids.iter().map(|id| (id.clone(), 1)).collect();
            assert_eq!(shown, once, "seed {seed}, {order} by {limit}");
        }
    }
    Ok(())
}
