//! The roles: kinds of model calls, each declared once, in its own file.
//!
//! A [`Declaration`] contains a role's purpose, its prompt, the pieces that it is given, the form of its answer and its limits.
//! The keys of `config.toml`, the table of pieces, `kiso role`, its completions and the documentation are generated from the
//! declarations. So a new role is a file here, a prompt in `roles/`, and its name in the list below.

mod actor;
mod cell;
mod eyes;
mod planner;
mod reasoner;
mod reviewer;
mod router;
mod schema;
mod summarizer;
mod titler;
mod worker;

pub use cell::Cell;
pub use planner::plan_schema;
pub use schema::{Lengths, MAX_WORD, TOO_MANY_RULES, skill_task};
pub use summarizer::{MAX_LEARNED, MOST_LEARNED, MOST_OUTDATED, facts_schema, learned_schema};

use kiso_plan::prompt::Piece;
use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// The properties of a role, except for its name.
#[derive(Debug)]
pub struct Declaration {
    /// Its purpose, as a sentence.
    pub does: &'static str,
    /// The built-in prompt; `roles/NAME.md` in the home replaces it.
    pub prompt: &'static str,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Maximum tokens of its answer.
    pub max_tokens: u32,
    /// The JSON Schema of an answer with these lengths; `None` if the answer is text.
    pub schema: Option<fn(&Lengths) -> Value>,
    /// Its column of the table, in the order of [`TABLE`](kiso_plan::prompt::TABLE): the only pieces that it is given, or writes.
    pub sees: &'static [(Piece, Cell)],
    /// When it is called.
    pub duty: Duty,
    /// Whether it works or writes for the user, and so gets the home's SOUL.md, IDENTITY.md and AGENTS.md.
    pub guided: bool,
    /// Whether it decides what is said to the user, and so is told if it works as a subagent.
    pub speaks: bool,
    /// Whether it writes the `msg` tasks that name it, with its own prompt and pieces. A task that names another role only uses
    /// that role's model.
    pub writes: bool,
}

/// When a role is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// For a message. A model that a session chooses is used for these roles.
    Message,
    /// After the reply, or to free space in the context: its output is never read as an answer.
    Background,
}

/// Generates [`Role`] and its declarations from one list. A role's name is the name of its file.
macro_rules! roles {
    ($($role:ident in $file:ident,)*) => {
        /// One kind of model call, with its own prompt and its own model.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Role {
            $($role,)*
        }

        impl Role {
            /// All roles, in the order of every list.
            pub const ALL: [Self; [$(Self::$role),*].len()] = [$(Self::$role),*];

            /// The name in `config.toml`, in `roles/NAME.md` and in a task's `model`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$role => stringify!($file),)*
                }
            }

            /// The purpose of each role, in the order of [`Role::ALL`].
            pub const DOES: [&'static str; Self::ALL.len()] = [$($file::ROLE.does),*];

            /// "For the NAME.", for lists with an entry for each role.
            pub const FOR_EACH: [&'static str; Self::ALL.len()] = [$(concat!("For the ", stringify!($file), ".")),*];

            pub const fn declaration(self) -> &'static Declaration {
                match self {
                    $(Self::$role => &$file::ROLE,)*
                }
            }
        }
    };
}

roles! {
    Planner in planner,
    Reviewer in reviewer,
    Worker in worker,
    Summarizer in summarizer,
    Router in router,
    Reasoner in reasoner,
    Actor in actor,
    Titler in titler,
    Eyes in eyes,
}

impl Role {
    /// Returns the role with this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Returns "planner, reviewer, …", for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// How the role uses a piece.
    pub fn cell(self, piece: Piece) -> Cell {
        let told = self.declaration().sees.iter().find(|(told, _)| *told == piece);
        told.map_or(Cell::No, |(_, cell)| *cell)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerRole<T>([T; Role::ALL.len()]);

impl<T> Index<Role> for PerRole<T> {
    type Output = T;

    fn index(&self, role: Role) -> &T {
        &self.0[role as usize]
    }
}

impl<T: Serialize> Serialize for PerRole<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Role::ALL.into_iter().zip(&self.0))
    }
}

impl<T> IndexMut<Role> for PerRole<T> {
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_order_of_the_table() {
        for role in Role::ALL {
            let places = role.declaration().sees.iter().map(|(piece, _)| *piece as usize);
            let places: Vec<_> = places.collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{role}: {:?}", role.declaration().sees);
        }
    }

    #[test]
    fn a_declaration_is_fit_for_what_is_made_from_it() {
        for role in Role::ALL {
            let Declaration { does, prompt, temperature, max_tokens, schema, .. } = role.declaration();
            assert!(does.ends_with('.') && does.starts_with(char::is_uppercase), "{role}: {does:?} is no sentence");
            assert!(!prompt.trim().is_empty() && *max_tokens > 0, "{role}");
            assert!(temperature.is_none_or(|given| (0.0..=2.0).contains(&given)), "{role}");
            assert!(
                schema.is_none_or(|schema| schema(&Lengths::READ)["type"] == "object"),
                "{role}: providers take objects only"
            );
            assert!(role.name().bytes().all(|b| b.is_ascii_lowercase()), "{role} is a file's name and a key");
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        assert!(Role::Worker.declaration().writes, "it writes what no other role is named for");
    }
}
