//! What a restore took back, brought back: from the log or the journal, the long-term table and the published reports.
//!
//! | module | holds |
//! |---|---|
//! | `known` | what the events say of each payment |
//! | `source` | where the events are |
//! | `reports` | what was reported since |
//! | `except` | what is left out |
//! | `decide` | what is to be done with a payment |
//! | `run` | the walk through all of them |
//! | `counts` | the counters |
//! | `details` | details without a head |
//! | `outcome` | what is told |

mod counts;
mod decide;
mod details;
mod except;
mod known;
mod outcome;
mod redates;
mod reports;
mod run;
mod source;

pub use except::{Except, ExceptError};
pub use outcome::{Change, Finding, Line, Outcome};
pub use run::{Rebuild, Told};
pub use source::Source;
