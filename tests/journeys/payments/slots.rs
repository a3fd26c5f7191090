//! Payments that were moved to another date: all find their heads, which never move, and go by the due time.

use payments_store::expiry_of_reported;
use payments_tests::prelude::*;

use crate::report::settlements;

/// The due time of the payments, and its date. At first they were due on a date before it, or on one after it.
const DUE_AT: &str = "2026-11-24T00:00:00Z";
const DUE_DATE: &str = "2026-11-24";
const AT_FIRST: [&str; 2] = ["2026-11-20", "2026-11-27"];

/// The first and the last date of lists, counts and recounts.
const FROM: &str = "2026-11-19";
const TO: &str = "2026-11-30";

/// A world with a payment that was due on another date at first.
struct Elsewhere {
    world: World,
    counting: Counting,
    first: &'static str,
    id: String,
    /// The sort key of its head.
    sk: String,
}

impl Elsewhere {
    async fn new(first: &'static str) -> Result<Self> {
        let world = World::open().await?;
        let counting = Counting::start(&world).await?;
        let id = world.create("tenant", "rent", &order(first)).await?;
        let amended = world.send(Ask::amend("tenant", &id, ("later", 1), &order(DUE_DATE))).await?.with_status(200)?;
        assert_eq!(amended.header("etag"), Some("\"2\""), "{amended}");
        let sk = format!("{first}T00:00:00Z#{id}");
        Ok(Self { world, counting, first, id, sk })
    }

    async fn status(&self) -> Result<String> {
        Ok(self.world.payment("tenant", &self.id).await?.field("status").to_owned())
    }

    /// All that clients can ask about the payment shows it with this status, and when it is due.
    async fn assert_shown(&self, status: &str) -> Result<()> {
        let one = self.world.payment("tenant", &self.id).await?;
        let again = self.world.send(Ask::create("tenant", "rent", &order(self.first))).await?.replayed()?;
        let lists = [
            format!("/accounts/tenant/payments?from={FROM}&to={TO}"),
            format!("/accounts/tenant/payments?from={FROM}&to={TO}&status={status}&order=desc&limit=1"),
            "/accounts/tenant/payments?idempotencyKey=rent".to_owned(),
            format!("/payments?dueDate={DUE_DATE}"),
            format!("/payments?dueDate={DUE_DATE}&status={status}&limit=1"),
        ];
        let mut shown = vec![one.body, again.body];
        for list in lists {
            // A cursor behind it leads to nothing more.
            let pages = self.world.pages(&list).await?;
            let found: Vec<_> = pages.iter().flat_map(|page| page.payments().to_vec()).collect();
            ensure!(found.len() == 1, "{list}: {found:?}");
            shown.extend(found);
        }
        let want = json!({ "paymentId": self.id, "status": status, "dueAt": DUE_AT, "dueDate": DUE_DATE });
        shown.iter().for_each(|payment| assert_has(payment, &want));
        let on_first = self.world.get(&format!("/payments?dueDate={}", self.first)).await?;
        assert_eq!(on_first.payments().len(), 0, "{on_first}");
        Ok(())
    }

    /// Sweeps at an instant.
    async fn sweep(&self, at: &str) -> Result<()> {
        self.world.set_clock(at)?;
        self.world.sweep().await
    }

    /// The request that `dispatch` sends.
    async fn dispatched(&self) -> Result<Value> {
        self.world.dispatch(&self.world.heads("tenant").await?).await?;
        let sent = self.world.take_requests();
        let [request] = sent.as_slice() else { anyhow::bail!("{} requests", sent.len()) };
        Ok(serde_json::from_str(request)?)
    }

    /// Runs the archive at an instant. Returns the number of payments that it archived.
    async fn archived(&self, at: &str) -> Result<u64> {
        self.world.set_clock(at)?;
        let outcome = self.world.archive().await?;
        ensure!((outcome.failed, outcome.changed) == (0, 0), "{outcome:?}");
        Ok(outcome.archived)
    }

    /// The payment counts on its due date and nowhere else, in these statuses, and a recount agrees.
    async fn assert_counted(&mut self, status: &str) -> Result<()> {
        self.counting.count(self.world.functions()).await?;
        let reply = self.world.get(&format!("/counts?from={FROM}&to={TO}")).await?;
        let counts = reply.body["counts"].as_array().with_context(|| reply.to_string())?;
        for date in counts {
            let want = u64::from(date["date"] == DUE_DATE);
            assert_eq!((&date["total"], &date["byStatus"][status]), (&json!(want), &json!(want)), "{date}");
        }
        let recount = self.world.functions().recount.clone();
        let recounted = invoke(|it| recount.handle(it), json!({ "action": "recount", "from": FROM, "to": TO })).await?;
        assert_eq!((recounted.exact, recounted.drifted), (12, 0), "{recounted:?}");
        Ok(())
    }

    /// The payment's head in each table, if the table has it. Asserts that the head is at its slot.
    async fn heads(&self) -> Result<(Option<Item>, Option<Item>)> {
        let (hot, history) = (self.world.heads("tenant").await?, self.world.archived_heads("tenant").await?);
        for head in hot.iter().chain(&history) {
            assert_eq!(head["sk"], text(&self.sk));
            assert!(head["due"].as_s().is_ok_and(|due| due.ends_with(&format!("#{DUE_DATE}#{DUE_AT}#{}", self.id))));
        }
        ensure!(hot.len() <= 1 && history.len() <= 1, "there are two heads");
        Ok((hot.into_iter().next(), history.into_iter().next()))
    }
}

#[tokio::test]
async fn a_payment_lives_by_when_it_is_due() -> Result<()> {
    for first in AT_FIRST {
        let mut payment = Elsewhere::new(first).await?;
        payment.assert_shown("SCHEDULED").await?;
        payment.assert_counted("SCHEDULED").await?;
        payment.sweep("2026-11-23T23:59:59Z").await?;
        assert_eq!(payment.status().await?, "SCHEDULED", "first due on {first}");
        payment.sweep(DUE_AT).await?;
        payment.assert_shown("PENDING").await?;
        payment.world.refused(Ask::cancel("tenant", &payment.id), 409, "not-cancellable").await?;

        let request = payment.dispatched().await?;
        assert_eq!((&request["paymentId"], &request["dueAt"]), (&json!(payment.id), &json!(DUE_AT)));
        // The echo is when it is due, which is not its slot.
        let result = processed(&payment.id, &request, "TX-1");
        let result = with(result, json!({ "accountId": request["accountId"], "dueAt": request["dueAt"] }));
        payment.world.set_clock("2026-11-24T10:00:00Z")?;
        for _ in 0..2 {
            payment.world.settle(std::slice::from_ref(&result)).await?;
            payment.assert_shown("PROCESSED").await?;
        }
        let (hot, history) = payment.heads().await?;
        ensure!(hot.is_some() && history.is_some(), "it is not in both tables");
        payment.assert_counted("PROCESSED").await?;

        reported_once(&payment).await?;
        archived_by_its_due_date(&mut payment).await?;
        logged_by_its_due_date(&payment).await?;
    }
    Ok(())
}

/// The report lists the payment once, and sets its head's expiry.
async fn reported_once(payment: &Elsewhere) -> Result<()> {
    let world = &payment.world;
    let report = settlements::run(world).await?;
    assert_has(&report, &json!({ "reported": 1, "drained": 1, "alreadyDrained": 0 }));
    assert!(settlements::unreported(world).await?.is_empty());
    assert_has(&settlements::run(world).await?, &json!({ "reported": 0, "drained": 0 }));
    let csv = settlements::published(world).await?.remove(0);
    let want =
        format!("{},tenant,landlord,5,GBP,{DUE_AT},{DUE_DATE},PROCESSED,TX-1,,,2026-11-24T10:00:00Z,", payment.id);
    assert_eq!(csv.lines().nth(1), Some(want.as_str()));
    let expires = expiry_of_reported(DUE_DATE.parse()?, world.now()).as_chrono().timestamp();
    let (hot, _) = payment.heads().await?;
    assert_eq!(hot.context("no head")?["expires_at"], number(expires));
    Ok(())
}

/// The archive removes the head from the hot table once its due date is over, and not before.
async fn archived_by_its_due_date(payment: &mut Elsewhere) -> Result<()> {
    assert_eq!(payment.archived("2026-11-28T00:59:59Z").await?, 0);
    assert!(payment.heads().await?.0.is_some());
    assert_eq!(payment.archived("2026-11-28T01:00:00Z").await?, 1);
    let (hot, history) = payment.heads().await?;
    ensure!(hot.is_none() && history.is_some(), "it is not archived");
    payment.assert_shown("PROCESSED").await?;
    payment.assert_counted("PROCESSED").await?;
    let of_transaction = payment.world.get("/payments?transactionId=TX-1").await?;
    assert_eq!(of_transaction.payments()[0]["dueAt"], DUE_AT, "{of_transaction}");
    Ok(())
}

/// Each event says when the payment is due.
async fn logged_by_its_due_date(payment: &Elsewhere) -> Result<()> {
    let page = payment.world.get("/events?limit=100").await?;
    let events = page.body["events"].as_array().with_context(|| page.to_string())?;
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["payment.scheduled", "payment.amended", "payment.pending", "payment.processed"]);
    assert_eq!(events[0]["dueDate"], payment.first, "{page}");
    for event in &events[1..] {
        assert_has(event, &json!({ "dueAt": DUE_AT, "dueDate": DUE_DATE }));
    }
    Ok(())
}

#[tokio::test]
async fn a_cancel_finds_the_payment_and_it_is_never_sent() -> Result<()> {
    for first in AT_FIRST {
        let mut payment = Elsewhere::new(first).await?;
        for _ in 0..2 {
            payment.world.cancel("tenant", &payment.id).await?;
            payment.assert_shown("CANCELLED").await?;
        }
        payment.sweep("2026-11-28T00:00:00Z").await?;
        assert_eq!(payment.status().await?, "CANCELLED");
        payment.assert_counted("CANCELLED").await?;
        assert_eq!(payment.archived("2026-11-28T01:00:00Z").await?, 1);
        payment.world.cancel("tenant", &payment.id).await?;
        payment.assert_shown("CANCELLED").await?;
        payment.assert_counted("CANCELLED").await?;
    }
    Ok(())
}
