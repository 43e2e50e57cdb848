//! The first bytes of files that are tables or claim to be.

use crate::Target;
use crate::dice::Dice;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;

pub(crate) struct Tables {
    dir: TempDir,
    work: Dir,
}

const ENDINGS: [&str; 5] = ["csv", "tsv", "json", "jsonl", "ndjson"];

impl Tables {
    pub(crate) fn new() -> Tables {
        // Use memory if possible: each input is a file.
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("there is room");
        let work = Dir::open_ambient_dir(dir.path(), ambient_authority()).expect("it is there");
        Tables { dir, work }
    }
}

impl Target for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    /// The number of files that the reader reads from a workspace.
    fn together(&self) -> u64 {
        50
    }

    fn ordinary(&self) -> u64 {
        3_000
    }

    /// The first byte selects the file's extension.
    fn make(&mut self, dice: &mut Dice) -> Vec<u8> {
        let ending = dice.below(ENDINGS.len());
        let mut bytes = match ENDINGS[ending] {
            "csv" | "tsv" => delimited(dice, ending),
            "json" => json(dice).into_bytes(),
            _ => (0..dice.below(20)).map(|_| record(dice, 0) + "\n").collect::<String>().into_bytes(),
        };
        for _ in 0..[0, 0, 0, 0, 0, 1, 2, 9][dice.below(8)] {
            dice.mutate(&mut bytes);
        }
        match dice.below(12) {
            0 => bytes.splice(0..0, [0xef, 0xbb, 0xbf]).for_each(drop),
            1 => bytes = String::from_utf8_lossy(&bytes).encode_utf16().flat_map(u16::to_le_bytes).collect(),
            2 => {
                bytes = [
                    vec![0xff, 0xfe],
                    String::from_utf8_lossy(&bytes).encode_utf16().flat_map(u16::to_le_bytes).collect(),
                ]
                .concat()
            }
            // Longer than the part that is read.
            3 if dice.once_in(20) => bytes = bytes.repeat(1 + (70 << 10) / bytes.len().max(1)),
            _ => {}
        }
        bytes.insert(0, ending as u8);
        bytes
    }

    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String> {
        for (number, input) in inputs.iter().enumerate() {
            let path = self.dir.path().join(format!("{number}.{}", ENDINGS[usize::from(input[0])]));
            std::fs::write(path, &input[1..]).map_err(|error| error.to_string())?;
        }
        let cards = kiso_agent::tool::files::cards(&self.work);
        for card in &cards {
            std::fs::remove_file(self.dir.path().join(&card.path)).map_err(|error| error.to_string())?;
        }
        match cards.len() == inputs.len() {
            true => Ok(cards.iter().filter(|card| card.columns.is_some()).count() as u64),
            false => Err(format!("{} files of {} are listed", cards.len(), inputs.len())),
        }
    }
}

fn cell(dice: &mut Dice) -> String {
    // Mostly the kinds of value that are common in tables.
    let kind = if dice.once_in(8) { dice.below(12) } else { dice.below(5) };
    match kind {
        0 => (dice.next() as i32).to_string(),
        1 => format!("{}.{}", dice.below(100), dice.below(1_000)),
        2 => format!("{}-{:02}-{:02}", 1900 + dice.below(200), dice.below(14), dice.below(33)),
        3 => format!("{}/{}/{}", dice.below(33), dice.below(14), dice.below(3_000)),
        4 => format!("{:02}:{:02}", dice.below(26), dice.below(62)),
        5 => format!("{}.{},{}", dice.below(10), dice.below(1_000), dice.below(100)),
        6 => String::new(),
        7 => "NA".to_owned(),
        8 => format!("\"{}\"", dice.text().replace('"', "\"\"")),
        9 => "9".repeat(1 + dice.below(400)),
        10 => dice.text(),
        _ => dice.one_of(&["Oslo", "true", "12 %", "€ 3,50", "1e5", "-", "inf", "0x1f", "１２"]).to_owned(),
    }
}

fn delimited(dice: &mut Dice, ending: usize) -> Vec<u8> {
    let by = if ending == 1 { "\t" } else { dice.one_of(&[",", ",", ",", ",", ",", ";", "\t", "|"]) };
    let end = dice.one_of(&["\n", "\n", "\n", "\r\n", "\r"]);
    let (columns, rows) = (1 + dice.below(8), 1 + dice.below(20));
    let mut text = (0..columns).map(|n| format!("name{n}")).collect::<Vec<_>>().join(by) + end;
    for _ in 0..rows {
        let wide = if dice.once_in(100) { dice.below(30) } else { columns };
        text += &((0..wide).map(|_| cell(dice)).collect::<Vec<_>>().join(by) + end);
    }
    text.into_bytes()
}

fn value(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth > 4 { 5 } else { 8 }) {
        0 => (dice.next() as i64).to_string(),
        1 => serde_json::Value::from(dice.text()).to_string(),
        2 => "null".to_owned(),
        3 => dice.once_in(2).to_string(),
        4 => dice.one_of(&["1e400", "-0", "1.5", "01", "NaN", "\"2024-02-30\""]).to_owned(),
        5 => format!("[{}]", (0..dice.below(5)).map(|_| value(dice, depth + 1)).collect::<Vec<_>>().join(",")),
        6 if dice.once_in(30) => "[".repeat(dice.below(3_000)),
        _ => record(dice, depth + 1),
    }
}

fn record(dice: &mut Dice, depth: usize) -> String {
    let mut fields = (0..1 + dice.below(5)).map(|n| {
        let key = if dice.once_in(20) { dice.text() + &"k".repeat(dice.below(3_000)) } else { format!("key{n}") };
        format!("{}:{}", serde_json::Value::from(key), value(dice, depth))
    });
    let fields: Vec<String> = fields.by_ref().collect();
    format!("{{{}}}", fields.join(","))
}

fn json(dice: &mut Dice) -> String {
    let records: Vec<String> = (0..dice.below(12)).map(|_| record(dice, 0)).collect();
    let all = format!("[{}]", records.join(","));
    match dice.below(5) {
        0 => format!("{{\"data\":{all}}}"),
        1 => format!("{{\"columns\":[\"a\",\"b\"],\"rows\":[[1,2],[{},{}]]}}", value(dice, 3), value(dice, 3)),
        _ => all,
    }
}
