//! How text gets shorter.

use super::text::{Body, Spare};
use kiso_plan::clip::clip;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::REST;

/// A piece that takes what the others leave shortens no part that has less than a quarter of this, in tokens.
const WHOLE: usize = 4_000;

/// Below this a shortened text would be little more than the note about its gap.
const LEAST: usize = 24;

/// Stands for a text that has no room at all, so that nobody takes it for empty.
pub(super) const NO_ROOM: &str = "(left out: no room)";

/// `text` in at most `cap` estimated tokens, with head and tail kept and the gap counted.
pub fn fit_text(text: &str, cap: usize) -> String {
    let estimate = tokens(text);
    if estimate <= cap {
        return text.to_owned();
    }
    // The note about the gap takes a dozen tokens itself.
    let room = cap.saturating_sub(12).max(1);
    let length = text.chars().count();
    let mut keep = length * room / estimate;
    loop {
        let clipped = clip(text, keep);
        // Head and tail may be denser than the middle that was left out.
        if keep == 0 || tokens(&clipped) <= cap {
            return clipped;
        }
        keep = keep * 9 / 10;
    }
}

impl Body {
    /// The parts as one text of at most `cap` tokens, or as [`NO_ROOM`]. One huge part costs itself and not its
    /// neighbours: it may take a quarter of `most`, the piece's cap, or of `cap` where the piece has none of its own; then
    /// those go that can be spared, down to `least` of them; then all are shortened.
    pub(super) fn fit(&self, cap: usize, most: usize, least: usize) -> String {
        if size(&self.items) <= cap.saturating_add(1) {
            return self.items.join("\n");
        }
        if cap < LEAST {
            return NO_ROOM.to_owned();
        }
        let mut kept = self.items.clone();
        if self.spare != Spare::No {
            // Where there is little room, an older part goes rather than that all are shortened.
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

    /// Tokens of the last `count` parts where the piece has the room `most`.
    pub(super) fn last(&self, count: usize, most: usize) -> usize {
        let share = if size(&self.items) > most { self.share(most) } else { most };
        let last = &self.items[self.items.len().saturating_sub(count)..];
        last.iter().map(|item| tokens(item).min(share) + 1).sum::<usize>() + NOTE
    }

    /// What one part may take at most: a quarter, so that a few have room whatever their size.
    fn share(&self, most: usize) -> usize {
        (most / self.items.len().clamp(1, 4)).saturating_sub(1).max(LEAST)
    }
}

/// Tokens of the parts, a line each.
fn size(items: &[String]) -> usize {
    items.iter().map(|item| tokens(item) + 1).sum()
}

fn shorten(items: &mut [String], most: usize) {
    for item in items.iter_mut().filter(|item| tokens(item) > most) {
        *item = fit_text(item, most);
    }
}

/// Tokens of the line that counts what was left out.
const NOTE: usize = 8;
