//! Groups: "monthly", "per city", "by weekday and city", "by month of order_date".

use kiso_plan::prompt::ColumnKind;

use crate::column::Reach;
use crate::keyword::{TIMES, function, time_noun};
use crate::query::{GroupKey, QueryReader};
use crate::word::{Punctuation, WordShape, key};

pub(crate) fn read(reader: &mut QueryReader) {
    let mut i = 0;
    while i < reader.words.len() {
        let norm = reader.norm(i);
        if let Some((name, _)) = TIMES.iter().find(|(_, adjectives)| adjectives.contains(&norm))
            && reader.column_at(i, Reach::Words).is_none()
        {
            if let Some(grouped) = on_date(reader, name) {
                reader.group_by(grouped);
                reader.query.adjective = true;
                reader.take(i, i + 1);
            }
        } else if leads(reader, i) {
            let end = items(reader, i + 1);
            if end > i + 1 {
                reader.take(i, i + 1);
                i = end;
                continue;
            }
        }
        i += 1;
    }
}

/// Whether a word begins a group: "by", "per", "over", "each", "across"; "grouped by" was skipped before.
fn leads(reader: &QueryReader, i: usize) -> bool {
    let norm = reader.norm(i);
    matches!(norm, "each" | "every" | "across") || (!norm.is_empty() && key(norm) == "by")
}

/// Reads the groups from `i` on. Returns the index after them.
fn items(reader: &mut QueryReader, mut i: usize) -> usize {
    loop {
        let start = reader.skip(i, &["each", "every"]);
        let Some((grouped, end)) = item(reader, start) else {
            return i;
        };
        reader.group_by(grouped);
        reader.take(i, end);
        i = end;
        let comma = reader.words[end - 1].mark == Punctuation::Comma;
        let next = reader.skip(end + usize::from(reader.norm(end) == "and"), &[]);
        // "by city and total rain" continues with an aggregate, "by city and month" with a group.
        let goes_on = comma || reader.norm(end) == "and";
        if !goes_on
            || reader.word(next).is_none_or(|w| w.shape != WordShape::Plain || function(w).is_some())
            || item(reader, next).is_none()
        {
            return i;
        }
        if reader.norm(end) == "and" {
            reader.take(end, end + 1);
            i = end + 1;
        }
    }
}

fn item(reader: &mut QueryReader, i: usize) -> Option<(GroupKey, usize)> {
    if let Some((column, end)) = reader.column_at(i, Reach::Words) {
        let kind = reader.kind_of(&column).unwrap_or(ColumnKind::Text);
        return Some((GroupKey { text: column.clone(), column, kind }, end));
    }
    if (reader.norm(i), reader.norm(i + 1)) == ("day", "of") && matches!(reader.norm(reader.skip(i + 2, &[])), "week") {
        let end = reader.skip(i + 2, &[]) + 1;
        return on_date(reader, "weekday").map(|grouped| (grouped, end));
    }
    let name = time_noun(reader.norm(i))?;
    if reader.norm(i + 1) == "of"
        && let Some((column, end)) = reader.column_at(reader.skip(i + 2, &[]), Reach::Words)
        && reader.kind_of(&column) != Some(ColumnKind::Number)
    {
        return GroupKey::by_time(name, &column).map(|grouped| (grouped, end));
    }
    on_date(reader, name).map(|grouped| (grouped, i + 1))
}

/// Applies the time function to the table's date column; a table without one is a problem that is reported.
pub(crate) fn on_date(reader: &mut QueryReader, name: &str) -> Option<GroupKey> {
    match reader.date() {
        Some(date) => GroupKey::by_time(name, &date),
        None => {
            let problem = format!("there is no column with dates to take the {name} of");
            if !reader.query.problems.contains(&problem) {
                reader.query.problems.push(problem);
            }
            None
        }
    }
}
