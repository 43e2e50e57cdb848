//! What stands there already of a text that is streamed.

/// The text as far as it was written, so that its end can be told from all of it.
#[derive(Debug, Default)]
pub(crate) struct WrittenText {
    text: String,
    /// Space at the end, which is only written when more follows.
    held: String,
    /// Whether something that is not a part of the text stands there, too.
    beside: bool,
}

impl WrittenText {
    /// What is to be written of the next piece.
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

    /// What is to be written of something that stands between the parts of the text.
    pub(crate) fn say(&mut self, text: &str) -> String {
        let before = if self.is_empty() { "" } else { "\n\n" };
        self.beside = true;
        format!("{before}{}", text.trim())
    }

    /// What is to be written so that the text is the whole of `reply`.
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

    /// Whether nothing of the text itself was written.
    pub(crate) fn has_no_text(&self) -> bool {
        self.text.is_empty()
    }

    /// Another text follows.
    pub(crate) fn part(&mut self) {
        self.held = if self.text.is_empty() { String::new() } else { "\n\n".to_owned() };
    }
}
