use kiso_sdk::Failure;
use std::cmp::Ordering;
use table::{Column, Kind, Table, Values, name};

/// Values of a joined table: beyond it the memory of the skill would not do.
const MAX_VALUES: usize = 10_000_000;

/// Inner join: a row for every pair that agrees on the key; the key stands once, under its left name.
/// Without `on`, the one column that both tables have. Missing keys join nothing; text joins when it is the same text.
///
/// Codes: "bad-args", "unknown-column", "wrong-type", "too-large".
pub fn join(left: Table, right: Table, on: Option<&str>) -> Result<Table, Failure> {
    let (l, r) = match on {
        Some(on) => named(&left, &right, on)?,
        None => shared(&left, &right)?,
    };
    let (left_key, right_key) = (&left.columns[l], &right.columns[r]);
    let kinds = (left_key.kind(), right_key.kind());
    let both_numbers = matches!(kinds, (Kind::Number | Kind::Integer, Kind::Number | Kind::Integer));
    if kinds.0 != kinds.1 && !both_numbers {
        let side = |t: &Table, c: &Column| format!("{} in {} holds {}", c.name, t.file, c.kind().with_article());
        let message = format!("cannot join: {} and {}", side(&left, left_key), side(&right, right_key));
        return Err(Failure::new("wrong-type", message));
    }
    let (from_left, from_right) = pairs(&left, left_key, &right, right_key)?;
    let mut columns: Vec<Column> = left.columns.iter().map(|c| c.take(&from_left)).collect();
    columns.extend(right.columns.iter().enumerate().filter(|(i, _)| *i != r).map(|(_, c)| c.take(&from_right)));
    let names = name::distinct(columns.iter().map(|c| c.name.clone()));
    columns.iter_mut().zip(names).for_each(|(c, name)| c.name = name);
    let mut notes = left.notes;
    notes.extend(right.notes);
    Ok(Table { file: format!("{} with {}", left.file, right.file), rows: from_left.len(), columns, notes })
}

fn named(left: &Table, right: &Table, on: &str) -> Result<(usize, usize), Failure> {
    if let (Some(l), Some(r)) = (left.position(on), right.position(on)) {
        return Ok((l, r));
    }
    match on.split_once('=') {
        Some((a, b)) => Ok((left.find(a)?, right.find(b.trim_start_matches('='))?)),
        None => Ok((left.find(on)?, right.find(on)?)),
    }
}

fn shared(left: &Table, right: &Table) -> Result<(usize, usize), Failure> {
    let both: Vec<(usize, usize)> =
        left.columns.iter().enumerate().filter_map(|(l, c)| right.position(&c.name).map(|r| (l, r))).collect();
    match both.as_slice() {
        [pair] => Ok(*pair),
        [] => Err(Failure::new(
            "bad-args",
            format!("{} and {} have no column in common; say what to join with on: left=right", left.file, right.file),
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|(l, _)| left.columns[*l].name.as_str()).collect();
            let message = format!("{} and {} share {}; say which with on", left.file, right.file, names.join(", "));
            Err(Failure::new("bad-args", message))
        }
    }
}

/// Row numbers of both sides, pair by pair, in the order of the left rows. The right side is sorted and searched,
/// which needs four bytes a row where a hash table would need its keys.
fn pairs(left: &Table, l: &Column, right: &Table, r: &Column) -> Result<(Vec<u32>, Vec<u32>), Failure> {
    let mut sorted: Vec<u32> = (0..right.rows as u32).filter(|&row| !r.value(row as usize).is_missing()).collect();
    sorted.sort_by(|&a, &b| across(r, a, r, b));
    let width = left.columns.len() + right.columns.len();
    let (mut from_left, mut from_right) = (Vec::new(), Vec::new());
    for row in 0..left.rows as u32 {
        if l.value(row as usize).is_missing() {
            continue;
        }
        let start = sorted.partition_point(|&s| across(r, s, l, row).is_lt());
        let end = start + sorted[start..].partition_point(|&s| across(r, s, l, row).is_eq());
        if (from_left.len() + end - start).saturating_mul(width) > MAX_VALUES {
            return Err(Failure::new(
                "too-large",
                format!(
                    "joining {} and {} on {} gives more than {MAX_VALUES} values; the key repeats on both sides",
                    left.file, right.file, l.name
                ),
            ));
        }
        from_left.extend(std::iter::repeat_n(row, end - start));
        from_right.extend_from_slice(&sorted[start..end]);
    }
    Ok((from_left, from_right))
}

/// Compares a value of one column with one of another of the same kind; neither is missing.
fn across(a: &Column, i: u32, b: &Column, j: u32) -> Ordering {
    match (&a.values, &b.values) {
        (Values::Text(a), Values::Text(b)) => a.get(i as usize).cmp(b.get(j as usize)),
        (Values::Integers(_), _) | (_, Values::Integers(_)) => match (a.integer(i as usize), b.integer(j as usize)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.number(i as usize).partial_cmp(&b.number(j as usize)).unwrap_or(Ordering::Equal),
        },
        _ => a.number(i as usize).partial_cmp(&b.number(j as usize)).unwrap_or(Ordering::Equal),
    }
}
