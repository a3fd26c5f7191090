//! Adds up changes into commits, each of which fits into one DynamoDB transaction. Nothing here does I/O.

use payments_model::{BusinessDate, Epoch, Logged, SequenceNumber, UtcSecond};
use payments_store::{Counted, CountsCommit, MAX_DATES_PER_COMMIT, MAX_SEGMENT_BYTES, MAX_SUMS_PER_DATE};

/// One change of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The change's position in the stream shard.
    pub sequence_number: SequenceNumber,
    /// The time of the change, if the record has a readable time.
    pub created_at: Option<UtcSecond>,
    /// The effect on the counters.
    pub effect: Effect,
    /// The meaning for the log.
    pub logged: Logged,
}

/// The effect of a change on the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The change created, changed or removed a head.
    Moved {
        /// The payment before the change; `None` if the change created the head.
        before: Option<Counted>,
        /// The payment after the change; `None` if the change removed the head.
        after: Option<Counted>,
    },
    /// The change cannot be read. The payment's date may be known.
    Unreadable(Option<BusinessDate>),
}

impl Change {
    /// Whether the change affects no counter and causes no event. Such a change may be handled twice,
    /// so it needs no checkpoint.
    pub(crate) fn is_neutral(&self) -> bool {
        self.effect.is_neutral() && self.logged == Logged::Nothing
    }
}

impl Effect {
    /// Whether the change affects no counter. For example, a redrive affects none.
    fn is_neutral(&self) -> bool {
        matches!(self, Self::Moved { before, after } if before == after)
    }

    /// Returns the dates whose counters the change affects: at most two.
    fn dates(&self) -> impl Iterator<Item = BusinessDate> {
        let (one, other) = match self {
            Self::Moved { before, after } => {
                (before.map(|counted| counted.due_date), after.map(|counted| counted.due_date))
            }
            Self::Unreadable(date) => (*date, None),
        };
        one.into_iter().chain(other.filter(|date| Some(*date) != one))
    }
}

/// Adds changes up, in order, into as few commits as possible. Each commit holds the sequence number of its last
/// change. Leading changes that affect no counter and cause no event are left out. All events of a commit have the same
/// epoch. The first commit begins with the event `gap`, if one is given.
///
/// # Errors
/// Errors of [`Logged::json`].
pub fn fold<'c>(
    changes: impl IntoIterator<Item = &'c Change>,
    epoch: Epoch,
    mut gap: Option<String>,
) -> serde_json::Result<Vec<CountsCommit>> {
    let mut commits: Vec<CountsCommit> = Vec::new();
    let mut bytes = 0;
    for change in changes {
        let event = change.logged.json(epoch)?;
        let more = event.as_ref().map_or(0, |event| event.len() + 1);
        match commits.last_mut() {
            Some(commit) if has_room(commit, &change.effect) && bytes + more <= MAX_SEGMENT_BYTES => {}
            None if change.effect.is_neutral() && event.is_none() => continue,
            _ => {
                bytes = gap.as_ref().map_or(0, |gap| gap.len() + 1);
                let (events, last) = (gap.take().into_iter().collect(), change.sequence_number.clone());
                commits.push(CountsCommit { deltas: Default::default(), unparsed: 0, events, last });
            }
        }
        bytes += more;
        if let Some(commit) = commits.last_mut() {
            apply(commit, change);
            commit.events.extend(event);
        }
    }
    Ok(commits)
}

/// Whether a commit's counters have room for one more change.
fn has_room(commit: &CountsCommit, effect: &Effect) -> bool {
    if effect.is_neutral() {
        return true;
    }
    let new = effect.dates().filter(|date| !commit.deltas.contains_key(date)).count();
    let fits = |date| commit.deltas.get(&date).is_none_or(|counts| counts.sum_count() + 2 <= MAX_SUMS_PER_DATE);
    commit.deltas.len() + new <= MAX_DATES_PER_COMMIT && effect.dates().all(fits)
}

fn apply(commit: &mut CountsCommit, change: &Change) {
    commit.last.clone_from(&change.sequence_number);
    match change.effect {
        Effect::Moved { before, after } if before != after => {
            if let Some(before) = before {
                let counts = commit.deltas.entry(before.due_date).or_default();
                if after.is_none() && before.status.is_terminal() {
                    // The archive removed the head, or the head expired. The payment still counts in its status.
                    counts.archived += 1;
                } else {
                    counts.leave(before.status, before.money);
                }
            }
            if let Some(after) = after {
                commit.deltas.entry(after.due_date).or_default().enter(after.status, after.money);
            }
        }
        Effect::Moved { .. } => {}
        Effect::Unreadable(Some(date)) => commit.deltas.entry(date).or_default().unparsed += 1,
        Effect::Unreadable(None) => commit.unparsed += 1,
    }
}

#[cfg(test)]
mod tests;
