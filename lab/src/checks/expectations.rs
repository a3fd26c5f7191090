//! Judges the alarms of a month without drawn faults: those of its outages go off in time and end, and no others do.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::plans::outages::Outage;
use crate::world::alarms::RaisedAlarms;

/// Returns the violations of the alarms of a month whose outages began at these times.
pub(crate) fn wrong_alarms(outages: &BTreeMap<Outage, DateTime<Utc>>, alarms: &RaisedAlarms) -> Vec<String> {
    let (mut wrong, mut own) = (Vec::new(), BTreeSet::new());
    for (outage, began) in outages {
        let expected = outage.expected();
        for (alarm, within) in &expected.must {
            let times = alarms.get(*alarm).into_iter().flatten();
            let first = times.filter_map(|raised| raised.by_both).find(|at| at > began);
            let after = first.map(|at| at - began);
            if after.is_none_or(|after| after > *within) {
                let (after, within) = (after.map(|after| after.num_minutes()), within.num_minutes());
                wrong.push(format!("{outage:?}: {alarm} went off after {after:?} minutes, and must within {within}"));
            }
        }
        own.extend(expected.must.into_iter().map(|(alarm, _)| alarm).chain(expected.may));
    }
    let begin = outages.values().min();
    for (alarm, times) in alarms {
        let is_early = times.iter().any(|raised| begin.is_none_or(|begin| raised.from < *begin));
        if is_early || !own.contains(alarm.as_str()) {
            wrong.push(format!("{alarm} went off, and nothing was wrong: {times:?}"));
        }
        if times.iter().any(|raised| raised.to.is_none()) {
            wrong.push(format!("{alarm} stays on: {times:?}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::alarms::Raised;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_400 + minute * 60, 0).unwrap()
    }

    fn judge(raised: &[(&str, i64, Option<i64>, Option<i64>)]) -> Vec<String> {
        let mut alarms = RaisedAlarms::new();
        for (alarm, from, by_both, to) in raised {
            let raised = Raised { from: at(*from), by_both: by_both.map(at), to: to.map(at) };
            alarms.entry((*alarm).to_owned()).or_default().push(raised);
        }
        wrong_alarms(&[(Outage::StreamStandsStill, at(100))].into(), &alarms)
    }

    #[test]
    fn an_outage_has_its_alarms_in_time_and_no_others() {
        let (dispatch, counting) =
            (("DispatchStopped", 115, Some(145), Some(170)), ("CountingStopped", 115, Some(145), Some(170)));
        assert_eq!(judge(&[dispatch, counting]), [""; 0]);
        assert_eq!(judge(&[dispatch, counting, ("CountsBehind", 170, Some(170), Some(180))]), [""; 0]);
        for (raised, wrong) in [
            (&[dispatch][..], "CountingStopped went off after None minutes"),
            (&[dispatch, ("CountingStopped", 115, None, Some(120))], "CountingStopped went off after None minutes"),
            (&[dispatch, ("CountingStopped", 115, Some(147), Some(170))], "CountingStopped went off after Some(47)"),
            (&[dispatch, counting, ("ApiErrors", 150, None, Some(151))], "ApiErrors went off, and nothing was wrong"),
            (
                &[("DispatchStopped", 90, Some(90), Some(95)), dispatch, counting],
                "DispatchStopped went off, and nothing",
            ),
            (&[dispatch, counting, ("CountsBehind", 170, Some(170), None)], "CountsBehind stays on"),
        ] {
            let found = judge(raised);
            assert!(found.len() == 1 && found[0].contains(wrong), "{wrong}: {found:?}");
        }
    }
}
