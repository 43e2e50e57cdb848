//! Words that change what is meant: which rows, how many, in which order, or the opposite.

use crate::keyword::{function, is_comparison, is_rank_word, is_time_adjective, leads};
use crate::word::{Word, WordShape, listed};

/// Words that turn the meaning round.
const NEGATIONS: &str = "\
    not no never none neither nor except excepting without excluding exclude excludes but besides unless isn't \
    aren't wasn't weren't don't doesn't didn't hasn't haven't";

pub(crate) fn is_negation(norm: &str) -> bool {
    listed(NEGATIONS, norm)
}

/// A word that says which rows, how many or in which order; no example of a skill makes it harmless.
pub(crate) fn is_operator(word: &Word) -> bool {
    match word.shape {
        WordShape::Plain => {
            let norm = word.norm.as_str();
            is_negation(norm)
                || leads(norm)
                || is_comparison(norm)
                || is_rank_word(norm)
                || is_time_adjective(norm)
                || function(word).is_some()
                || matches!(norm, "many" | "much" | "number" | "or" | "per" | "each" | "every")
        }
        _ => true,
    }
}
