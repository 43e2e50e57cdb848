//! Colours for terminals.

/// Whether text is coloured. Without colour, every method returns the text unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colours text for a terminal, unless `NO_COLOR` or a dumb terminal disables it.
    pub(crate) fn new(terminal: bool) -> Paint {
        Paint(terminal && std::env::var_os("NO_COLOR").is_none() && !is_dumb())
    }

    #[cfg(test)]
    pub(crate) const fn always() -> Paint {
        Paint(true)
    }

    /// Never colours.
    pub(crate) const fn never() -> Paint {
        Paint(false)
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.0
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Returns text with the codes of "Select Graphic Rendition", such as "1;36".
    pub(crate) fn with(self, codes: &str, text: &str) -> String {
        if self.0 && !codes.is_empty() { format!("\x1b[{codes}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Returns whether the terminal can only print text.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
