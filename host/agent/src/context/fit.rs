//! Shortening of texts.

use super::text::{Body, Spare};
use kiso_plan::clip::clip;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::REST;

/// A piece that gets the remaining space shortens no part that is smaller than a quarter of this, in tokens.
const WHOLE: usize = 4_000;

/// Minimum size of a shortened text: a smaller one would be little more than the note about its gap.
const LEAST: usize = 24;

/// Replaces a text for which there is no space, so that it does not look empty.
pub(super) const NO_ROOM: &str = "(left out: no room)";

/// Returns `text` in at most `cap` estimated tokens: keeps head and tail, and states the size of the gap.
pub fn fit_text(text: &str, cap: usize) -> String {
    let estimate = tokens(text);
    if estimate <= cap {
        return text.to_owned();
    }
    // The note about the gap takes a dozen tokens.
    let room = cap.saturating_sub(12).max(1);
    let length = text.chars().count();
    let mut keep = length * room / estimate;
    loop {
        let clipped = clip(text, keep);
        // Head and tail may be denser than the omitted middle.
        if keep == 0 || tokens(&clipped) <= cap {
            return clipped;
        }
        keep = keep * 9 / 10;
    }
}

impl Body {
    /// Returns the parts as one text of at most `cap` tokens, or [`NO_ROOM`]. If parts may be dropped, those that are larger than
    /// a quarter of `most` are shortened first, so that a huge part does not displace its neighbours; `most` is the piece's cap, or
    /// `cap` if the piece has none. Then parts are dropped, until `least` remain. Finally, the remaining ones are shortened.
    pub(super) fn fit(&self, cap: usize, most: usize, least: usize) -> String {
        if size(&self.items) <= cap.saturating_add(1) {
            return self.items.join("\n");
        }
        if cap < LEAST {
            return NO_ROOM.to_owned();
        }
        let mut kept = self.items.clone();
        if self.spare != Spare::No {
            // With little space, older parts are dropped rather than shortening all.
            shorten(&mut kept, self.share(if most == REST { cap.max(WHOLE) } else { most }));
            if self.spare == Spare::First {
                kept.reverse();
            }
            let mut total = size(&kept);
            while total > cap.saturating_sub(NOTE) && kept.len() > least.max(1) {
                total -= kept.pop().map_or(0, |item| tokens(&item) + 1);
            }
        }
        let gone = self.items.len() - kept.len();
        let room = if gone > 0 { cap.saturating_sub(NOTE) } else { cap };
        if size(&kept) > room.saturating_add(1) {
            let share = room / kept.len().max(1);
            shorten(&mut kept, share.max(LEAST));
        }
        if gone > 0 {
            kept.push(format!("({gone} more left out)"));
        }
        if self.spare == Spare::First {
            kept.reverse();
        }
        fit_text(&kept.join("\n"), cap)
    }

    /// Returns the tokens of the last `count` parts if the piece may take `most`.
    pub(super) fn last(&self, count: usize, most: usize) -> usize {
        let share = if size(&self.items) > most { self.share(most) } else { most };
        let last = &self.items[self.items.len().saturating_sub(count)..];
        last.iter().map(|item| tokens(item).min(share) + 1).sum::<usize>() + NOTE
    }

    /// Returns the maximum size of one part: a quarter, so that a few parts fit whatever their size.
    fn share(&self, most: usize) -> usize {
        (most / self.items.len().clamp(1, 4)).saturating_sub(1).max(LEAST)
    }
}

/// Returns the tokens of the parts, one line each.
fn size(items: &[String]) -> usize {
    items.iter().map(|item| tokens(item) + 1).sum()
}

fn shorten(items: &mut [String], most: usize) {
    for item in items.iter_mut().filter(|item| tokens(item) > most) {
        *item = fit_text(item, most);
    }
}

/// Tokens of the line that counts the omitted parts.
const NOTE: usize = 8;
