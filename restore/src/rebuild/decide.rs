//! The decision about one payment, made without any call.
//!
//! If the long-term table has the payment's end, that end counts. Otherwise the log has the versions that the head
//! lacks. Contradictory data is listed, and never changed.

use std::collections::HashMap;

use anyhow::Result;
use payments_model::{Amended, Details, DetailsKey, Head, Instruction, PaymentData, State, Status, UtcSecond};
use payments_store::{StoreError, StoredHead, expiry_of_reported};

use super::except::{Except, Rest, without};
use super::known::{Known, LoggedAmendment, Version};
use super::outcome::{Change, Finding};
use super::redates::{Contents, Redate, rebuilt};

/// The data of a payment: its events, heads and details.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'s> {
    pub(crate) known: &'s Known,
    /// The head in the hot table.
    pub(crate) hot: Option<&'s StoredHead>,
    /// The head in the long-term table.
    pub(crate) history: Option<&'s StoredHead>,
    /// The first details.
    pub(crate) details: Option<&'s Details>,
    /// The details of amendments, also of other payments.
    pub(crate) amended: &'s HashMap<DetailsKey, Result<Details, StoreError>>,
    /// The stored details that a redate with lost details may follow.
    pub(crate) contents: &'s Contents,
}

/// The options and times of all decisions.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) excepts: Vec<Except>,
    /// The instant since which the restored table may lack settlements.
    pub(crate) since: UtcSecond,
    pub(crate) now: UtcSecond,
}

/// A write. The writes of a decision are made in their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// The details of a redate are put into the long-term table, if it lacks them.
    Details(Box<Redate>),
    /// The settled head is put into the long-term table, if it lacks one.
    ToHistory(StoredHead),
    /// The new head replaces the one that was read in the hot table.
    ToHot { read: Option<Box<StoredHead>>, new: Box<StoredHead> },
    /// The head is removed from the hot table.
    Remove(StoredHead),
}

/// The decision about a payment.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// The change, and the head's status after it.
    pub(crate) change: Option<(Change, Status)>,
    pub(crate) writes: Vec<Write>,
    pub(crate) findings: Vec<(Finding, String)>,
    /// The time of the tables' last change that the log lacks.
    pub(crate) unlogged: Option<UtcSecond>,
}

impl Decision {
    fn finds(mut self, finding: Finding, why: impl Into<String>) -> Self {
        self.findings.push((finding, why.into()));
        self
    }

    fn changes(self, change: Change, to: Status, writes: Vec<Write>) -> Self {
        Self { change: Some((change, to)), writes, ..self }
    }
}

/// Decides about a payment.
pub(crate) fn decide(seen: Seen<'_>, rules: &Rules) -> Result<Decision> {
    let mut decision = Decision::default();
    if seen.known.is_irregular {
        decision = decision.finds(Finding::Irregular, "compare it by hand");
    }
    match seen.history {
        Some(end) => ended(decision, seen, end, rules),
        None => open(decision, seen, rules),
    }
}

fn text_of(head: &Head) -> String {
    format!("{} at version {}", head.state.status(), head.version)
}

/// The expiry of a payment's head, if a report lists the payment with the head's time of settlement.
fn reported_until(seen: Seen<'_>, head: &Head, rules: &Rules) -> Option<UtcSecond> {
    let is_listed = seen.known.reported.is_some() && seen.known.reported == head.settled_at();
    is_listed.then(|| expiry_of_reported(head.due_date, rules.now))
}

/// Whether the hot table needs a settled head that it lacks: the next report reads the head there, and so does the list
/// of a date that is not over.
fn comes_back(head: &Head, is_listed: bool, rules: &Rules) -> bool {
    if is_listed { rules.now < head.due_date.over_everywhere() } else { head.settled_at() >= Some(rules.since) }
}

/// Whether the head in the hot table can have had this end. An unclaimed head may have been amended since.
fn agree(hot: &Head, end: &Head) -> bool {
    let same = (&hot.payee, hot.money, hot.due_at, hot.due_date) == (&end.payee, end.money, end.due_at, end.due_date);
    let was_amended = hot.state == State::Scheduled && hot.amendment != end.amendment && hot.version < end.version;
    same || was_amended
}

/// The status that a head had at a version.
fn status_at(head: &Head, version: u32) -> Option<Status> {
    let amendments = head.amendment.map_or(0, |name| name.version - 1);
    let place = usize::try_from(version.checked_sub(1)?.saturating_sub(amendments)).ok()?;
    head.trail().nth(place).map(|entry| entry.status)
}

/// Whether the log has another amendment at this version than the head.
fn has_another_amendment(head: &Head, version: &Version) -> bool {
    let own = head.amendment.filter(|name| name.version == version.number);
    own.is_some_and(|own| version.amendment.as_ref().is_some_and(|amended| amended.name != own))
}

/// Decides about a payment whose end the long-term table has.
fn ended(mut decision: Decision, seen: Seen<'_>, end: &StoredHead, rules: &Rules) -> Result<Decision> {
    let (head, hot) = (end.known(), seen.hot.map(StoredHead::known));
    if !matches!(without(&seen.known.versions, &rules.excepts), Rest::All(_)) {
        decision = decision.finds(Finding::Kept, "the long-term table has it, and nothing is taken back there");
    }
    let last = seen.known.versions.last();
    if let Some(last) = last.filter(|last| last.number >= head.version && !last.is(head.version, &head.state)) {
        let why = format!(
            "the log has {} at version {}, and the long-term table {}",
            last.status,
            last.number,
            text_of(head)
        );
        decision = decision.finds(Finding::Differs, why);
    }
    if seen.known.reported.is_some() && seen.known.reported != head.settled_at() {
        decision = decision.finds(Finding::Differs, "a report lists it with another time of settlement");
    }
    if last.is_none_or(|last| last.number < head.version) && head.updated_at() >= rules.since {
        decision.unlogged = Some(head.updated_at());
    }
    let until = reported_until(seen, head, rules);
    let status = head.state.status();
    match hot {
        None if status.is_settled() && comes_back(head, until.is_some(), rules) => {
            let new = Box::new(end.in_hot_table(until)?);
            Ok(decision.changes(Change::PutBack, status, vec![Write::ToHot { read: None, new }]))
        }
        None => Ok(decision),
        Some(hot) if !agree(hot, head) => Ok(decision
            .finds(Finding::Differs, "payee, amount, currency or date are not those of the long-term table's head")),
        Some(hot) if status.is_settled() && !hot.state.status().is_terminal() => {
            let write = Write::ToHot { read: seen.hot.cloned().map(Box::new), new: Box::new(end.in_hot_table(until)?) };
            Ok(decision.changes(Change::Completed, status, vec![write]))
        }
        Some(hot) if status.is_settled() && hot.state == head.state && hot.version == head.version => {
            match seen.hot.filter(|_| hot.unreported && until.is_some()) {
                Some(stored) => {
                    let write = Write::ToHot {
                        read: Some(Box::new(stored.clone())),
                        new: Box::new(stored.in_hot_table(until)?),
                    };
                    Ok(decision.changes(Change::Reported, status, vec![write]))
                }
                None => Ok(decision),
            }
        }
        Some(hot)
            if status == Status::Cancelled && matches!(hot.state.status(), Status::Scheduled | Status::Cancelled) =>
        {
            let writes = seen.hot.map(|stored| Write::Remove(stored.clone())).into_iter().collect();
            Ok(decision.changes(Change::Removed, status, writes))
        }
        Some(hot) => {
            let why = format!("the hot table has {}, and the long-term table {}", text_of(hot), text_of(head));
            Ok(decision.finds(Finding::Differs, why))
        }
    }
}

/// The versions that are restored, and a finding if `--except` names one.
fn restored<'v>(decision: Decision, versions: &'v [Version], rules: &Rules) -> (Decision, &'v [Version]) {
    match without(versions, &rules.excepts) {
        Rest::All(all) => (decision, all),
        Rest::Some(rest, out) => {
            let out: Vec<String> = out.iter().map(|version| format!("{} at {}", version.status, version.at)).collect();
            (decision.finds(Finding::LeftOut, format!("without {}", out.join(", "))), rest)
        }
        Rest::Kept(all) => (decision.finds(Finding::Kept, "it was claimed or settled after what --except names"), all),
    }
}

/// Decides about a payment without a head in the long-term table.
fn open(decision: Decision, seen: Seen<'_>, rules: &Rules) -> Result<Decision> {
    let (decision, versions) = restored(decision, &seen.known.versions, rules);
    let built = match (seen.hot, seen.details) {
        (Some(_), _) => None,
        (None, _) if versions.is_empty() => {
            let is_unsettled = seen.known.reported.is_some();
            return Ok(if is_unsettled { unsettled(decision) } else { decision });
        }
        (None, Some(Details { instruction: Instruction { data: Some(PaymentData::Sealed(sealed)), .. }, .. })) => {
            let why = format!("it had ended, as its sealed row {} says, and there is no head", sealed.place);
            return Ok(decision.finds(Finding::DetailsLost, why));
        }
        (None, Some(details)) => Some(StoredHead::new(Head::scheduled(details))?),
        (None, None) => {
            let last = versions.last().map_or("", |last| last.status.as_str());
            return Ok(decision.finds(Finding::DetailsLost, format!("it was {last}, and there is no head either")));
        }
    };
    let Some(base) = seen.hot.or(built.as_ref()) else { return Ok(decision) };
    let (head, is_built) = (base.known(), built.is_some());
    if let Some(last) = seen.known.versions.last().filter(|last| last.number < head.version) {
        let why = format!("it is {}, and the log has {} at version {}", text_of(head), last.status, last.number);
        return Ok(Decision { unlogged: Some(head.updated_at()), ..decision.finds(Finding::Above, why) });
    }
    if versions.len() < seen.known.versions.len()
        && seen.known.versions[versions.len()].number <= head.version
        && !is_built
    {
        return Ok(
            decision.finds(Finding::Kept, "the restored table has what --except names: restore to an earlier instant")
        );
    }
    let differs = |version: &&Version| {
        let is_other = status_at(head, version.number).is_some_and(|status| status != version.status);
        is_other || has_another_amendment(head, version)
    };
    if let Some(other) = versions.iter().find(differs) {
        let why = format!("the log has {} as version {}, and it is {}", other.status, other.number, text_of(head));
        return Ok(decision.finds(Finding::Differs, why));
    }
    let missing: Vec<&Version> = versions.iter().filter(|version| version.number > head.version).collect();
    let is_whole = missing.iter().zip(head.version + 1..).all(|(version, number)| version.number == number);
    if !is_whole {
        return Ok(
            decision.finds(Finding::Incomplete, format!("it is {}, and the log lacks what came next", text_of(head)))
        );
    }
    moved(decision, seen, rules, (base, is_built), &missing)
}

fn unsettled(decision: Decision) -> Decision {
    decision.finds(
        Finding::ReportedUnsettled,
        "neither the tables nor the log have its settlement: let its result come again",
    )
}

/// The head at its next version, or the finding that prevents it. Adds the rebuilt details of a redate to `anew`.
fn next(
    head: &StoredHead,
    version: &Version,
    seen: Seen<'_>,
    anew: &mut Vec<Redate>,
) -> Result<Result<StoredHead, (Finding, String)>> {
    let known = head.known();
    let next = match (&version.amendment, version.transition()) {
        (Some(amended), _) if known.state == State::Scheduled => {
            Some(amended_head(head, (amended, version), seen, anew)?)
        }
        (None, Some((event, by))) => match known.transition(&event, version.at, by) {
            Ok(step) => Some(head.moved_by(&step)?),
            Err(_) => None,
        },
        _ => None,
    };
    let Some(next) = next else {
        let why = format!("it is {}, from where nothing leads to {}", text_of(known), version.status);
        return Ok(Err((Finding::Differs, why)));
    };
    let due = (next.known().due_at, next.known().due_date);
    Ok(match version.due.filter(|logged| *logged != due) {
        Some((due_at, _)) => {
            Err((Finding::Differs, format!("the log has it due at {due_at}, and it is due at {}", due.0)))
        }
        None => Ok(next),
    })
}

/// The head after an amendment. Lost details of a redate are built anew. If a client's details are lost or differ from
/// the log, the head has the content of the log: then nothing is sent for the head, least of all the content before the
/// amendment.
fn amended_head(
    head: &StoredHead,
    (amended, version): (&LoggedAmendment, &Version),
    seen: Seen<'_>,
    anew: &mut Vec<Redate>,
) -> Result<StoredHead> {
    let (known, name) = (head.known(), amended.name);
    let logged = Amended { at: version.at, by: version.by.clone(), changed: amended.changed.clone() };
    let by_log = head.amended_by(name, &amended.stand_in(known, version)?, logged.clone())?;
    let key = DetailsKey { amendment: Some(name), ..known.details_key() };
    let lost = !seen.amended.contains_key(&key);
    let built = rebuilt(known, version, seen.contents, anew).filter(|_| lost);
    anew.extend(built);
    let redate = anew.last().map(|redate| &redate.details).filter(|details| details.details_key() == key);
    let details = seen.amended.get(&key).and_then(|details| details.as_ref().ok()).or(redate);
    match details.filter(|details| by_log.known().differences(details).is_empty()) {
        Some(details) => Ok(head.amended_by(name, details, logged)?),
        None => Ok(by_log),
    }
}

/// If `dispatch` sends nothing for a head that names an amendment of the log: the reason, and advice to the operator.
fn unsendable(head: &Head, seen: Seen<'_>, anew: &[Redate]) -> Option<(Finding, String)> {
    let key = head.details_key();
    if anew.iter().any(|redate| redate.details.details_key() == key) {
        return None;
    }
    let name = key.amendment.filter(|_| seen.known.amended_details().any(|logged| logged == key))?;
    let why = match seen.amended.get(&key) {
        None => "are lost".to_owned(),
        Some(Ok(details)) => {
            let differences = head.differences(details);
            if differences.is_empty() {
                return None;
            }
            format!("have another {}", differences.join(", "))
        }
        Some(Err(error)) => {
            let why = format!("nothing is sent for it until the details of its amendment are corrected: {error}");
            return Some((Finding::Unreadable, why));
        }
    };
    let advice = match head.state.status() {
        Status::Scheduled => "let its client cancel it and create another",
        Status::Pending => "ask the transaction service whether it is paid; only if not, let its client create another",
        Status::Processed | Status::Failed | Status::Cancelled => "it has ended, so there is nothing to do",
    };
    let (version, is) = (name.version, text_of(head));
    let why = format!(
        "the details of its amendment to version {version} {why}, so nothing is sent for it. It is {is}: {advice}"
    );
    Some((Finding::DetailsLost, why))
}

/// Moves a head through the versions that it lacks.
fn moved(
    mut decision: Decision,
    seen: Seen<'_>,
    rules: &Rules,
    (base, is_built): (&StoredHead, bool),
    missing: &[&Version],
) -> Result<Decision> {
    let (mut new, mut anew) = (base.clone(), Vec::new());
    for version in missing {
        new = match next(&new, version, seen, &mut anew)? {
            Ok(next) => next,
            Err((finding, why)) => return Ok(decision.finds(finding, why)),
        };
    }
    if let Some((finding, why)) = unsendable(new.known(), seen, &anew) {
        decision = decision.finds(finding, why);
    }
    let mut writes: Vec<Write> = anew.into_iter().map(|redate| Write::Details(Box::new(redate))).collect();
    let status = new.known().state.status();
    let read = seen.hot.cloned().map(Box::new);
    if status.is_settled() {
        let until = reported_until(seen, new.known(), rules);
        let in_hot = new.in_hot_table(if missing.is_empty() && !new.known().unreported {
            // The payment was reported before the restored instant.
            Some(expiry_of_reported(new.known().due_date, rules.now))
        } else {
            until
        })?;
        if seen.known.reported.is_some() && until.is_none() {
            decision = decision.finds(Finding::Differs, "a report lists it with another time of settlement");
        }
        let change = if missing.is_empty() {
            Change::Copied
        } else if is_built {
            Change::Built
        } else {
            Change::Moved
        };
        writes.extend([Write::ToHistory(new.in_history_table()?), Write::ToHot { read, new: Box::new(in_hot) }]);
        return Ok(decision.changes(change, status, writes));
    }
    let decision = if seen.known.reported.is_some() { unsettled(decision) } else { decision };
    if missing.is_empty() && !is_built {
        return Ok(decision);
    }
    let change = if is_built { Change::Built } else { Change::Moved };
    writes.push(Write::ToHot { read, new: Box::new(new) });
    Ok(decision.changes(change, status, writes))
}

#[cfg(test)]
mod tests;
