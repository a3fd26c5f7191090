//! Progress bars on standard error, for the demo and the load generator; lines instead where it is not a terminal.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of counted things.
const COUNTED: &str = "  {prefix:8} {bar:40.green} {human_pos:>9} of {human_len}";

/// A bar of a whole.
const WHOLE: &str = "  {bar:40.green} {percent:>3}%  {elapsed}";

/// The time between two drawings of the elapsed time, while nothing else changes.
const TICK: Duration = Duration::from_secs(1);

/// Writes a line.
type Write = dyn Fn(&str) + Send + Sync;

/// A message and bars under it, or lines, or nothing.
pub struct Progress {
    bars: MultiProgress,
    message: ProgressBar,
    counts: Vec<ProgressBar>,
    write: Option<Box<Write>>,
}

impl Progress {
    /// Creates a bar of so many payments for each name. The bars are visible only where standard error is a terminal.
    pub fn on_stderr(payments: u64, names: &[&'static str]) -> Result<Self> {
        Self::on(ProgressDrawTarget::stderr(), COUNTED, payments, names)
    }

    /// Creates one bar of so many steps, with the elapsed time. Where standard error is not a terminal, it has lines instead.
    pub fn whole_on_stderr(steps: u64) -> Result<Self> {
        let progress = Self::on(ProgressDrawTarget::stderr(), WHOLE, steps, &[""])?;
        if progress.bars.is_hidden() {
            return Self::in_lines(|line| eprintln!("{line}"));
        }
        progress.counts.iter().for_each(|bar| bar.enable_steady_tick(TICK));
        Ok(progress)
    }

    /// Creates bars that are not visible.
    pub fn hidden() -> Result<Self> {
        Self::on(ProgressDrawTarget::hidden(), COUNTED, 0, &[])
    }

    /// Writes lines instead of bars.
    pub fn in_lines(write: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        Ok(Self { write: Some(Box::new(write)), ..Self::hidden()? })
    }

    fn on(target: ProgressDrawTarget, style: &str, steps: u64, names: &[&'static str]) -> Result<Self> {
        let bars = MultiProgress::with_draw_target(target);
        let message = bars.add(ProgressBar::new_spinner().with_style(ProgressStyle::with_template("  {msg}")?));
        let style = ProgressStyle::with_template(style)?.progress_chars("━╸─");
        let bar = |name: &&'static str| bars.add(ProgressBar::new(steps).with_style(style.clone()).with_prefix(*name));
        let counts = names.iter().map(bar).collect();
        Ok(Self { bars, message, counts, write: None })
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

    /// Writes a line, if there are lines instead of bars.
    pub fn line(&self, line: &str) {
        if let Some(write) = &self.write {
            write(line);
        }
    }

    /// Takes everything off the screen.
    pub fn clear(&self) {
        self.message.finish_and_clear();
        self.counts.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("bars", &self.bars).finish_non_exhaustive()
    }
}
