//! The preview of an action.

use maud::Markup;
use payments_http::Problem;

use crate::actions::Action;
use crate::function::Console;

/// The effect of an action, before it is performed.
pub(super) struct Preview {
    /// The things that the action will change.
    pub(super) shown: Markup,
    /// The buttons; `None` if there is nothing to do.
    pub(super) buttons: Option<Buttons>,
}

/// The two buttons below a preview.
pub(super) struct Buttons {
    /// The text of the one that acts: a verb and a number.
    pub(super) act: String,
    /// The text of the one that does nothing: `Keep it`.
    pub(super) keep: &'static str,
    /// Whether nothing takes the action back.
    pub(super) is_final: bool,
}

/// A number of things, in words.
pub(super) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

impl Console {
    /// Shows the effect of an action. Also returns the action as it was shown.
    pub(super) async fn preview(&self, asked: &Action) -> Result<(Preview, Action), Problem> {
        Ok(match asked {
            // Payments that the preview leaves as they are stay so, whatever happens to them meanwhile.
            Action::Cancel(cancel) => {
                let (preview, can) = self.preview_cancel(&cancel.payments).await?;
                (preview, Action::Cancel(can))
            }
            Action::SendAgain(again) => {
                let (preview, seen) = self.preview_send_again(again).await?;
                (preview, Action::SendAgain(seen))
            }
            Action::CloseFinding(close) => {
                (self.preview_close_finding(close).await?, Action::CloseFinding(close.without_reason()))
            }
            Action::Endpoint(target, deed) => {
                let (preview, target, deed) = self.preview_endpoint(target, deed).await?;
                (preview, Action::Endpoint(target, deed))
            }
            Action::MoveLetters(letters) => {
                let (preview, seen) = self.preview_letters(letters).await?;
                (preview, Action::MoveLetters(seen))
            }
            Action::Start(run) => {
                let (preview, run) = self.preview_run(run).await?;
                (preview, Action::Start(run))
            }
            Action::Switch(turn) => {
                let (preview, turn) = self.preview_switch(turn).await?;
                (preview, Action::Switch(turn))
            }
            Action::ReleaseDay(release) => {
                let (preview, release) = self.preview_release_day(release).await?;
                (preview, Action::ReleaseDay(release))
            }
            Action::Undo(undoing) => {
                let (preview, undoing) = self.preview_undo(undoing).await?;
                (preview, Action::Undo(undoing))
            }
        })
    }
}
