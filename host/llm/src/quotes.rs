//! Whether a place in a text is quoted: in a code fence, between backticks, or in a line that begins with `>`.

/// Follows a text one character at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Quotes {
    fenced: bool,
    /// State of the current line: backticks or tildes at its beginning, all backticks, and whether it is a quotation.
    head: usize,
    ticks: usize,
    cited: bool,
    /// Whether the line contains more than white space and the marks of a fence.
    begun: bool,
}

impl Quotes {
    pub(crate) fn push(&mut self, c: char) {
        match c {
            '\n' => {
                let fenced = self.fenced != (self.head >= 3);
                *self = Self { fenced, ..Self::default() };
            }
            '`' | '~' if !self.begun => (self.head, self.ticks) = (self.head + 1, self.ticks + usize::from(c == '`')),
            c if c.is_whitespace() && !self.begun => {}
            c => {
                self.cited |= c == '>' && self.is_line_start();
                self.begun = true;
                self.ticks += usize::from(c == '`');
            }
        }
    }

    /// Whether the next character is quoted.
    pub(crate) fn is_quoted(&self) -> bool {
        self.fenced || self.cited || self.head >= 3 || self.ticks % 2 == 1
    }

    /// Whether only white space precedes the next character in its line.
    pub(crate) fn is_line_start(&self) -> bool {
        !self.begun && self.head == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_quoted_in_fences_backticks_and_quotations() {
        for (before, quoted) in [
            ("", false),
            ("a `", true),
            ("a `b` ", false),
            ("```\n", true),
            ("~~~xml\na\n", true),
            ("```\na\n```\n", false),
            ("> ", true),
            ("> a\n", false),
            ("a > ", false),
        ] {
            let mut quotes = Quotes::default();
            before.chars().for_each(|c| quotes.push(c));
            assert_eq!(quotes.is_quoted(), quoted, "{before:?}");
        }
    }
}
