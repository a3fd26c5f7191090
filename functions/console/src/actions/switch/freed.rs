//! The numbers of a resume or a release: the payments that it frees, up to which two persons agree to it.

use payments_http::{Form, Problem, invalid_field};
use payments_model::second::ALONE;

use crate::html::grouped;

/// The longest number, in bytes.
const MAX_NUMBER_BYTES: usize = 20;

/// The payments that a turn of the switch frees, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Scheduled payments that the sweep may then claim.
    pub(crate) claims: u64,
    /// Pending payments, whose skipped requests a redrive then sends. A release frees none.
    pub(crate) pending: u64,
}

/// The state that a preview showed: the version of the switch, and what the turn frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    pub(crate) freed: Freed,
}

impl Seen {
    /// Reads the fields. A preview has none.
    pub(crate) fn read(form: &mut Form) -> Result<Option<Self>, Problem> {
        let (version, claims) = (number(form, "version")?, number(form, "claims")?);
        let pending = number(form, "pending")?.unwrap_or(0);
        Ok(version.zip(claims).map(|(version, claims)| Self { version, freed: Freed { claims, pending } }))
    }

    /// The fields from which [`Self::read`] reads the same again.
    pub(crate) fn fields(self) -> Vec<(&'static str, String)> {
        let Freed { claims, pending } = self.freed;
        let mut fields = vec![("version", self.version.to_string()), ("claims", claims.to_string())];
        fields.extend((pending > 0).then(|| ("pending", pending.to_string())));
        fields
    }
}

impl Freed {
    /// In words.
    pub(crate) fn named(self) -> String {
        format!("{} to claim, {} pending", grouped(self.claims.into()), grouped(self.pending.into()))
    }

    /// Whether it is more than was shown, by more than comes while two persons decide: what one person may free, or a hundredth.
    pub(crate) fn is_beyond(self, shown: Self) -> bool {
        let is_more = |now: u64, shown: u64| now > shown.saturating_add(ALONE.max(shown / 100));
        is_more(self.claims, shown.claims) || is_more(self.pending, shown.pending)
    }
}

/// The numbers of a turn now, for the second person.
pub(crate) struct Now {
    /// In words.
    pub(crate) named: String,
    /// Whether they are more than the first person saw.
    pub(crate) is_beyond: bool,
}

fn number(form: &mut Form, field: &'static str) -> Result<Option<u64>, Problem> {
    let text = form.take(field, MAX_NUMBER_BYTES)?;
    let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
    parsed.map_err(|_| invalid_field(field, &"it has to be the number that the preview showed"))
}
