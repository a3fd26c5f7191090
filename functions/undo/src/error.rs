//! The reasons why an invocation of `undo` fails.

use payments_files::UndoFileError;
use payments_model::undo::{MAX_FILE_IDS, RequestError};
use payments_store::StoreError;
use payments_work::{Halt, NoConsent};

/// The reason why an invocation failed. Completed work stays, and the same request can be repeated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Two persons did not agree on the plan.
    #[error(transparent)]
    Consent(#[from] NoConsent),
    /// DynamoDB rejected a call, or kept failing.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage rejected a call or did not answer it.
    #[error("the storage of plans and results rejected a call or did not answer it")]
    Files(#[from] object_store::Error),
    /// A file cannot be read, or was changed.
    #[error("the file {0} cannot be used; plan again")]
    Damaged(String, #[source] UndoFileError),
    /// A file cannot be written.
    #[error("a file cannot be written")]
    Writing(#[from] std::io::Error),
    /// A list cannot be written.
    #[error("the list of claimed payments cannot be written")]
    List(#[from] csv::Error),
    /// The deadline came.
    #[error("the run ended before it was done; repeat it, or select fewer payments")]
    OutOfTime,
    /// The plan has another hash than the approved one.
    #[error(
        "the plan {0} of the undo {1} does not have the approved SHA-256; compare them, and approve the plan that exists"
    )]
    OtherPlan(u32, String),
    /// The plan does not exist.
    #[error("the undo {1} has no plan {0}; plan it first")]
    NoPlan(u32, String),
    /// The file of ids does not exist.
    #[error("the file {0} does not exist; put the payments' ids there, one a line, and plan again")]
    NoIds(String),
    /// The file of ids is too long.
    #[error("the file {0} has more than {MAX_FILE_IDS} ids; split it, and plan each part")]
    TooManyIds(String),
    /// A line of a file is not an id.
    #[error("line {1} of the file {0} is not a payment's id; correct it, and plan again")]
    NotId(String, usize),
    /// The undo has too many plans.
    #[error("the undo {0} has {1} plans, and can have no more; give the next plan a new id")]
    TooManyPlans(String, usize),
    /// The plan may lack selected payments, and the request does not accept that.
    #[error(
        "the plan {0} of the undo {1} may lack payments: {2}; plan again once the log is complete, select payments otherwise, or run \
         it with \"acceptInexact\""
    )]
    Inexact(u32, String, String),
    /// Other changes were faster each time.
    #[error("other changes were faster each time; repeat the request")]
    Overtaken,
    /// The switch has as many holds as undos may begin.
    #[error(
        "the switch has {0} holds, and an undo begins no more, so nothing is planned; release a hold whose undo is done, in the console's \
         view Bank, and plan again"
    )]
    Holds(usize),
}

impl From<Halt<StoreError>> for UndoError {
    fn from(halt: Halt<StoreError>) -> Self {
        match halt {
            Halt::OutOfTime => Self::OutOfTime,
            Halt::GivenUp(error) | Halt::Broken(error) => Self::Store(error),
        }
    }
}
