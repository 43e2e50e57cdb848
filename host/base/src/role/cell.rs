//! The cells of the table of who is told what: its rows are the pieces of prompts, its columns the roles.

/// How a role uses a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    No,
    Yes,
    /// The role writes it; it is not told.
    Writes,
    /// As it was before; the role writes the new one.
    Old,
    /// Only when a plan was given up.
    Replan,
    /// As a part of its current task: the brief carries it.
    Brief,
    /// Only its own last answer, when that could not be used.
    Retry,
    /// Only where its task is a message.
    Message,
}

impl Cell {
    /// Whether the role is told, in a call that follows a plan that was given up or in any other.
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
