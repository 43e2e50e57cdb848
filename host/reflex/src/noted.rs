//! Statements: "remember that …", "I prefer …", "remind me of …". kiso itself stores the first two (lasting statements of a
//! message go into memory); this module only writes the reply.

use kiso_plan::cues::durable;

use crate::word::listed;

/// The reply to a statement that is stored.
pub(crate) const KEPT: &str = "I will remember that. `kiso memory show` lists what is kept.";

/// Beginnings that ask for nothing else.
const REMEMBER: [&str; 9] = [
    "remember that",
    "remember:",
    "remember my",
    "remember i",
    "note that",
    "keep in mind",
    "don't forget that",
    "do not forget that",
    "fyi",
];

const REMIND: [&str; 4] = ["remind me of ", "remind me to ", "remind me that ", "remind me about "];

/// Words for a time.
const TIMES: &str =
    "at in on every tomorrow tonight today later monday tuesday wednesday thursday friday saturday sunday";

/// Returns the reply to a message that is only a statement.
pub(crate) fn reply(message: &str) -> Option<String> {
    let plain = message.strip_prefix("Please ").or(message.strip_prefix("please ")).unwrap_or(message);
    let lower = plain.to_lowercase();
    if REMEMBER.iter().any(|begin| lower.starts_with(begin)) && durable(message) {
        return Some(KEPT.to_owned());
    }
    let what = REMIND.iter().find_map(|begin| lower.strip_prefix(begin))?;
    // A time needs a schedule; a schedule that fires sends the message without the time.
    let timed = what.split_whitespace().any(|word| listed(TIMES, word.trim_matches([',', '.', '!'])));
    let what = plain.get(plain.len() - what.len()..)?.trim_end_matches(['.', '!', ' ']);
    (!timed && !what.is_empty()).then(|| format!("Reminder: {what}"))
}

/// Whether a message that no rule understands contains a statement that is stored.
pub(crate) fn is_statement(message: &str) -> bool {
    durable(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_kept() {
        for message in
            ["remember that my dog is called Rex", "Please remember that I like tea", "Note that we use Rust"]
        {
            assert_eq!(reply(message).as_deref(), Some(KEPT), "{message}");
        }
        assert_eq!(reply("remind me of the tea").as_deref(), Some("Reminder: the tea"));
        for message in ["do you remember what I like?", "remind me of the tea at 5", "plot rain over date"] {
            assert_eq!(reply(message), None, "{message}");
        }
    }
}
