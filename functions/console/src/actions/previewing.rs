//! The preview of each action, and the action as it was shown.

use payments_http::Problem;

use crate::actions::Action;
use crate::actions::preview::Preview;
use crate::function::Console;

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
