//! The operator's screen: progress bars, and how a command ended.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

/// Says how the steps are done, if they were only shown.
#[expect(clippy::unnecessary_wraps, reason = "the end of main")]
pub(crate) fn shown(is_done: bool, is_apply: bool) -> Result<()> {
    match (is_done, is_apply) {
        (true, _) => println!("Nothing is left to do."),
        (false, false) => println!("Nothing was changed. Give --apply to do this."),
        (false, true) => println!("Run this again a quarter of an hour later, until nothing is left to do."),
    }
    Ok(())
}

/// A progress bar.
pub(crate) fn bar() -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("  {msg} {bar:40.green} {human_pos:>9} of {human_len}")?;
    Ok(ProgressBar::new(0).with_style(style))
}

/// Shows progress.
pub(crate) fn show(bar: &ProgressBar, what: &str, done: u64, all: u64) {
    bar.set_message(what.to_owned());
    bar.set_length(all);
    bar.set_position(done);
}
