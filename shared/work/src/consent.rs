//! Consent to a run: two persons agreed on exactly this plan, or somebody gives a ticket.

use std::error::Error;
use std::fmt;

use payments_boot::Deadline;
use payments_model::second::Consent;
use payments_model::{ActionName, UtcSecond};
use payments_store::{Asked, NotApproved, StoreError};

use crate::halt::Halt;
use crate::retried::retried;

/// The reason why a run does not begin.
#[derive(Debug)]
pub enum NoConsent {
    /// Two persons did not agree on its plan.
    NotApproved(NotApproved),
    /// The intent or the decision cannot be read now.
    Unread(Option<StoreError>),
}

impl fmt::Display for NoConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApproved(why) => {
                write!(
                    f,
                    "nothing is done: {why}; or send \"ticket\" instead of \"approval\", which sets off FourEyesBypassed"
                )
            }
            Self::Unread(_) => f.write_str("the approval cannot be read now, and nothing is done; repeat the call"),
        }
    }
}

impl Error for NoConsent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotApproved(_) => None,
            Self::Unread(error) => error.as_ref().map(|error| error as _),
        }
    }
}

/// Checks an approval by the intent and the decision, which [`Store::agreement`](payments_store::Store::agreement) reads. A ticket is a consent by itself, and no consent
/// is one to what one person may do: callers judge that.
///
/// # Errors
/// [`NoConsent`] if nobody agreed, or that is not known.
pub async fn require_consent(
    consent: &Consent,
    (now, deadline): (UtcSecond, &Deadline),
    mut read: impl AsyncFnMut(ActionName) -> Result<Option<Asked>, StoreError>,
) -> Result<(), NoConsent> {
    let Consent::Approved(name, plan) = consent else { return Ok(()) };
    let asked = retried(deadline, async || read(*name).await).await.map_err(|halt| match halt {
        Halt::OutOfTime => NoConsent::Unread(None),
        Halt::GivenUp(error) | Halt::Broken(error) => NoConsent::Unread(Some(error)),
    })?;
    let agreed = asked.ok_or(NotApproved::NotAsked).and_then(|asked| asked.agreed(plan, now));
    agreed.map_err(NoConsent::NotApproved)
}
