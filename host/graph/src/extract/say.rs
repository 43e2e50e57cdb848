//! Reads the first field of an incomplete JSON object: a model's text to the user besides its answer.

/// Reads `{"say": "…"` piece by piece.
#[derive(Debug, Default)]
pub struct SayField {
    /// Text that may be the beginning of the field, or of an escape in it.
    held: String,
    state: FieldState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FieldState {
    #[default]
    Before,
    Inside,
    /// After the field, or in an object that does not begin with it.
    Behind,
}

/// The part before the text, without white space.
const OPENING: &str = "{\"say\":\"";

impl SayField {
    /// Takes the next piece of the object and returns the new part of the text.
    pub fn push(&mut self, piece: &str) -> String {
        let mut said = String::new();
        for c in piece.chars() {
            match self.state {
                FieldState::Before if c.is_ascii_whitespace() => {}
                FieldState::Before => {
                    self.held.push(c);
                    if self.held == OPENING {
                        self.held.clear();
                        self.state = FieldState::Inside;
                    } else if !OPENING.starts_with(&self.held) {
                        self.state = FieldState::Behind;
                    }
                }
                FieldState::Inside if self.held.is_empty() && c == '"' => self.state = FieldState::Behind,
                FieldState::Inside if self.held.is_empty() && c != '\\' => said.push(c),
                FieldState::Inside => {
                    self.held.push(c);
                    match unescaped(&self.held) {
                        Escape::Begun => {}
                        Escape::Whole(text) => {
                            said.push_str(&text);
                            self.held.clear();
                        }
                        // The end of the text can no longer be found.
                        Escape::Broken => self.state = FieldState::Behind,
                    }
                }
                FieldState::Behind => break,
            }
        }
        said
    }
}

enum Escape {
    Begun,
    Whole(String),
    Broken,
}

/// Decodes an escape that may be incomplete.
fn unescaped(escape: &str) -> Escape {
    if let Ok(text) = serde_json::from_str(&format!("\"{escape}\"")) {
        return Escape::Whole(text);
    }
    // Two escapes for a character outside of the basic plane.
    let fits = |(at, byte): (usize, u8)| match at % 6 {
        0 => byte == b'\\',
        1 => byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    };
    match escape.len() < 12 && escape.bytes().enumerate().all(fits) {
        true => Escape::Begun,
        false => Escape::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_does_not_depend_on_the_pieces() {
        for (text, expected) in [
            (r#"{"say": "On it.", "goal": "g"}"#, "On it."),
            (r#" { "say" : "a \"b\" \\ \n \u00e4 \ud83d\ude00 ü", "tasks": ["\"x\""]}"#, "a \"b\" \\ \n ä 😀 ü"),
            (r#"{"goal": "g", "say": "later"}"#, ""),
            (r#"{"say": null}"#, ""),
            (r#"{"say": "cut o"#, "cut o"),
            (r#"{"say": "x \q y", "goal": "g"}"#, "x "),
            (r#"{"say": "x \ud83d", "goal": "g"}"#, "x "),
            (r#"{"say": "x \u00", "goal": "g"}"#, "x "),
        ] {
            for size in 1..=text.chars().count() {
                let mut field = SayField::default();
                let pieces: Vec<char> = text.chars().collect();
                let said: String =
                    pieces.chunks(size).map(|piece| field.push(&piece.iter().collect::<String>())).collect();
                assert_eq!(said, expected, "{text} in pieces of {size}");
            }
        }
    }
}
