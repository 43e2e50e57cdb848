//! Operators: words that select rows, their number or their order, or negate the meaning.

use crate::keyword::{function, is_comparison, is_rank_word, is_time_adjective, leads};
use crate::word::{Word, WordShape, listed};

/// Words that negate the meaning.
const NEGATIONS: &str = "\
    not no never none neither nor except excepting without excluding exclude excludes but besides unless isn't \
    aren't wasn't weren't don't doesn't didn't hasn't haven't";

pub(crate) fn is_negation(norm: &str) -> bool {
    listed(NEGATIONS, norm)
}

/// Whether a word selects rows, their number or their order; no example of a skill makes it harmless.
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
