//! Which role gets which piece, as data.

use std::fmt::Write as _;

use crate::llm::Role;
use crate::llm::prompt::Pieces;

/// Names each field of [`Pieces`] once, so that a field cannot be forgotten where pieces are selected.
macro_rules! pieces {
    ($($piece:ident $field:ident)*) => {
        /// One field of [`Pieces`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Piece {
            $($piece,)*
        }

        impl Piece {
            /// Every piece, in the order of [`TABLE`].
            pub const ALL: &[Self] = &[$(Self::$piece,)*];

            fn copy(self, from: &Pieces, to: &mut Pieces) {
                match self {
                    $(Self::$piece => to.$field.clone_from(&from.$field),)*
                }
            }
        }
    };
}

pieces! {
    Caller caller
    Guidance guidance
    Core core
    Facts facts
    Memory memory
    Summary summary
    Messages messages
    Exchange exchange
    Compress compress
    Consolidate consolidate
    Tail tail
    Categories categories
    Skills skills
    SkillEnvironment skill_environment
    Environment environment
    Replies replies
    PlannerLane planner_lane
    Completed completed
    Remaining remaining
    ReplanHistory replan_history
    Failure failure
    OriginalMessage original_message
    Plan plan
    Readiness readiness
    Evidence evidence
    ReasoningLane reasoning_lane
    Feedback feedback
    NewMessage new_message
    Directive directive
    Goal goal
    Task task
    Expect expect
    Transcript transcript
    Output output
    Brief brief
    Correction correction
}

/// Whether a role gets a piece.
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
}

impl Cell {
    /// Whether the role is told, in a call that follows a plan that was given up or in any other.
    fn tells(self, replan: bool) -> bool {
        match self {
            Self::No | Self::Writes => false,
            Self::Replan => replan,
            Self::Yes | Self::Old | Self::Brief | Self::Retry => true,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::No => "-",
            Self::Yes => "yes",
            Self::Writes => "writes it",
            Self::Old => "yes (old)",
            Self::Replan => "replan only",
            Self::Brief => "in its brief",
            Self::Retry => "its own",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub piece: Piece,
    /// What stands above the piece in a prompt.
    pub title: &'static str,
    /// In the order of [`Role::ALL`].
    cells: [Cell; Role::ALL.len()],
    /// The most that the piece may take of a prompt, in estimated tokens; [`REST`] for what the others leave.
    pub cap: usize,
}

/// The cap of a piece that takes whatever the others leave of the budget: the window (nine tenths of the
/// budget less what is fixed), and the transcript, which is the critic's evidence.
pub const REST: usize = usize::MAX;

impl Row {
    pub fn cell(&self, role: Role) -> Cell {
        self.cells[role as usize]
    }
}

const fn row(piece: Piece, title: &'static str, cells: [Cell; Role::ALL.len()], cap: usize) -> Row {
    Row { piece, title, cells, cap }
}

/// Above the role's own last answer. Its first sentence names the piece, the second says what to do about it.
const CORRECTION: &str = "Your last answer could not be used. Answer again, whole, with every point put right";

/// Who is told what: see `docs/how-it-works.md`, which has the same table. The order is the one in which a prompt has the pieces:
/// background first, what is to be done last, because that is what small models heed most.
#[rustfmt::skip]
pub const TABLE: [Row; Piece::ALL.len()] = {
    use Cell::{Brief as Part, No as N, Old, Replan, Retry, Writes, Yes};
    use Piece::{
        Brief, Caller, Categories, Completed, Compress, Consolidate, Core, Correction, Directive, Environment, Evidence,
        Exchange, Expect, Facts, Failure, Feedback, Goal, Guidance, Memory, Messages, NewMessage, OriginalMessage, Output,
        Plan, PlannerLane, Readiness, ReasoningLane, Remaining, ReplanHistory, Replies, SkillEnvironment, Skills, Summary,
        Tail, Task, Transcript,
    };
    [
        //                                                                  planner reviewer worker summarizer router reasoner actor titler
        row(Caller,           "Role of the caller",                         [Yes,    N,       N,     N,         N,     N,       N,    N], 20),
        row(Guidance,         "SOUL.md, IDENTITY.md and AGENTS.md in /work", [Yes,   N,       Yes,   N,         N,     N,       Yes,  N], 2_000),
        row(Core,             "Core memory",                                [Yes,    N,       Yes,   N,         N,     N,       Yes,  N], 1_500),
        row(Facts,            "Facts",                                      [Yes,    N,       Yes,   N,         N,     N,       N,    N], 1_500),
        row(Memory,           "Memory that matters here",                   [Yes,    N,       Yes,   N,         N,     Yes,     N,    N], 1_000),
        row(Summary,          "Summary of the session so far",              [Yes,    N,       Yes,   Old,       N,     N,       N,    N], 1_500),
        row(Messages,         "Last messages",                              [Yes,    N,       Yes,   N,         N,     N,       N,    N], REST),
        row(Exchange,         "First messages of the session",              [N,      N,       N,     N,         N,     N,       N,    Yes], 800),
        row(Compress,         "Messages to compress",                       [N,      N,       N,     Yes,       N,     N,       N,    N], 12_000),
        row(Consolidate,      "Facts to consolidate",                       [N,      N,       N,     Yes,       N,     N,       N,    N], 8_000),
        row(Tail,             "Last messages, for what follows up on them", [N,      N,       N,     N,         Yes,   N,       N,    N], 600),
        row(Categories,       "Categories of tools",                        [N,      N,       N,     N,         Yes,   N,       N,    N], 800),
        row(Skills,           "Skills and their args",                      [Yes,    N,       N,     N,         N,     N,       N,    N], 6_000),
        row(SkillEnvironment, "What the skills need and have",              [Yes,    N,       N,     N,         N,     Yes,     N,    N], 1_000),
        row(Environment,      "Files in /work",                             [Yes,    N,       N,     N,         N,     N,       N,    N], 2_000),
        row(Replies,          "What this run replied so far",               [Yes,    N,       N,     N,         N,     Yes,     N,    N], 1_500),
        row(PlannerLane,      "What you said earlier in this run",          [Yes,    N,       N,     N,         N,     N,       N,    N], 1_500),
        row(Completed,        "Tasks that were completed",                  [Replan, N,       N,     N,         N,     N,       N,    N], 3_000),
        row(Remaining,        "Tasks that were planned and did not run",    [Replan, N,       N,     N,         N,     N,       N,    N], 1_500),
        row(ReplanHistory,    "Plans that were given up; do not repeat them", [Replan, N,     N,     N,         N,     N,       N,    N], 1_500),
        row(Failure,          "Why the last plan was given up",             [Replan, N,       N,     N,         N,     N,       N,    N], 2_000),
        row(OriginalMessage,  "Original user request",                      [N,      Yes,     N,     N,         N,     N,       N,    N], 3_000),
        row(Plan,             "The plan",                                   [N,      N,       N,     N,         N,     Yes,     N,    N], 1_500),
        row(Readiness,        "What there is to execute with",              [N,      N,       N,     N,         N,     Yes,     N,    N], 1_500),
        row(Evidence,         "What the tasks so far left behind",          [N,      N,       Part,  N,         N,     Yes,     N,    N], 6_000),
        row(ReasoningLane,    "Your briefs so far in this run",             [N,      N,       N,     N,         N,     Yes,     N,    N], 1_500),
        row(Feedback,         "What the critic found wrong",                [Yes,    N,       N,     N,         N,     Yes,     N,    N], 1_500),
        row(NewMessage,       "New message",                                [Yes,    N,       N,     N,         Yes,   N,       N,    N], 6_500),
        row(Directive,        "What this turn is to achieve",               [Yes,    N,       N,     N,         N,     N,       N,    N], 500),
        row(Goal,             "Goal of the whole plan",                     [Writes, Yes,     Part,  N,         N,     Yes,     N,    N], 700),
        row(Task,             "Current task",                               [N,      Yes,     Yes,   N,         N,     Yes,     N,    N], 7_000),
        row(Expect,           "What is expected of it",                     [N,      Yes,     Part,  N,         N,     Yes,     N,    N], 700),
        row(Transcript,       "Action Conversation Transcript",             [N,      Yes,     N,     N,         N,     N,       N,    N], REST),
        row(Output,           "Its output",                                 [N,      Yes,     N,     N,         N,     N,       N,    N], 6_000),
        row(Brief,            "Your brief",                                 [N,      N,       N,     N,         N,     Writes,  Yes,  N], 8_000),
        row(Correction,       CORRECTION,                                   [Retry,  Retry,   N,     N,         N,     Retry,   N,    N], 4_000),
    ]
};

/// The pieces of `role`'s column. What only a replan shows is left out unless `all` says why a plan was given up.
pub fn select(role: Role, all: &Pieces) -> Pieces {
    let mut kept = Pieces::default();
    for row in TABLE.iter().filter(|row| row.cell(role).tells(all.failure.is_some())) {
        row.piece.copy(all, &mut kept);
    }
    kept
}

/// The table as Markdown, for the documentation.
pub fn markdown() -> String {
    let mut out = "| Piece |".to_owned();
    for role in Role::ALL {
        let name = role.name();
        let _ = write!(out, " {}{} |", name[..1].to_uppercase(), &name[1..]);
    }
    let _ = writeln!(out, " At most |\n|{}", "---|".repeat(Role::ALL.len() + 2));
    for row in &TABLE {
        let title = row.title.split_once(". ").map_or(row.title, |(first, _)| first);
        let _ = write!(out, "| {title} |");
        for role in Role::ALL {
            let _ = write!(out, " {} |", row.cell(role).word());
        }
        let _ = match row.cap {
            REST => writeln!(out, " what is left |"),
            cap => writeln!(out, " {cap} tokens |"),
        };
    }
    out
}
