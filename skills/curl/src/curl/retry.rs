//! Which transfers are made again, and when.

use super::failed::Failed;
use super::settings::Options;
use std::time::{Duration, Instant};

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(600);

/// The attempts of one transfer.
pub struct Retries {
    left: u32,
    began: Instant,
    pause: Duration,
    pub made: u32,
}

/// The name of an error that is worth another attempt.
fn problem(options: &Options, failed: &Failed, status: u16, is_denied: bool) -> Option<&'static str> {
    match (failed.code, status) {
        _ if is_denied => None,
        (28, _) => Some("timeout"),
        (6, _) => Some("could not resolve host"),
        (7, _) if options.retry_refused || options.retry_all => Some("connection refused"),
        (0 | 22, 408 | 429 | 500 | 502 | 503 | 504) => Some("HTTP error"),
        (0, _) => None,
        // Another attempt would fail in the same way.
        (1 | 2 | 3 | 5 | 23 | 26 | 63, _) => None,
        _ if options.retry_all => Some("(retrying all errors)"),
        _ => None,
    }
}

impl Retries {
    pub fn new(options: &Options) -> Self {
        Self { left: options.retries, began: Instant::now(), pause: Duration::from_secs(1), made: 0 }
    }

    /// How long to wait before the next attempt, and the line that says so; nothing if this one was the last.
    pub fn next(
        &mut self,
        options: &Options,
        failed: &Failed,
        status: u16,
        is_denied: bool,
        retry_after: Option<u64>,
    ) -> Option<(Duration, String)> {
        let problem = problem(options, failed, status, is_denied)?;
        if self.left == 0 {
            return None;
        }
        let own = match options.retry_delay.is_zero() {
            true => self.pause,
            false => options.retry_delay,
        };
        let wait = retry_after.map_or(own, Duration::from_secs).min(LONGEST);
        if options.retry_max_time.is_some_and(|most| self.began.elapsed() + wait > most) {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        let (seconds, left) = (wait.as_secs(), self.left);
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let ending = if left == 1 { "y" } else { "ies" };
        self.left -= 1;
        self.made += 1;
        let said = format!(
            "Warning: Problem: {problem}. Will retry in {seconds} second{}. {left} retr{ending} left.\n",
            plural(seconds)
        );
        Some((wait, said))
    }
}

#[cfg(test)]
mod tests {
    use super::super::option::Line;
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let parsed = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Line::parse(&words).unwrap().groups.remove(0)
        };
        let plain = parsed(&["--retry", "2", "h"]);
        let all = parsed(&["--retry", "2", "--retry-all-errors", "--retry-delay", "3", "h"]);
        for (options, code, status, expected) in [
            (&plain, 0, 503, true),
            (&plain, 22, 429, true),
            (&plain, 22, 404, false),
            (&plain, 0, 200, false),
            (&plain, 28, 0, true),
            (&plain, 7, 0, false),
            (&plain, 52, 0, false),
            (&all, 52, 0, true),
            (&all, 22, 404, true),
            (&all, 7, 0, true),
            (&all, 3, 0, false),
        ] {
            let next = Retries::new(options).next(options, &Failed::new(code, ""), status, false, None);
            assert_eq!(next.is_some(), expected, "{code} {status}");
        }
        let mut retries = Retries::new(&all);
        let mut next = |after| retries.next(&all, &Failed::new(28, ""), 0, false, after);
        let said = "Warning: Problem: timeout. Will retry in 3 seconds. 2 retries left.\n";
        assert_eq!(next(None), Some((Duration::from_secs(3), said.to_owned())));
        assert_eq!(next(Some(9)).map(|(wait, _)| wait), Some(Duration::from_secs(9)));
        assert_eq!(next(None), None);
        assert_eq!(Retries::new(&all).next(&all, &Failed::new(7, ""), 0, true, None), None);
        let short = parsed(&["--retry", "9", "--retry-max-time", "1", "--retry-delay", "5", "h"]);
        assert_eq!(Retries::new(&short).next(&short, &Failed::new(28, ""), 0, false, None), None);
    }
}
