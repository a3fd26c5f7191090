//! Tests of the fold: every transition, and the ends of commits.

use payments_model::{Currency, DayCounts, MAX_AMOUNT_MINOR, Money, Status};
use proptest::prelude::*;

use super::*;

fn payment(date: &str, status: Status, amount: i64, currency: &str) -> Counted {
    let currency = Currency::from_stored(currency).unwrap();
    Counted { due_date: date.parse().unwrap(), status, money: Money { amount: amount.try_into().unwrap(), currency } }
}

fn change(sequence_number: u64, before: Option<Counted>, after: Option<Counted>) -> Change {
    let effect = Effect::Moved { before, after };
    Change { sequence_number: sequence_number.into(), created_at: None, effect, logged: Logged::Nothing }
}

/// Folds changes of the first epoch.
fn fold<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Vec<CountsCommit> {
    super::fold(changes, Epoch::FIRST, None).unwrap()
}

fn on(date: &str) -> BusinessDate {
    date.parse().unwrap()
}

const DAY: &str = "2026-12-01";

#[test]
fn each_status_change_of_a_life_is_counted() {
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
    let changes: Vec<Change> = (1..).zip(life).map(|(number, (before, after))| change(number, before, after)).collect();
    let counts_after = |changes: &[Change]| fold(changes).pop().map(|commit| commit.deltas[&on(DAY)].clone());
    for (upto, status, archived) in [(1, Scheduled, 0), (3, Pending, 0), (5, Processed, 0), (6, Processed, 1)] {
        let counts = counts_after(&changes[..upto]).unwrap();
        let mut want = DayCounts::default();
        want.enter(status, at(status).unwrap().money);
        want.archived = archived;
        assert_eq!(counts, want, "after {upto} changes");
    }
    // A scheduled payment that is deleted is no longer counted.
    let deleted = [change(7, at(Scheduled), None)];
    assert_eq!(counts_after(&deleted).unwrap().count(Scheduled), -1);
    // A correction subtracts the old values and adds the new ones.
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
fn an_unreadable_change_is_counted_on_its_date_or_on_the_checkpoint() {
    let unreadable = |number: u64, date| Change {
        sequence_number: number.into(),
        created_at: None,
        effect: Effect::Unreadable(date),
        logged: Logged::Nothing,
    };
    let commits = fold(&[unreadable(1, Some(on(DAY))), unreadable(2, None), unreadable(3, None)]);
    assert_eq!(commits.len(), 1);
    assert_eq!((commits[0].deltas[&on(DAY)].unparsed, commits[0].unparsed), (1, 2));
    assert_eq!(commits[0].last, 3.into());
    // An unreadable change alone needs a commit.
    for date in [None, Some(on(DAY))] {
        assert_eq!(fold(&[unreadable(1, date)]).len(), 1);
    }
}

#[test]
fn neutral_changes_need_no_commit_of_their_own() {
    let pending = Some(payment(DAY, Status::Pending, 1, "GBP"));
    let again = |number| change(number, pending, pending);
    assert_eq!(fold(&[again(1), again(2)]), []);
    let commits = fold(&[again(1), change(2, None, pending), again(3)]);
    assert_eq!((commits.len(), &commits[0].last), (1, &3.into()));
    // Two changes that cancel out need a commit: one of them may be repeated alone.
    let commits = fold(&[change(1, None, pending), change(2, pending, None)]);
    assert_eq!((commits.len(), commits[0].deltas[&on(DAY)].is_zero()), (1, true));
}

#[test]
fn dates_beyond_the_limit_of_a_transaction_go_to_the_next_commit() {
    let first = on("2026-01-01");
    let created = |number: u32| {
        let date = first.plus_days(number).to_string();
        change(number.into(), None, Some(payment(&date, Status::Scheduled, 1, "GBP")))
    };
    let changes: Vec<Change> = (1..=1_000).map(created).collect();
    let commits = fold(&changes);
    let sizes: Vec<usize> = commits.iter().map(|commit| commit.deltas.len()).collect();
    assert_eq!(sizes, [97, 97, 97, 97, 97, 97, 97, 97, 97, 97, 30]);
    let lasts: Vec<String> = commits.iter().take(3).map(|commit| commit.last.to_string()).collect();
    assert_eq!(lasts, ["97", "194", "291"]);
}

#[test]
fn sums_beyond_the_limit_of_an_expression_go_to_the_next_commit() {
    let codes = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'H').map(move |b| ['X', a.into(), b.into()]));
    let codes: Vec<String> = codes.map(String::from_iter).collect();
    let claimed = |(number, code): (u64, &String)| {
        let at = |status| Some(payment(DAY, status, 1, code));
        change(number, at(Status::Scheduled), at(Status::Pending))
    };
    let changes: Vec<Change> = (1..).zip(&codes).map(claimed).collect();
    let commits = fold(&changes);
    assert!(commits.len() > 1);
    assert!(commits.iter().all(|commit| commit.deltas[&on(DAY)].sum_count() <= MAX_SUMS_PER_DATE));
    assert_eq!(commits.last().unwrap().last, u64::try_from(codes.len()).unwrap().into());
}

fn payments() -> impl Strategy<Value = Option<Counted>> {
    let some = (0_u32..150, 0_usize..5, 1..=MAX_AMOUNT_MINOR, prop::sample::select(vec!["GBP", "EUR", "JPY"]));
    prop::option::weighted(0.8, some).prop_map(|payment_| {
        let (day, status, amount, currency) = payment_?;
        Some(payment(&on("2026-01-01").plus_days(day).to_string(), Status::ALL[status], amount, currency))
    })
}

proptest! {
    #[test]
    fn commits_together_add_up_to_single_changes(sides in prop::collection::vec((payments(), payments()), 0..300)) {
        let changes: Vec<Change> =
            (1..).zip(sides).map(|(number, (before, after))| change(number, before, after)).collect();
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
