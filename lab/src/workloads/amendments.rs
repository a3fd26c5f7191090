//! Clients that amend payments, also while others write them, two at once, and again after days.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use fastrand::Rng;
use futures::join;
use payments_machine::client::{Reply, Request};
use payments_machine::layers::attributes::{number as number_of, text};
use payments_machine::layers::random::happens;
use payments_machine::payload::DataKind;
use payments_model::UtcSecond;
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::checks::redated;
use crate::facts::heads::id_of;
use crate::facts::intent::{Amendment, Intent};
use crate::plans::acts::Act;
use crate::time::CLOCKS_AGREE;
use crate::time::pause;
use crate::workloads::clients::{TRIES, ask, asked, cancel, claimed_at, create, is_for_later, wait};
use crate::workloads::readers::get;
use crate::world::bank::Bank;

/// The number of payments, of a thousand, that their client amends.
const PER_THOUSAND: u16 = 450;

/// The most amendments of a payment.
const MOST: u64 = 20;

/// The first amount of an amendment; those of new payments are lower.
const FIRST_AMOUNT: u64 = 10_000_000;

/// The first amount of an amendment by mistake.
const FIRST_WRONG_AMOUNT: u64 = 20_000_000;

/// Returns the request that amends a payment by mistake: nobody else wants that amount. `None` if no client knows the payment.
pub(crate) fn by_mistake(bank: &Bank, head: &Value) -> Option<Request> {
    let (id, seen) = (id_of(text(head, "sk")), number_of(head, "version"));
    let mut state = bank.state();
    let intent = state.intents.iter_mut().find(|intent| intent.accepted.as_deref() == Some(id))?;
    let known = intent.in_force(id, text(head, "details"))?;
    let mut wanted = known.made_for(known.scheduled_for.clone());
    wanted.amount = FIRST_WRONG_AMOUNT + intent.amount;
    let key = format!("mistake-of-{}", intent.amount);
    let request = Request::amend(&intent.account, id, (&key, u32::try_from(seen).ok()?), &wanted.body());
    intent.amendments.push(Amendment { key, seen, wanted: Box::new(wanted), accepted: false, redates: None });
    Some(request)
}

/// A client of one payment.
struct Client<'b> {
    bank: &'b Arc<Bank>,
    place: usize,
    /// The latest due time of payments.
    end: DateTime<Utc>,
    random: Rng,
}

/// Starts the client of a payment, which perhaps amends it.
pub(crate) fn start(bank: Arc<Bank>, place: usize, end: DateTime<Utc>) {
    spawn_local(run(bank, place, end));
}

async fn run(bank: Arc<Bank>, place: usize, end: DateTime<Utc>) {
    let random = bank.seed.source(&format!("amendments of {place}"));
    let mut client = Client { bank: &bank, place, end, random };
    if !bank.amends || !happens(&mut client.random, PER_THOUSAND) {
        return;
    }
    match client.random.u8(0..9) {
        0..3 => client.one_after_another().await,
        3 => client.at_once().await,
        4 | 5 => client.while_claimed().await,
        6 => client.while_cancelled().await,
        7 => client.while_created().await,
        _ => client.again_after_days().await,
    };
}

impl Client<'_> {
    fn count(&self, act: Act) {
        *self.bank.state().amendments.entry(act).or_default() += 1;
    }

    /// Waits for a while, mostly not until the payment is due.
    async fn idle(&mut self) {
        let due = self.bank.intent(self.place).due();
        let left = due.map_or(0, |due| (due - self.bank.time.now()).num_seconds());
        pause(TimeDelta::seconds(self.random.i64(0..left.clamp(60, 2 * 86_400)))).await;
    }

    /// Amends the payment several times, and perhaps does what must be refused.
    async fn one_after_another(&mut self) -> Option<()> {
        let times = self.random.u8(1..4);
        for time in 0..times {
            self.idle().await;
            let seen = self.read().await?;
            let number = self.wish(seen)?;
            if self.amend(number).await == Some(200) && time > 0 {
                self.count(Act::Again);
            }
            if self.random.u8(0..3) == 0 {
                self.reuse(number).await;
            }
            if self.random.u8(0..3) == 0 {
                let stale = self.wish(seen)?;
                if self.amend(stale).await == Some(412) {
                    self.count(Act::Stale);
                }
            }
        }
        if self.random.bool() {
            let due = self.bank.intent(self.place).due()?;
            let later = TimeDelta::seconds(self.random.i64(600..6 * 3_600));
            pause((due - self.bank.time.now()).max(TimeDelta::zero()) + later).await;
            let seen = self.read().await?;
            let late = self.wish(seen)?;
            if self.amend(late).await == Some(409) {
                self.count(Act::TooLate);
            }
        }
        Some(())
    }

    /// Two clients have seen the same version, and both amend it.
    async fn at_once(&mut self) -> Option<()> {
        self.idle().await;
        let seen = self.read().await?;
        let (one, other) = (self.wish(seen)?, self.wish(seen)?);
        self.count(Act::AtOnce);
        let later = TimeDelta::milliseconds(self.random.i64(0..60));
        join!(self.amend(one), async {
            pause(later).await;
            self.amend(other).await
        });
        Some(())
    }

    /// Amends the payment while the sweep claims it.
    async fn while_claimed(&mut self) -> Option<()> {
        let due = self.bank.intent(self.place).due()?;
        let claimed = claimed_at(due, &mut self.random);
        pause(claimed - self.bank.time.now() - TimeDelta::seconds(30)).await;
        let seen = self.read().await?;
        let number = self.wish(seen)?;
        pause(claimed - self.bank.time.now()).await;
        self.count(Act::WhileClaimed);
        self.amend(number).await;
        Some(())
    }

    async fn while_cancelled(&mut self) -> Option<()> {
        self.idle().await;
        let seen = self.read().await?;
        let number = self.wish(seen)?;
        self.count(Act::WhileCancelled);
        join!(self.amend(number), cancel(self.bank, self.place));
        Some(())
    }

    async fn while_created(&mut self) -> Option<()> {
        let seen = self.read().await?;
        let number = self.wish(seen)?;
        self.count(Act::WhileCreated);
        join!(self.amend(number), create(self.bank, self.place));
        Some(())
    }

    /// Sends an amendment again after days, perhaps after another one.
    async fn again_after_days(&mut self) -> Option<()> {
        self.idle().await;
        let seen = self.read().await?;
        let number = self.wish(seen)?;
        self.amend(number).await;
        if self.random.bool() {
            self.idle().await;
            let seen = self.read().await?;
            let other = self.wish(seen)?;
            self.amend(other).await;
        }
        pause(TimeDelta::seconds(self.random.i64(3_600..5 * 86_400))).await;
        self.count(Act::RepeatedLate);
        self.amend(number).await;
        Some(())
    }

    /// Reads the payment. Returns the version that it has; `None` if it cannot be had.
    async fn read(&self) -> Option<u64> {
        let intent = self.bank.intent(self.place);
        let path = format!("/accounts/{}/payments/{}", intent.account, intent.accepted?);
        get(self.bank, &path).await?["version"].as_u64()
    }

    /// Decides on an amendment of a version that the client has seen. Returns its number.
    fn wish(&mut self, seen: u64) -> Option<usize> {
        let now = self.bank.time.now();
        let mut state = self.bank.state();
        let new_amount = FIRST_AMOUNT + state.amendments.values().sum::<u64>();
        let first = &state.intents[self.place];
        let known = first.amendments.iter().filter(|amendment| amendment.accepted && amendment.seen < seen);
        let base = known.max_by_key(|amendment| amendment.seen).map_or(first, |amendment| &*amendment.wanted);
        let (act, scheduled_for) = date(self.bank, (first, base), (now, self.end), &mut self.random);
        let mut wanted = base.made_for(scheduled_for);
        change(&mut wanted, new_amount, &mut self.random);
        let number = first.amendments.len();
        let key = format!("change-{number}-of-{}", first.amount);
        let amendment = Amendment { key, seen, wanted: Box::new(wanted), accepted: false, redates: None };
        state.intents[self.place].amendments.push(amendment);
        *state.amendments.entry(act).or_default() += 1;
        Some(number)
    }

    /// Sends an amendment until its answer is final. Returns that answer's status.
    async fn amend(&self, number: usize) -> Option<u16> {
        let request = self.request(number, |body| body)?;
        asked(self.bank, &request, |reply| self.told(number, &reply).then_some(reply.status)).await
    }

    fn request(&self, number: usize, change: impl Fn(Value) -> Value) -> Option<Request> {
        let intent = self.bank.intent(self.place);
        let Amendment { key, seen, wanted, .. } = &intent.amendments[number];
        let (id, seen) = (intent.accepted.as_ref()?, u32::try_from(*seen).ok()?);
        Some(Request::amend(&intent.account, id, (key, seen), &change(wanted.body())))
    }

    /// Notes what a client was told of an amendment. Returns whether that is final.
    fn told(&self, number: usize, reply: &Reply) -> bool {
        let (bank, place) = (self.bank, self.place);
        redated::learn(bank);
        let complaint = match reply.status {
            status if is_for_later(status) => return false,
            200 => {
                let mut state = bank.state();
                let intent = &mut state.intents[place];
                intent.amendments[number].accepted = true;
                (!is_shown(intent, number, reply)).then_some("and shown as another payment")
            }
            status => (!self.is_rightly_refused(number, status)).then_some("and is not so"),
        };
        if let Some(why) = complaint {
            let (intent, head) = (bank.intent(place), bank.head_of(place));
            let Amendment { key, seen, .. } = &intent.amendments[number];
            let what = format!("amendment {key} of {} at version {seen}", intent.amount);
            bank.complain(format!("{what} was answered {} {why}: {} {head:?}", reply.status, reply.text));
        }
        true
    }

    /// Whether an amendment that was refused was not done, and the payment is as the answer says.
    fn is_rightly_refused(&self, number: usize, status: u16) -> bool {
        let (bank, now) = (self.bank, self.bank.time.now());
        let intent = bank.intent(self.place);
        let id = intent.accepted.clone().unwrap_or_default();
        if bank.switches.is_restoring() || bank.state().lost.contains(&id) {
            return true;
        }
        let Some(head) = bank.head_of(self.place) else { return intent.accepted.is_none() };
        let Amendment { seen, wanted, .. } = &intent.amendments[number];
        if is_in_force(bank, &head, &id, intent.amendments[number].name(&id)) {
            return false;
        }
        let version = number_of(&head, "version");
        match status {
            409 => text(&head, "status") != "SCHEDULED" || version > MOST,
            412 => version != *seen,
            422 => wanted.has_passed(now + CLOCKS_AGREE),
            _ => false,
        }
    }

    /// Uses an amendment's idempotency key for another amendment, which must be refused.
    async fn reuse(&self, number: usize) {
        let other = |mut body: Value| {
            body["amountMinor"] = json!(body["amountMinor"].as_u64().unwrap_or(0) + 50_000_000);
            body
        };
        for tried in 0..TRIES {
            // A restore may take it back.
            if !self.bank.state().intents[self.place].amendments[number].accepted {
                return;
            }
            let Some(request) = self.request(number, other) else { return };
            match ask(self.bank, &request).await.map(|reply| reply.status) {
                Some(422) => return self.count(Act::KeyReused),
                None => wait(tried).await,
                Some(status) if is_for_later(status) => wait(tried).await,
                Some(status) => {
                    return self.bank.complain(format!("an amendment's key that was used again was answered {status}"));
                }
            }
        }
    }
}

/// Whether the answer to an amendment shows the payment: as it is wanted, or as it is now if the amendment was repeated.
fn is_shown(intent: &Intent, number: usize, reply: &Reply) -> bool {
    let Ok(payment) = reply.json() else { return false };
    let Amendment { seen, wanted, .. } = &intent.amendments[number];
    let header = |wanted: &str| reply.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let is_replayed = header("idempotent-replayed") == Some("true");
    let is_right = if is_replayed {
        intent.is_shown_as(&payment) && payment["version"].as_u64() > Some(*seen)
    } else {
        wanted.is_shown_as(&payment) && payment["version"] == seen + 1
    };
    is_right
        && payment["paymentId"].as_str() == intent.accepted.as_deref()
        && header("etag") == Some(&format!("\"{}\"", payment["version"]))
}

/// Whether an amendment is or was in force, by the details that the head names and those before.
fn is_in_force(bank: &Bank, head: &Value, id: &str, name: Option<String>) -> bool {
    let mut next = text(head, "details").to_owned();
    while !next.is_empty() {
        if Some(&next) == name.as_ref() {
            return true;
        }
        let details = bank.item("payment-history", &format!("PAY#{id}"), &format!("DETAILS#{next}"));
        next = details.map(|details| text(&details, "previous").to_owned()).unwrap_or_default();
    }
    false
}

/// Draws when the payment is to be made.
fn date(
    bank: &Bank,
    (first, base): (&Intent, &Intent),
    (now, end): (DateTime<Utc>, DateTime<Utc>),
    random: &mut Rng,
) -> (Act, String) {
    let due = base.due().unwrap_or(now);
    let date_of = |at| UtcSecond::new(at).map(|at| bank.zone.date_of(at).to_string()).unwrap_or_default();
    let is_date = random.u8(0..3) == 0;
    let written = |at: DateTime<Utc>| if is_date { date_of(at) } else { at.to_rfc3339_opts(SecondsFormat::Secs, true) };
    let (left, room) = ((due - now).num_seconds(), (end - due).num_seconds() - 3_600);
    match random.u8(0..8) {
        0 | 1 if left > 120 => (Act::Earlier, written(now + TimeDelta::seconds(random.i64(60..left)))),
        2 | 3 if room > 60 => {
            (Act::Later, written(due + TimeDelta::seconds(random.i64(60..room.clamp(61, 8 * 86_400)))))
        }
        4 => (Act::ToToday, date_of(now)),
        5 | 6 if base.scheduled_for != first.scheduled_for && !first.has_passed(now) => {
            (Act::BackToFirst, first.scheduled_for.clone())
        }
        _ => (Act::SameDate, base.scheduled_for.clone()),
    }
}

/// Changes some of what is wanted beside the date, or nothing.
fn change(wanted: &mut Intent, new_amount: u64, random: &mut Rng) {
    if random.bool() {
        wanted.amount = new_amount;
    }
    if random.u8(0..3) == 0 {
        wanted.payee = format!("payee-{}", random.u8(0..7));
    }
    if random.u8(0..5) == 0 {
        wanted.currency = ["GBP", "EUR", "USD"][random.usize(0..3)];
    }
    if random.u8(0..3) == 0 {
        wanted.reference = random.bool().then(|| format!("AMENDED {}", random.u16(..)));
    }
    if random.u8(0..3) == 0 {
        let kind = random.choice(DataKind::ALL).unwrap_or_default();
        let bytes = 50 + usize::from(random.u16(0..2_000));
        wanted.data = kind.value(random, bytes);
    }
}
