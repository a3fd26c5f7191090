//! How the load goes, shown while it does.

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bars on standard error, or nothing.
#[derive(Debug)]
pub struct Progress {
    bars: MultiProgress,
    says: ProgressBar,
    put_in: ProgressBar,
    counted: ProgressBar,
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
        let says = bars.add(ProgressBar::new_spinner().with_style(ProgressStyle::with_template("  {msg}")?));
        let style = ProgressStyle::with_template("  {prefix:8} {bar:40.green} {human_pos:>9} of {human_len}  {msg}")?;
        let style = style.progress_chars("━╸─");
        let bar = |name: &'static str| bars.add(ProgressBar::new(payments).with_style(style.clone()).with_prefix(name));
        let (put_in, counted) = (bar("put in"), bar("counted"));
        Ok(Self { bars, says, put_in, counted })
    }

    /// Whether anybody sees it.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// Shows how many payments were put in, at which rate, and how many the counters know of.
    pub(crate) fn show(&self, put_in: u64, rate: Option<u64>, counted: u64) {
        self.put_in.set_position(put_in);
        self.put_in.set_message(rate.map_or_else(String::new, |rate| format!("{rate}/s")));
        self.counted.set_position(counted);
    }

    /// Shows what is done now.
    pub(crate) fn say(&self, what: impl Into<std::borrow::Cow<'static, str>>) {
        self.says.set_message(what);
    }

    /// Takes everything off the screen.
    pub fn clear(&self) {
        for bar in [&self.says, &self.put_in, &self.counted] {
            bar.finish_and_clear();
        }
    }
}
