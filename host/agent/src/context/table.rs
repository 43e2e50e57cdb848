//! Which role gets which piece, as the roles declare it.

use std::fmt::Write as _;

use kiso_base::role::{Piece, REST, Role, TABLE};
use kiso_plan::prompt::Pieces;

/// Names the field of [`Pieces`] that holds each piece.
macro_rules! fields {
    ($($piece:ident $field:ident)*) => {
        fn copy(piece: Piece, from: &Pieces, to: &mut Pieces) {
            match piece {
                $(Piece::$piece => to.$field.clone_from(&from.$field),)*
            }
        }
    };
}

fields! {
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
    Turn turn
    Known known
    Tail tail
    Categories categories
    Skills skills
    AgentSkills agent_skills
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
    Instructions instructions
    Now now
    NewMessage new_message
    Directive directive
    Goal goal
    Task task
    Expect expect
    Transcript transcript
    Output output
    LookedAt looked_at
    Brief brief
    Correction correction
}

/// The pieces of `role`'s column. What only a replan shows is left out unless `all` says why a plan was given up.
pub fn select(role: Role, all: &Pieces) -> Pieces {
    let mut kept = Pieces::default();
    for row in TABLE.iter().filter(|row| row.cell(role).tells(all.failure.is_some())) {
        copy(row.piece, all, &mut kept);
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
