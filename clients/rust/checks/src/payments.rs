//! Checks of single payments at the running bank.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use chrono::{FixedOffset, NaiveTime, SecondsFormat};
use http::Request;
use scheduled_payments::{DateRule, Error, PaymentOrder, ScheduledFor, Status};

use crate::suite::{checks, equal};
use crate::world::{LARGEST, World, builder, error_of, json, problem_of, without_data};

checks![
    create_and_get,
    time_with_offset,
    replay,
    key_reused,
    date_rule,
    largest_amount,
    amount_too_large,
    all_faults,
    cancel_twice,
    cancel_nothing,
    amend,
    amend_replay,
    amend_too_late,
    data_every_kind,
    data_null,
    non_ascii_data,
    odd_ids,
    dots_refused,
    request_id,
    unknown_parameter,
];

/// Every kind of JSON, among them numbers that no double holds.
const EVERY_KIND: &str = concat!(
    r#"[null,true,false,0,-1,9223372036854775807,-9223372036854775808,1000000000000000000000000000000,"#,
    r#"0.1,-1.5e-7,"","a\"\\\n/",[],{},[[{"b":[1]}]]]"#
);

/// The id of no payment.
const NOTHING: &str = "00000000-0000-0000-0000-000000000001";

async fn create_and_get(world: World) -> Result<()> {
    let wanted = world.order_with(r#"{"note":"rent"}"#)?;
    let created = world.bank.create("rs-get", "get-1", &wanted).await?;
    let payment = world.bank.get("rs-get", &created.payment.payment_id).await?;
    equal(created.replayed, false)?;
    equal((&*payment.account_id, &*payment.payee_account_id, &*payment.currency), ("rs-get", "acc-2", "GBP"))?;
    equal((payment.amount_minor, payment.due_date), (12050, world.day(7)))?;
    equal(payment.scheduled_for, ScheduledFor::Date(world.day(7)))?;
    equal((payment.status, payment.version, &payment.data), (Status::Scheduled, 1, &wanted.data))?;
    let trail: Vec<_> = payment.trail.iter().map(|step| (step.status, &*step.by.kind)).collect();
    equal(trail, [(Status::Scheduled, "client")])?;
    equal(without_data(payment), created.payment)
}

async fn time_with_offset(world: World) -> Result<()> {
    let zone = FixedOffset::east_opt(2 * 3600).context("an offset")?;
    let time = world.day(7).and_time(NaiveTime::from_hms_opt(9, 30, 0).context("a time")?);
    let time = time.and_local_timezone(zone).single().context("one time")?;
    let order = PaymentOrder { scheduled_for: time.into(), ..world.order() };
    let payment = world.bank.create("rs-time", "time-1", &order).await?.payment;
    // Equal times can have different offsets.
    equal(payment.scheduled_for.to_string(), time.to_rfc3339_opts(SecondsFormat::Secs, true))?;
    equal(payment.scheduled_for, ScheduledFor::Time(time))?;
    equal(payment.due_at, time)
}

async fn replay(world: World) -> Result<()> {
    let first = world.bank.create("rs-replay", "replay-1", &world.order()).await?;
    let second = world.bank.create("rs-replay", "replay-1", &world.order()).await?;
    equal((first.replayed, second.replayed), (false, true))?;
    equal(second.payment, first.payment)
}

async fn date_rule(world: World) -> Result<()> {
    let calendars = world.bank.calendars().await?;
    let gbp = calendars.iter().find(|calendar| calendar.currencies == ["GBP"]).context("no calendar of GBP")?;
    equal(gbp.closed.len(), 0)?;
    let calendar = world.bank.calendar(&gbp.calendar_id).await?;
    let closed = calendar.closed.iter().find(|closed| closed.date > world.day(1)).context("no closed date")?;
    let order = |rule| PaymentOrder { scheduled_for: closed.date.into(), date_rule: Some(rule), ..world.order() };
    let payment = world.bank.create("rs-rule", "rule-1", &order(DateRule::Following)).await?.payment;
    equal((payment.date_rule, payment.move_reason.as_deref()), (Some(DateRule::Following), Some("holiday")))?;
    equal(payment.scheduled_for, ScheduledFor::Date(closed.date))?;
    ensure!(payment.due_date > closed.date, "{payment:?}");
    let problem = problem_of(world.bank.create("rs-rule", "rule-2", &order(DateRule::Refuse)).await)?;
    equal((problem.status, problem.kind()), (422, "date-closed"))?;
    let problem = problem_of(world.bank.calendar("X").await)?;
    equal((problem.status, problem.kind()), (404, "no-such-calendar"))
}

async fn key_reused(world: World) -> Result<()> {
    world.bank.create("rs-reuse", "reuse-1", &world.order()).await?;
    let other = PaymentOrder { amount_minor: 1, currency: "EUR".to_owned(), ..world.order() };
    let problem = problem_of(world.bank.create("rs-reuse", "reuse-1", &other).await)?;
    equal((problem.status, problem.kind()), (422, "idempotency-key-reused"))?;
    let mut fields = problem.fields.clone();
    fields.sort();
    equal(fields, ["amountMinor", "currency"])
}

async fn largest_amount(world: World) -> Result<()> {
    let order = PaymentOrder { amount_minor: LARGEST, ..world.order() };
    let created = world.bank.create("rs-large", "large-1", &order).await?.payment;
    equal(created.amount_minor, 9_007_199_254_740_991)?;
    equal(world.bank.get("rs-large", &created.payment_id).await?.amount_minor, 9_007_199_254_740_991)?;
    ensure!(world.raw_payment(&created).await?.contains(r#""amountMinor":9007199254740991,"#));
    Ok(())
}

async fn amount_too_large(world: World) -> Result<()> {
    let order = PaymentOrder { amount_minor: LARGEST + 1, ..world.order() };
    let problem = problem_of(world.bank.create("rs-large", "large-2", &order).await)?;
    equal((problem.status, problem.kind(), problem.field.as_deref()), (422, "invalid-amount", Some("amountMinor")))
}

async fn all_faults(world: World) -> Result<()> {
    let wrong = PaymentOrder::new("..", 0, "gbp", world.day(7));
    let problem = problem_of(world.bank.create("rs-faults", "faults-1", &wrong).await)?;
    equal((problem.kind(), problem.field.as_deref()), ("invalid-payee", Some("payeeAccountId")))?;
    let kind = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
    let found: Vec<_> = problem.errors.iter().map(|fault| (&*fault.pointer, kind(&fault.r#type))).collect();
    let places = [
        ("/payeeAccountId", "invalid-payee".to_owned()),
        ("/amountMinor", "invalid-amount".to_owned()),
        ("/currency", "invalid-currency".to_owned()),
    ];
    equal(found, places)?;
    equal(problem.errors.first().map(|fault| &fault.detail), Some(&problem.detail))
}

async fn cancel_twice(world: World) -> Result<()> {
    let payment = world.bank.create("rs-cancel", "cancel-1", &world.order()).await?.payment;
    let cancelled = world.bank.cancel("rs-cancel", &payment.payment_id).await?;
    equal((cancelled.status, cancelled.version), (Status::Cancelled, 2))?;
    equal(world.bank.cancel("rs-cancel", &payment.payment_id).await?, cancelled)
}

async fn cancel_nothing(world: World) -> Result<()> {
    for called in [world.bank.cancel("rs-cancel", NOTHING).await, world.bank.get("rs-cancel", NOTHING).await] {
        let problem = problem_of(called)?;
        equal((problem.status, problem.kind()), (404, "no-such-payment"))?;
    }
    Ok(())
}

async fn amend(world: World) -> Result<()> {
    let bank = &world.bank;
    let order = PaymentOrder { reference: Some("RENT".to_owned()), ..world.order_with(r#"{"note":"rent"}"#)? };
    let first = bank.create("rs-amend", "amend-1", &order).await?.payment;
    let (id, raised) = (&first.payment_id, json(r#"{"note":"raised"}"#)?);
    let mut wanted = PaymentOrder::new("acc-2", 13000, "GBP", world.day(9));
    wanted.data = Some(raised.clone());
    let amended = bank.amend("rs-amend", id, "raise-1", &wanted, first.version).await?;
    let payment = bank.get("rs-amend", id).await?;
    equal((&payment.payment_id, payment.status, payment.version), (id, Status::Scheduled, 2))?;
    equal((payment.amount_minor, payment.due_date, &payment.reference), (13000, world.day(9), &None))?;
    equal(&payment.data, &wanted.data)?;
    equal((without_data(payment), amended.replayed), (amended.payment, false))?;
    let versions = bank.versions("rs-amend", id).await?;
    let found: Vec<_> = versions.iter().map(|it| (it.version, it.amount_minor, it.due_date)).collect();
    equal(found, [(1, 12050, world.day(7)), (2, 13000, world.day(9))])?;
    let changed: Vec<_> = versions.iter().map(|it| it.changed_fields.join(",")).collect();
    equal(changed, ["", "amountMinor,scheduledFor,reference,data"])?;
    ensure!(versions.iter().all(|it| it.data.is_none()), "{versions:?}");
    let with_data = bank.versions_with_data("rs-amend", id).await?;
    equal(with_data.into_iter().map(|it| it.data).collect::<Vec<_>>(), [order.data, Some(raised)])
}

async fn amend_replay(world: World) -> Result<()> {
    let id = world.bank.create("rs-amend", "replay-1", &world.order()).await?.payment.payment_id;
    let raised = PaymentOrder { amount_minor: 13000, ..world.order() };
    let first = world.bank.amend("rs-amend", &id, "raise-1", &raised, 1).await?;
    let second = world.bank.amend("rs-amend", &id, "raise-1", &raised, 1).await?;
    equal((first.replayed, second.replayed), (false, true))?;
    equal(second.payment, first.payment)?;
    let other = PaymentOrder { amount_minor: 14000, ..world.order() };
    let problem = problem_of(world.bank.amend("rs-amend", &id, "raise-1", &other, 2).await)?;
    equal((problem.status, problem.kind()), (422, "idempotency-key-reused"))?;
    equal(problem.fields, ["amountMinor"])
}

async fn amend_too_late(world: World) -> Result<()> {
    let id = world.bank.create("rs-amend", "late-1", &world.order()).await?.payment.payment_id;
    let raised = PaymentOrder { amount_minor: 13000, ..world.order() };
    world.bank.amend("rs-amend", &id, "raise-1", &raised, 1).await?;
    let other = PaymentOrder { amount_minor: 14000, ..world.order() };
    let problem = problem_of(world.bank.amend("rs-amend", &id, "raise-2", &other, 1).await)?;
    equal((problem.status, problem.kind(), problem.current_version), (412, "version-changed", Some(2)))?;
    world.bank.cancel("rs-amend", &id).await?;
    let problem = problem_of(world.bank.amend("rs-amend", &id, "raise-3", &other, 3).await)?;
    equal((problem.status, problem.kind(), problem.current_version), (409, "not-amendable", Some(3)))
}

async fn data_every_kind(world: World) -> Result<()> {
    let order = world.order_with(EVERY_KIND)?;
    let payment = world.bank.create("rs-data", "data-1", &order).await?.payment;
    let data = world.bank.get("rs-data", &payment.payment_id).await?.data.context("no data")?;
    equal(data.get(), EVERY_KIND)?;
    let sent = format!(r#""data":{EVERY_KIND}"#);
    ensure!(world.raw_payment(&payment).await?.contains(&sent));
    // A batch does not change it, either.
    let entry = scheduled_payments::AccountBatchEntry { idempotency_key: "data-2".to_owned(), order };
    let results = world.bank.create_account_batch("rs-data", &[entry]).await?;
    let created = results[0].outcome.as_ref().map_err(Clone::clone)?;
    ensure!(world.raw_payment(&created.payment).await?.contains(&sent));
    Ok(())
}

async fn data_null(world: World) -> Result<()> {
    let null = world.bank.create("rs-data", "null-1", &world.order_with("null")?).await?.payment;
    let absent = world.bank.create("rs-data", "absent-1", &world.order()).await?.payment;
    equal(world.bank.get("rs-data", &null.payment_id).await?.data, Some(json("null")?))?;
    equal(world.bank.get("rs-data", &absent.payment_id).await?.data, None)?;
    ensure!(world.raw_payment(&null).await?.contains(r#""data":null"#));
    Ok(())
}

async fn non_ascii_data(world: World) -> Result<()> {
    let data = "{\"Müller & Söhne\":\"家賃 – аренда – إيجار – \u{1f3e0}\u{2028}\"}";
    let payment = world.bank.create("rs-data", "script-1", &world.order_with(data)?).await?.payment;
    equal(world.bank.get("rs-data", &payment.payment_id).await?.data, Some(json(data)?))
}

async fn odd_ids(world: World) -> Result<()> {
    let (account, key) = ("...-_rs.Odd_", r##"!"#$%&'()*+-./:;<=>?@[\]^_`{|}~"##);
    let order = PaymentOrder { payee_account_id: "_.-".to_owned(), ..world.order() };
    let payment = world.bank.create(account, key, &order).await?.payment;
    equal((&*payment.account_id, &*payment.payee_account_id), (account, "_.-"))?;
    let found = world.bank.find_by_key(account, key).await?.context("nothing is found")?;
    equal(&found.payment_id, &payment.payment_id)?;
    equal(world.bank.get(account, &payment.payment_id).await?, payment)?;
    let in_quotes = world.bank.create(account, r#""a\"b""#, &world.order()).await?.payment;
    equal(world.bank.find_by_key(account, r#""a\"b""#).await?, Some(in_quotes))
}

async fn dots_refused(world: World) -> Result<()> {
    // Nothing listens there: a request would be an error of another kind.
    let nowhere = builder("http://127.0.0.1:9").build()?;
    for dots in ["", ".", ".."] {
        let (get, create) = (nowhere.get(dots, "x").await, nowhere.create(dots, "x", &world.order()).await);
        let errors = [error_of(get)?, error_of(nowhere.get("x", dots).await)?, error_of(create)?];
        let refused = errors.iter().all(|error| matches!(error, Error::Invalid(_)));
        ensure!(refused && nowhere.list(dots, &Default::default()).is_err(), "{dots:?} is accepted: {errors:?}");
    }
    Ok(())
}

async fn request_id(world: World) -> Result<()> {
    let problem = problem_of(world.bank.request_id("checkout-7f3a").get("rs-get", NOTHING).await)?;
    equal(problem.request_id.as_deref(), Some("checkout-7f3a"))?;
    let own = problem_of(world.bank.get("rs-get", NOTHING).await)?.request_id.unwrap_or_default();
    ensure!(!own.is_empty() && own != "checkout-7f3a");
    Ok(())
}

async fn unknown_parameter(world: World) -> Result<()> {
    let request = Request::get("/counts?date=2090-06-15").body(Bytes::new())?;
    let problem = problem_of(world.bank.send(request).await)?;
    equal((problem.status, problem.kind(), problem.field.as_deref()), (400, "invalid-parameter", Some("date")))
}
