//! Selects the pieces of a role, as the roles declare them.

use std::fmt::Write as _;

use kiso_base::role::Role;
use kiso_plan::prompt::{Pieces, REST, TABLE};

/// Returns the pieces of `role`'s column. Pieces for a replan are left out unless `all` contains the reason for it.
pub fn select(role: Role, all: &Pieces) -> Pieces {
    let mut kept = Pieces::default();
    for row in TABLE.iter().filter(|row| role.cell(row.piece).tells(all.failure.is_some())) {
        kept.copy(row.piece, all);
    }
    kept
}

/// Returns the table as Markdown, for the documentation.
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
            let _ = write!(out, " {} |", role.cell(row.piece).word());
        }
        let _ = match row.cap {
            REST => writeln!(out, " what is left |"),
            cap => writeln!(out, " {cap} tokens |"),
        };
    }
    out
}
