//! Progress output: lines on standard error, and a spinner on a terminal.

pub(super) mod charts;
mod harmless;
mod paint;
pub(super) mod told;
mod width;
mod written;

pub(super) use self::harmless::{Output, backstop, is_active, printable, printable_line};
pub(super) use self::paint::{Paint, is_dumb};
pub(super) use self::width::{clip, columns, wrap, wrap_to_terminal};
pub(super) use self::written::WrittenText;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use kiso_sandbox::skill::Observer;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Interval of the spinner's frames; shorter activities show no spinner.
const TICK: Duration = Duration::from_millis(120);

/// Standard error, shared by all progress output of one command.
#[derive(Debug)]
pub(super) struct Show {
    /// Prints nothing, with `--json`.
    quiet: bool,
    terminal: bool,
    paint: Paint,
    spinner: Mutex<Option<ProgressBar>>,
    /// Whether the last line is unfinished.
    unended: AtomicBool,
}

impl Show {
    pub(super) fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        Self {
            quiet,
            terminal,
            paint: Paint::new(terminal),
            spinner: Mutex::new(None),
            unended: AtomicBool::new(false),
        }
    }

    /// Returns a display for standard output without a spinner.
    pub(super) fn stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { terminal, paint: Paint::new(terminal), ..Self::new(true) }
    }

    /// Returns the colours for its output.
    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    /// Prints a line, above the spinner if there is one.
    pub(super) fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        self.end_line();
        match &*self.lock() {
            Some(spinner) => spinner.suspend(|| errln!("{text}")),
            None => errln!("{text}"),
        }
    }

    /// Prints a part of a text, which continues with the next part and ends at the next line.
    pub(super) fn piece(&self, text: &str) {
        if self.quiet || text.is_empty() {
            return;
        }
        self.rest();
        err!("{text}");
        self.unended.store(!text.ends_with('\n'), Ordering::Relaxed);
    }

    fn end_line(&self) {
        if self.unended.swap(false, Ordering::Relaxed) {
            errln!();
        }
    }

    /// Shows an activity until [`Self::rest`]. Draws nothing without a terminal.
    #[expect(clippy::expect_used, reason = "the template is right")]
    pub(super) fn busy(&self, what: &str) {
        if !self.terminal {
            return;
        }
        // The spinner would overwrite an unfinished line.
        self.end_line();
        let mut spinner = self.lock();
        let bar = spinner.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner:.cyan} {msg} {tenths:.dim}")
                    .expect("the template is right")
                    .with_key("tenths", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                        let millis = u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX);
                        let _ = out.write_str(&elapsed(millis));
                    }),
            );
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_message(printable_line(what));
    }

    /// Removes the spinner.
    pub(super) fn rest(&self) {
        if let Some(spinner) = self.lock().take() {
            spinner.finish_and_clear();
        }
    }

    /// Returns text that is dim on a terminal.
    pub(super) fn dim(&self, text: &str) -> String {
        self.paint.dim(text)
    }

    pub(super) fn green(&self, text: &str) -> String {
        self.paint.green(text)
    }

    pub(super) fn red(&self, text: &str) -> String {
        self.paint.red(text)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.spinner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Show {
    fn compiling(&self, skill: &str) {
        if self.terminal {
            self.busy(&format!("compiling {skill} (once)"));
        } else {
            self.line(&format!("compiling {} (once)", printable_line(skill)));
        }
    }

    fn still_compiling(&self, skill: &str, elapsed: Duration) {
        // On a terminal, the spinner shows the time already.
        if !self.terminal {
            self.line(&format!("still compiling {skill} ({} s)", elapsed.as_secs()));
        }
    }

    fn progress(&self, skill: &str, done: Option<f64>, note: &str) {
        let share = done.map(|d| format!(" {:.0} %", d * 100.0)).unwrap_or_default();
        self.busy(&format!("{skill}:{share} {note}"));
    }
}

/// Formats an elapsed time in tenths of a second: "3.2 s", "2 min 5.0 s".
pub(super) fn elapsed(millis: u64) -> String {
    let (s, tenths) = (millis / 1_000, millis % 1_000 / 100);
    if s < 60 { format!("{s}.{tenths} s") } else { format!("{} min {}.{tenths} s", s / 60, s % 60) }
}

/// Formats a duration: "340 ms", "1.2 s".
pub(super) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}
