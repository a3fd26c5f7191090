//! What the arithmetic has to get right: every transition, and where commits are cut.

use payments_model::{Currency, DayCounts, Money, Status};
use proptest::prelude::*;

use super::*;

fn payment(date: &str, status: Status, amount: i64, currency: &str) -> Counted {
    let currency = Currency::from_stored(currency).unwrap();
    Counted { due_date: date.parse().unwrap(), status, money: Money { amount: amount.try_into().unwrap(), currency } }
}

fn change(place: u64, before: Option<Counted>, after: Option<Counted>) -> Change {
    Change { place: place.into(), effect: Effect::Moved { before, after } }
}

fn on(date: &str) -> BusinessDate {
    date.parse().unwrap()
}

const DAY: &str = "2026-12-01";

#[test]
fn a_payment_is_followed_through_its_life() {
    use Status::{Cancelled, Pending, Processed, Scheduled};
    let at = |status| Some(payment(DAY, status, 1_999, "GBP"));
    let life = [
        (None, at(Scheduled)),
        (at(Scheduled), at(Pending)),
        (at(Pending), at(Pending)),
        (at(Pending), at(Processed)),
        (at(Processed), at(Processed)),
        (at(Processed), None),
    ];
    let changes: Vec<Change> = (1..).zip(life).map(|(place, (before, after))| change(place, before, after)).collect();
    let counts_after = |changes: &[Change]| fold(changes).pop().map(|commit| commit.deltas[&on(DAY)].clone());
    for (upto, status, archived) in [(1, Scheduled, 0), (3, Pending, 0), (5, Processed, 0), (6, Processed, 1)] {
        let counts = counts_after(&changes[..upto]).unwrap();
        let mut want = DayCounts::default();
        want.enter(status, at(status).unwrap().money);
        want.archived = archived;
        assert_eq!(counts, want, "after {upto} changes");
    }
    // A payment that is taken out before its time does not count any more.
    let taken_out = [change(7, at(Scheduled), None)];
    assert_eq!(counts_after(&taken_out).unwrap().count(Scheduled), -1);
    // Whatever changes, what it was is taken out and what it is put in.
    let corrected = [change(9, at(Scheduled), Some(payment("2026-12-02", Scheduled, 5, "EUR")))];
    let deltas = &fold(&corrected)[0].deltas;
    let mut want = [DayCounts::default(), DayCounts::default()];
    want[0].leave(Scheduled, payment(DAY, Scheduled, 1_999, "GBP").money);
    want[1].enter(Scheduled, payment(DAY, Scheduled, 5, "EUR").money);
    assert_eq!(deltas.values().collect::<Vec<_>>(), want.iter().collect::<Vec<_>>());
    let cancelled = [change(8, at(Cancelled), None)];
    assert_eq!(counts_after(&cancelled).unwrap().archived, 1);
}

#[test]
fn what_cannot_be_read_is_counted_on_its_date_or_on_the_checkpoint() {
    let unreadable = |place: u64, date| Change { place: place.into(), effect: Effect::Unreadable(date) };
    let commits = fold(&[unreadable(1, Some(on(DAY))), unreadable(2, None), unreadable(3, None)]);
    assert_eq!(commits.len(), 1);
    assert_eq!((commits[0].deltas[&on(DAY)].unparsed, commits[0].unparsed), (1, 2));
    assert_eq!(commits[0].last, 3.into());
    // Alone, too, they are no changes that count nothing.
    for date in [None, Some(on(DAY))] {
        assert_eq!(fold(&[unreadable(1, date)]).len(), 1);
    }
}

#[test]
fn changes_that_count_nothing_need_no_commit_of_their_own() {
    let pending = Some(payment(DAY, Status::Pending, 1, "GBP"));
    let again = |place| change(place, pending, pending);
    assert_eq!(fold(&[again(1), again(2)]), []);
    let commits = fold(&[again(1), change(2, None, pending), again(3)]);
    assert_eq!((commits.len(), &commits[0].last), (1, &3.into()));
    // Two changes that undo each other are no such thing: one of them may come again alone.
    let commits = fold(&[change(1, None, pending), change(2, pending, None)]);
    assert_eq!((commits.len(), commits[0].deltas[&on(DAY)].is_zero()), (1, true));
}

#[test]
fn more_dates_than_a_transaction_takes_are_cut_between_records() {
    let first = on("2026-01-01");
    let put_in = |place: u32| {
        let date = first.plus_days(place).to_string();
        change(place.into(), None, Some(payment(&date, Status::Scheduled, 1, "GBP")))
    };
    let changes: Vec<Change> = (1..=1_000).map(put_in).collect();
    let commits = fold(&changes);
    let sizes: Vec<usize> = commits.iter().map(|commit| commit.deltas.len()).collect();
    assert_eq!(sizes, [99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 10]);
    let lasts: Vec<String> = commits.iter().take(3).map(|commit| commit.last.to_string()).collect();
    assert_eq!(lasts, ["99", "198", "297"]);
}

#[test]
fn more_sums_than_an_expression_takes_are_cut_between_records() {
    let codes = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'H').map(move |b| ['X', a.into(), b.into()]));
    let codes: Vec<String> = codes.map(String::from_iter).collect();
    let claimed = |(place, code): (u64, &String)| {
        let at = |status| Some(payment(DAY, status, 1, code));
        change(place, at(Status::Scheduled), at(Status::Pending))
    };
    let changes: Vec<Change> = (1..).zip(&codes).map(claimed).collect();
    let commits = fold(&changes);
    assert!(commits.len() > 1);
    assert!(commits.iter().all(|commit| commit.deltas[&on(DAY)].sum_count() <= MAX_SUMS_PER_DATE));
    assert_eq!(commits.last().unwrap().last, u64::try_from(codes.len()).unwrap().into());
}

fn payments() -> impl Strategy<Value = Option<Counted>> {
    let some = (0_u32..150, 0_usize..5, 1_i64.., prop::sample::select(vec!["GBP", "EUR", "JPY"]));
    prop::option::weighted(0.8, some).prop_map(|payment_| {
        let (day, status, amount, currency) = payment_?;
        Some(payment(&on("2026-01-01").plus_days(day).to_string(), Status::ALL[status], amount, currency))
    })
}

proptest! {
    #[test]
    fn however_it_is_cut_it_adds_up_to_the_same(sides in prop::collection::vec((payments(), payments()), 0..300)) {
        let changes: Vec<Change> =
            (1..).zip(sides).map(|(place, (before, after))| change(place, before, after)).collect();
        let total = |commits: Vec<CountsCommit>| {
            let mut total = std::collections::BTreeMap::<BusinessDate, DayCounts>::new();
            for (date, counts) in commits.into_iter().flat_map(|commit| commit.deltas) {
                total.entry(date).or_default().add(&counts);
            }
            total.retain(|_, counts| !counts.is_zero());
            total
        };
        let one_by_one = changes.iter().flat_map(|change| fold([change])).collect();
        let together = fold(&changes);
        prop_assert!(together.iter().all(|commit| commit.deltas.len() <= MAX_DATES_PER_COMMIT));
        prop_assert!(together.is_sorted_by(|one, next| one.last < next.last));
        prop_assert_eq!(total(together), total(one_by_one));
    }
}
