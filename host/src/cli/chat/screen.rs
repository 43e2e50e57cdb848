//! The terminal above the prompt: whole lines, and one line that says what goes on.
//!
//! That line is a part of the prompt, so that the editor, which knows where everything stands, draws it with the line that
//! is being typed and removes both when something is printed above. Nothing else ever moves the cursor.

use super::markdown::WIDTH;
use super::talk::Activity;
use crate::cli::show::{Paint, backstop, clip, columns, elapsed, printable_line};
use rustyline::ExternalPrinter;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Between two drawings: at most ten a second, also where much happens, so that a slow line keeps up.
const PAUSE: Duration = Duration::from_millis(100);

/// Maximum wait at the end for output that is not drawn yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// Milliseconds between two frames of the spinner.
pub(super) const FRAME_MS: u64 = 250;

const FRAMES: [&str; 4] = ["⠋", "⠹", "⠼", "⠧"];

/// Redraws the prompt: moves a line up and one down again, and prints nothing above it.
const AGAIN: &str = "\x1b[A\n";

/// The line with the current activity. The editor reads it while it draws.
#[derive(Debug, Clone, Default)]
pub(super) struct StatusLine(Arc<Mutex<String>>);

impl StatusLine {
    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is another one now.
    fn set(&self, text: String) -> bool {
        let mut status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *status != text;
        *status = text;
        changed
    }
}

enum Draw {
    Text(String),
    Status,
}

/// The printer for text above the prompt.
#[derive(Debug)]
pub(super) struct Screen {
    draw: Sender<Draw>,
    drawn: Receiver<()>,
    status: StatusLine,
    paint: Paint,
}

impl Screen {
    /// Prints with the editor's printer, from a thread: the editor may keep it waiting while it shows a list.
    pub(super) fn new(printer: impl ExternalPrinter + Send + 'static, status: StatusLine, paint: Paint) -> Screen {
        let (draw, draws) = channel();
        let (done, drawn) = channel();
        thread::spawn(move || {
            work(printer, &draws);
            let _ = done.send(());
        });
        Screen { draw, drawn, status, paint }
    }

    /// Prints whole lines.
    pub(super) fn print(&self, lines: &str) {
        let end = if lines.ends_with('\n') { "" } else { "\n" };
        let _ = self.draw.send(Draw::Text(format!("{}{end}", backstop(lines))));
    }

    /// Says what goes on, in at most so many columns. Where that is the same as before, nothing is drawn.
    pub(super) fn busy(&self, busy: Option<&Activity>, now_ms: i64, width: usize) {
        let text = busy.map(|busy| line(self.paint, busy, now_ms, width)).unwrap_or_default();
        if self.status.set(text) {
            let _ = self.draw.send(Draw::Status);
        }
    }

    /// Waits until everything stands there.
    pub(super) fn end(self) {
        drop(self.draw);
        let _ = self.drawn.recv_timeout(PATIENCE);
    }
}

fn work(mut printer: impl ExternalPrinter, draws: &Receiver<Draw>) {
    while let Ok(first) = draws.recv() {
        let mut text = String::new();
        add(&mut text, first);
        draws.try_iter().for_each(|draw| add(&mut text, draw));
        let printed = printer.print(if text.is_empty() { AGAIN.to_owned() } else { text });
        if printed.is_err() {
            return;
        }
        // Later lines are drawn at once.
        thread::sleep(PAUSE);
    }
}

fn add(text: &mut String, draw: Draw) {
    if let Draw::Text(more) = draw {
        text.push_str(&more);
    }
}

/// "⠹ 1/3 data file=weather.csv · 3.2 s".
fn line(paint: Paint, busy: &Activity, now_ms: i64, width: usize) -> String {
    let ms = u64::try_from(now_ms - busy.since_ms).unwrap_or(0);
    let frame = FRAMES[usize::try_from(ms / FRAME_MS).unwrap_or(0) % FRAMES.len()];
    let elapsed = elapsed(ms);
    // The last column stays free: some terminals break the line behind it.
    let room = width.saturating_sub(columns(frame) + columns(&elapsed) + 5);
    if room == 0 {
        return String::new();
    }
    let what = printable_line(&busy.what);
    format!("{} {} {}", paint.with("36", frame), paint.dim(&clip(&what, room)), paint.dim(&format!("· {elapsed}")))
}

/// Columns of the terminal.
pub(super) fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(WIDTH, |size| match size.ws_col {
        0 => WIDTH,
        columns => usize::from(columns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(what: &str) -> Activity {
        Activity { what: what.to_owned(), since_ms: 1_000 }
    }

    #[test]
    fn the_line_says_what_goes_on_and_for_how_long() {
        let line = |ms, width| line(Paint::never(), &busy("1/3 data\tfile=weather.csv"), ms, width);
        assert_eq!(line(1_000, 80), "⠋ 1/3 data file=weather.csv · 0.0 s");
        assert_eq!(line(126_300, 80), "⠹ 1/3 data file=weather.csv · 2 min 5.3 s");
        assert_eq!(line(1_000, 16), "⠋ 1/3 … · 0.0 s");
        assert_eq!(line(0, 5), "", "a clock that was set back, a terminal without room");
    }

    /// Sends printed texts to the test.
    struct Paper(Sender<String>);

    impl ExternalPrinter for Paper {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            let _ = self.0.send(text);
            Ok(())
        }
    }

    #[test]
    fn what_did_not_change_is_not_drawn() {
        let (paper, printed) = channel();
        let screen = Screen::new(Paper(paper), StatusLine::default(), Paint::never());
        screen.busy(None, 0, 80);
        for _ in 0..10 {
            screen.busy(Some(&busy("thinking")), 1_000, 80);
        }
        screen.print("one");
        screen.print("two\n");
        screen.end();
        let printed: String = printed.iter().collect();
        assert_eq!(printed.replace(AGAIN, ""), "one\ntwo\n");
        assert!(printed.matches(AGAIN).count() <= 1, "{printed:?}");
    }
}
