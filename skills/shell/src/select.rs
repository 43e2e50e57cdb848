//! `select`: a menu on standard error, and the body for each answer.

use brush_parser::ast::Word;

use crate::expand::Env;
use crate::program::List;
use crate::shell::{Outcome, Shell};

/// One line of an answer.
const LONGEST: u32 = 1 << 20;

impl Shell {
    /// Ends with 1 when there are no more answers, as in bash.
    pub fn select(&mut self, name: &str, words: Option<&[Word]>, body: &List) -> Outcome {
        let values = match self.values(words) {
            Ok(values) => values,
            Err(stop) => return self.stopped(stop),
        };
        if values.is_empty() {
            return Ok(0);
        }
        let mut code = 0;
        let mut shows = true;
        loop {
            let menu = if shows { menu(&values) } else { String::new() };
            let prompt = self.scalar("PS3").unwrap_or_else(|| "#? ".to_owned());
            let _ = self.table.write(2, (menu + &prompt).as_bytes());
            let answer = self.table.read_line(0, LONGEST).unwrap_or_default();
            if answer.is_empty() {
                self.print("select", b"\n")?;
                return Ok(1);
            }
            let answer = String::from_utf8_lossy(&answer);
            let answer = answer.trim_matches([' ', '\t', '\n']);
            // An empty answer asks for the menu.
            shows = answer.is_empty();
            if shows {
                continue;
            }
            let chosen = answer.parse::<usize>().ok().and_then(|number| values.get(number.checked_sub(1)?));
            let set = self.set("REPLY", answer.to_owned());
            if let Err(stop) = set.and_then(|()| self.set(name, chosen.cloned().unwrap_or_default())) {
                return self.stopped(stop);
            }
            if !self.turn(body, &mut code)? {
                return Ok(code);
            }
        }
    }
}

fn menu(values: &[String]) -> String {
    let width = values.len().to_string().len();
    values.iter().zip(1..).map(|(value, number)| format!("{number:>width$}) {value}\n")).collect()
}
