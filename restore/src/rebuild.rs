//! Recovery of the changes that a restore undid, from log or journal, long-term table and published reports.
//!
//! | module | holds |
//! |---|---|
//! | `known` | the events of each payment |
//! | `source` | the source of the events |
//! | `reports` | the payments that were reported since |
//! | `except` | the events that are left out |
//! | `decide` | the decision about a payment |
//! | `found` | the heads and details of some payments |
//! | `run` | the walk through all payments |
//! | `counts` | the counters |
//! | `contradictions` | findings of results that contradict their payments |
//! | `details` | details without a head |
//! | `outcome` | the changes, findings and totals |

mod contradictions;
mod counts;
mod decide;
mod details;
mod except;
mod found;
mod known;
mod outcome;
mod redates;
mod reports;
mod run;
mod source;

pub use except::{Except, ExceptError};
pub use outcome::{Change, Finding, Line, Outcome, Told};
pub use run::Rebuild;
pub use source::Source;
