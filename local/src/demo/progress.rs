//! How the day goes, shown while it does.

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bars on standard error, or nothing.
#[derive(Debug)]
pub struct Progress {
    clock: ProgressBar,
    put_in: ProgressBar,
    pending: ProgressBar,
    settled: ProgressBar,
}

impl Progress {
    /// Bars for so many payments; they show only where standard error is a terminal.
    ///
    /// # Errors
    /// Never in practice: the templates are well-formed.
    pub fn on_stderr(payments: u64) -> Result<Self> {
        Self::on(ProgressDrawTarget::stderr(), payments)
    }

    /// Nothing to be seen.
    ///
    /// # Errors
    /// Never in practice.
    pub fn hidden() -> Result<Self> {
        Self::on(ProgressDrawTarget::hidden(), 0)
    }

    fn on(target: ProgressDrawTarget, payments: u64) -> Result<Self> {
        let bars = MultiProgress::with_draw_target(target);
        let clock = bars.add(ProgressBar::new_spinner().with_style(ProgressStyle::with_template("  {msg}")?));
        let style = ProgressStyle::with_template("  {prefix:8} {bar:40.green} {human_pos:>9} of {human_len}")?;
        let style = style.progress_chars("━╸─");
        let bar = |name: &'static str| bars.add(ProgressBar::new(payments).with_style(style.clone()).with_prefix(name));
        Ok(Self { clock, put_in: bar("put in"), pending: bar("pending"), settled: bar("settled") })
    }

    /// Shows where the day is.
    pub(super) fn show(&self, time: String, put_in: u64, pending: u64, settled: u64) {
        self.clock.set_message(time);
        self.put_in.set_position(put_in);
        self.pending.set_position(pending);
        self.settled.set_position(settled);
    }

    /// Shows what is done after the day.
    pub(super) fn say(&self, what: &'static str) {
        self.clock.set_message(what);
    }

    /// Takes everything off the screen.
    pub(super) fn clear(&self) {
        for bar in [&self.clock, &self.put_in, &self.pending, &self.settled] {
            bar.finish_and_clear();
        }
    }
}
