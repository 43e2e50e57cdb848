//! The part of a streamed text that was already written.

/// The text written so far, so that its end can be found in the complete text.
#[derive(Debug, Default)]
pub(crate) struct WrittenText {
    text: String,
    /// Space at the end, which is only written when more follows.
    held: String,
    /// Whether other text was written as well.
    beside: bool,
}

impl WrittenText {
    /// Returns the output for the next piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = std::mem::take(&mut self.held);
        // The text begins with its first word.
        out.push_str(if self.text.is_empty() && out.is_empty() { piece.trim_start() } else { piece });
        let end = out.trim_end().len();
        self.held = out.split_off(end);
        if !out.is_empty() && self.text.is_empty() && std::mem::take(&mut self.beside) {
            self.text.push_str(&out);
            return format!("\n\n{out}");
        }
        self.text.push_str(&out);
        out
    }

    /// Returns the output for a message between the parts of the text.
    pub(crate) fn say(&mut self, text: &str) -> String {
        let before = if self.is_empty() { "" } else { "\n\n" };
        self.beside = true;
        format!("{before}{}", text.trim())
    }

    /// Returns the output that completes the text to `reply`.
    pub(crate) fn end(&mut self, reply: &str) -> String {
        let written = std::mem::take(self);
        match reply.trim_end().strip_prefix(written.text.as_str()) {
            Some(rest) if !written.text.is_empty() => rest.to_owned(),
            _ if written.is_empty() => reply.to_owned(),
            _ => format!("\n\n{reply}"),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.beside
    }

    /// Returns whether nothing of the text itself was written.
    pub(crate) fn has_no_text(&self) -> bool {
        self.text.is_empty()
    }

    /// Starts the next part of the text, after an empty line.
    pub(crate) fn part(&mut self) {
        self.held = if self.text.is_empty() { String::new() } else { "\n\n".to_owned() };
    }
}
