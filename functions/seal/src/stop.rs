//! The reason why the work on a date ends early.

use payments_model::causes;
use payments_store::StoreError;
use payments_work::Halt;

use crate::error::SealError;

/// The reason why the work on a date ends before nothing is left.
pub(crate) enum Stop {
    /// The next run continues.
    Later,
    Failed(SealError),
}

impl From<Halt<StoreError>> for Stop {
    fn from(halt: Halt<StoreError>) -> Self {
        match halt {
            Halt::OutOfTime => Self::Later,
            Halt::GivenUp(error) => {
                tracing::warn!(causes = ?causes(&error), "DynamoDB kept failing; the next run continues");
                Self::Later
            }
            Halt::Broken(error) => Self::Failed(error.into()),
        }
    }
}

impl<E: Into<SealError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Tells an item that cannot be read, which concerns one payment, from other failures.
pub(crate) fn readable<T>(read: Result<T, Halt<StoreError>>) -> Result<Result<T, String>, Stop> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(Halt::Broken(error @ StoreError::Unreadable { .. })) => Ok(Err(error.to_string())),
        Err(halt) => Err(halt.into()),
    }
}
