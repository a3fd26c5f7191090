//! Progress bars on standard error, for the demo and the load generator.

use std::borrow::Cow;

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A message and bars under it, or nothing.
#[derive(Debug)]
pub struct Progress {
    bars: MultiProgress,
    message: ProgressBar,
    counts: Vec<ProgressBar>,
}

impl Progress {
    /// Creates a bar of so many payments for each name. The bars are visible only where standard error is a terminal.
    pub fn on_stderr(payments: u64, names: &[&'static str]) -> Result<Self> {
        Self::on(ProgressDrawTarget::stderr(), payments, names)
    }

    /// Creates bars that are not visible.
    pub fn hidden() -> Result<Self> {
        Self::on(ProgressDrawTarget::hidden(), 0, &[])
    }

    fn on(target: ProgressDrawTarget, payments: u64, names: &[&'static str]) -> Result<Self> {
        let bars = MultiProgress::with_draw_target(target);
        let message = bars.add(ProgressBar::new_spinner().with_style(ProgressStyle::with_template("  {msg}")?));
        let style = ProgressStyle::with_template("  {prefix:8} {bar:40.green} {human_pos:>9} of {human_len}")?;
        let style = style.progress_chars("━╸─");
        let bar =
            |name: &&'static str| bars.add(ProgressBar::new(payments).with_style(style.clone()).with_prefix(*name));
        let counts = names.iter().map(bar).collect();
        Ok(Self { bars, message, counts })
    }

    /// Whether the bars are visible.
    pub fn is_visible(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// Shows how far each bar is.
    pub fn show(&self, counts: &[u64]) {
        self.counts.iter().zip(counts).for_each(|(bar, count)| bar.set_position(*count));
    }

    /// Shows a message.
    pub fn say(&self, message: impl Into<Cow<'static, str>>) {
        self.message.set_message(message);
    }

    /// Takes everything off the screen.
    pub fn clear(&self) {
        self.message.finish_and_clear();
        self.counts.iter().for_each(ProgressBar::finish_and_clear);
    }
}
