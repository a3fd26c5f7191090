//! Each call of a run, failing in each way: the cases of a crash test, one after another.
//!
//! After TigerBeetle's `exhaustigen.zig`: nobody counts the calls of a run beforehand. The test says whether the run made
//! the call that was to fail, and the first run without it ends the cases of a way.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::vec;

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_machine::{Call, Fate, Recorder};

/// A way in which a run fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The name in the list of cases.
    pub name: &'static str,
    /// The fate of the call.
    pub fate: Fate,
    later: Fate,
    is_first_try: bool,
    operations: &'static [&'static str],
}

/// A call fails before it takes effect or after, once or from there on.
pub const TROUBLES: [Way; 4] = [
    Way::lasting(Fate::Refuse(500, "InternalServerError")).named(r#"Refuse(500, "InternalServerError") lasts"#),
    Way::lasting(Fate::LoseReply).named("LoseReply lasts"),
    Way::once(Fate::LoseReply).named("LoseReply once"),
    Way::once(Fate::LoseRequest).named("LoseRequest once"),
];

/// A case: one call of a run fails in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    /// The number of the call, from 0.
    pub call: usize,
    /// The way.
    pub way: Way,
}

/// The cases of a harness.
#[derive(Debug)]
pub struct CrashPoints {
    harness: String,
    ways: vec::IntoIter<Way>,
    point: Option<CrashPoint>,
    is_reached: bool,
    cases: usize,
    calls: usize,
}

impl Way {
    /// One call has this fate, and all others pass.
    pub const fn once(fate: Fate) -> Self {
        Self { name: "", fate, later: Fate::Pass, is_first_try: false, operations: &[] }
    }

    /// The call and all later calls have this fate, as if the process or its network ended there.
    pub const fn lasting(fate: Fate) -> Self {
        Self { later: fate, ..Self::once(fate) }
    }

    /// The same under a name.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same, and all later calls have another fate.
    pub const fn then(self, later: Fate) -> Self {
        Self { later, ..self }
    }

    /// The same for the first try of a call alone: the SDK tries again.
    pub const fn at_first_try(self) -> Self {
        Self { is_first_try: true, ..self }
    }

    /// The same for these operations alone.
    pub const fn for_operations(self, operations: &'static [&'static str]) -> Self {
        Self { operations, ..self }
    }

    /// Whether all later calls fail, too.
    pub fn lasts(self) -> bool {
        self.later != Fate::Pass
    }
}

impl CrashPoint {
    /// The fate of the call of this number.
    pub fn fate_at(self, number: usize) -> Fate {
        match number {
            before if before < self.call => Fate::Pass,
            it if it == self.call => self.way.fate,
            _ => self.way.later,
        }
    }

    /// The fate of a try.
    pub fn fate(self, call: &Call) -> Fate {
        let operations = self.way.operations;
        let fails = (call.tried == 0 || !self.way.is_first_try)
            && (operations.is_empty() || operations.contains(&call.operation.as_str()));
        if fails { self.fate_at(call.number) } else { Fate::Pass }
    }

    /// A recorder whose tries fail so. It numbers each try.
    pub fn recorder(self) -> Recorder {
        Recorder::with_fate(move |call| self.fate(call))
    }
}

impl CrashPoints {
    /// Creates the cases of a harness. The first has call 0.
    pub fn new(harness: impl Into<String>, ways: impl IntoIterator<Item = Way>) -> Self {
        let ways = ways.into_iter().collect::<Vec<_>>().into_iter();
        Self { harness: harness.into(), ways, point: None, is_reached: false, cases: 0, calls: 0 }
    }

    /// Returns the next case: the next call, or call 0 in the next way if the last run did not make its call.
    pub fn next_case(&mut self) -> Option<CrashPoint> {
        let further = self.point.filter(|_| self.is_reached).map(|point| CrashPoint { call: point.call + 1, ..point });
        self.point = further.or_else(|| Some(CrashPoint { call: 0, way: self.ways.next()? }));
        self.is_reached = false;
        self.point
    }

    /// Says that the last run made its call.
    pub fn reached(&mut self) {
        self.is_reached = true;
        self.calls = self.calls.max(self.point.map_or(0, |point| point.call + 1));
    }

    /// Says the same, and that something failed: notes the case under this name.
    ///
    /// # Errors
    /// The list of cases cannot be written.
    pub fn failed(&mut self, name: impl Display) -> Result<()> {
        self.reached();
        self.cases += 1;
        self.point.map_or(Ok(()), |point| note_case(&self.harness, name, point.call))
    }

    /// Returns how many cases failed.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Returns the most calls that a run made.
    pub fn calls(&self) -> usize {
        self.calls
    }
}

/// Notes a case in the file that `CRASH_CASES` names: the harness, the fate of the call, and the call's number. Without that
/// variable it does nothing. A harness notes only a case whose call was made.
///
/// # Errors
/// The file cannot be written.
pub fn note_case(harness: &str, fate: impl Display, call: usize) -> Result<()> {
    let Some(path) = Lookup::environment().text("CRASH_CASES") else { return Ok(()) };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write for each line: other tests, also of other processes, write to the same file.
    let line = format!("{harness}\t{fate}\t{call}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes())).with_context(|| format!("cannot write {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_goes_on_until_a_run_does_not_make_its_call() {
        let ways = [Way::once(Fate::KillBefore), Way::lasting(Fate::LoseReply), Way::once(Fate::LoseRequest)];
        let mut points = CrashPoints::new("test", ways);
        let mut seen = Vec::new();
        // Runs make two calls, and none if a reply is lost.
        while let Some(CrashPoint { call, way }) = points.next_case() {
            seen.push((call, way));
            match way.fate {
                Fate::LoseReply => {}
                _ if call < 2 => points.reached(),
                _ => {}
            }
        }
        let [kill, lose, last] = ways;
        assert_eq!(seen, [(0, kill), (1, kill), (2, kill), (0, lose), (0, last), (1, last), (2, last)]);
        assert_eq!((points.calls(), points.cases()), (2, 0));
    }

    #[test]
    fn a_way_says_the_fate_of_the_call_and_of_those_after_it() {
        let (lost, unheard) = (Fate::LoseReply, Fate::LoseRequest);
        for (way, fates) in [
            (Way::once(lost), [Fate::Pass, lost, Fate::Pass]),
            (Way::lasting(lost), [Fate::Pass, lost, lost]),
            (Way::once(lost).then(unheard), [Fate::Pass, lost, unheard]),
        ] {
            let point = CrashPoint { call: 1, way };
            assert_eq!([0, 1, 2].map(|number| point.fate_at(number)), fates, "{point:?}");
            assert_eq!(way.lasts(), fates[2] != Fate::Pass, "{way:?}");
        }
    }
}
