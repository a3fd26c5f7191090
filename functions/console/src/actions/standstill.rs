//! A pause or a stop, during which an operator cannot have requests sent.

use maud::{Markup, html};
use payments_http::{Problem, ProblemKind};
use payments_store::StoreError;

use crate::actions::preview::Preview;
use crate::config::Paused;
use crate::function::Console;
use crate::guides::{INCIDENT, PAUSE};

/// The reason why nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standstill {
    /// The stack's parameter.
    Paused,
    /// The switch.
    Stopped,
}

impl Standstill {
    fn why(self) -> &'static str {
        match self {
            Self::Paused => {
                "The parameter Paused is set, so this is not done. Resume with Paused=none, then preview it again."
            }
            Self::Stopped => {
                "All claims and sends are stopped, so this is not done. Bank says who stopped them: ask before you resume, then preview it again. If Bank cannot read the switch, see the alarm SwitchUnreadable."
            }
        }
    }

    /// The preview of an action that is not done.
    pub(super) fn preview(self) -> Preview {
        let guide = match self {
            Self::Paused => PAUSE,
            Self::Stopped => INCIDENT,
        };
        let shown: Markup = html! { div class="notice" { p { (self.why()) } p { "See " (guide) "." } } };
        Preview { shown, buttons: None }
    }

    /// The refusal of an action that is not done.
    pub(super) fn problem(self) -> Problem {
        Problem::new(ProblemKind::InvalidShape, self.why())
    }
}

impl Console {
    /// Returns the pause by the stack's parameter, if there is one.
    pub(super) fn pause_of_all(&self) -> Option<Standstill> {
        (self.config.paused != Paused::None).then_some(Standstill::Paused)
    }

    /// Returns why nothing is sent, if that is so: at most one read. A switch that cannot be read means stopped.
    pub(super) async fn standstill(&self) -> Result<Option<Standstill>, StoreError> {
        if let Some(paused) = self.pause_of_all() {
            return Ok(Some(paused));
        }
        let stopped = self.known_switch().await?.is_none_or(|switch| switch.stopped);
        Ok(stopped.then_some(Standstill::Stopped))
    }
}
