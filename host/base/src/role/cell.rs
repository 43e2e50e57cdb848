//! The cells of the table of prompt pieces: its rows are the pieces, its columns the roles.

/// How a role uses a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    No,
    Yes,
    /// The role writes it, and does not get it.
    Writes,
    /// The role gets the old version and writes the new one.
    Old,
    /// Only after a plan was abandoned.
    Replan,
    /// As part of its current task: it is in the brief.
    Brief,
    /// Only its own last answer, if that was invalid.
    Retry,
    /// Only if its task is a message.
    Message,
}

impl Cell {
    /// Whether the role gets the piece; `replan` is true in calls after an abandoned plan.
    pub fn tells(self, replan: bool) -> bool {
        match self {
            Self::No | Self::Writes => false,
            Self::Replan => replan,
            Self::Yes | Self::Old | Self::Brief | Self::Retry | Self::Message => true,
        }
    }

    /// The word in the documentation.
    pub fn word(self) -> &'static str {
        match self {
            Self::No => "-",
            Self::Yes => "yes",
            Self::Writes => "writes it",
            Self::Old => "yes (old)",
            Self::Replan => "replan only",
            Self::Brief => "in its brief",
            Self::Retry => "its own",
            Self::Message => "for a message",
        }
    }
}
