//! Closed dates: payments of a Sunday are due on Monday, and those of a holiday that is announced later are moved.

use anyhow::{Context as _, Result, ensure};
use lambda_runtime::Context;
use payments_bank::{Dependencies, Functions};
use payments_machine::environment::CALENDARS;
use payments_machine::{Handlers as _, Stack};
use payments_model::BusinessDate;
use scheduled_payments::{Bank, DateRule, DueFilter, Payment, PaymentOrder};
use serde_json::{Value, json};

/// The number of payments of each date.
const PAYMENTS: u64 = 20;

/// The Sunday on which the demo ends, and the Monday after it.
const SUNDAY: &str = "2026-11-22";
const MONDAY: &str = "2026-11-23";

/// Yen have no calendar, so every day is open for them. Then the bank announces that they leave by T2.
const CURRENCY: &str = "JPY";
const CALENDAR: &str = "T2";

/// A holiday of T2, and the next open date.
const HOLIDAY: &str = "2026-12-25";
const AFTER: &str = "2026-12-28";

/// The payments of closed dates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClosedDays {
    /// Payments of the Sunday that are due on Monday.
    pub(super) weekend: u64,
    /// Payments of the holiday that a look found.
    pub(super) waiting: u64,
    /// Payments of the holiday that were moved, and are due on the next open date.
    pub(super) moved: u64,
    /// Payments that are due on another date than they should, or that a second move moved.
    pub(super) wrong: u64,
}

impl ClosedDays {
    /// Creates the payments, announces the holiday, and runs `redate`, which moves its payments.
    pub(super) async fn play(bank: &Bank, stack: &Stack, context: &Context) -> Result<Self> {
        let mut seen = Self::default();
        for number in 0..PAYMENTS {
            let created = create(bank, number, ("GBP", SUNDAY)).await?;
            let is_right = is_due(&created, MONDAY) && created.move_reason.as_deref() == Some("weekend");
            seen.weekend += u64::from(is_right);
            seen.wrong += u64::from(!is_right);
            let created = create(bank, number, (CURRENCY, HOLIDAY)).await?;
            seen.wrong += u64::from(!is_due(&created, HOLIDAY));
        }
        let announced = announce(stack)?;
        seen.waiting = redate(&announced, "look", context).await?["waiting"].as_u64().context("nothing waiting")?;
        let moved = redate(&announced, "move", context).await?;
        ensure!(moved["isComplete"] == true, "the move is not complete: {moved}");
        seen.wrong += redate(&announced, "move", context).await?["moved"].as_u64().unwrap_or(PAYMENTS);
        let day: BusinessDate = AFTER.parse()?;
        let due = bank.due(day.as_chrono(), &DueFilter::default()).all().await?;
        let moved = due.iter().filter(|payment| payment.currency == CURRENCY);
        seen.moved = u64::try_from(moved.count())?;
        seen.wrong += PAYMENTS.abs_diff(seen.moved);
        Ok(seen)
    }
}

async fn create(bank: &Bank, number: u64, (currency, date): (&str, &str)) -> Result<Payment> {
    let day: BusinessDate = date.parse()?;
    let mut order = PaymentOrder::new("payee-1", 1_000, currency, day.as_chrono());
    order.date_rule = Some(DateRule::Following);
    Ok(bank.create("acc-00001", &format!("closed-{date}-{number}"), &order).await?.payment)
}

fn is_due(payment: &Payment, date: &str) -> bool {
    payment.due_date.to_string() == date
}

/// The functions of a bank in which yen have a calendar.
fn announce(stack: &Stack) -> Result<Functions> {
    let mut environment = stack.environment.clone();
    environment.calendars = format!("{CALENDARS},{CURRENCY}={CALENDAR}");
    let client = stack.client();
    Functions::within(&environment, |function| {
        let metrics = stack.metrics.for_function(function);
        Ok(Dependencies { metrics, ..Dependencies::on(stack, client.clone()) })
    })
}

async fn redate(functions: &Functions, action: &str, context: &Context) -> Result<Value> {
    let request = json!({ "action": action, "calendar": CALENDAR, "from": HOLIDAY, "to": HOLIDAY });
    functions.scheduled("redate", request, context.clone()).await.map_err(anyhow::Error::msg)
}
