//! `dd`. (That of uutils starts threads to report progress, and WASI has none.)

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::time::Instant;

use crate::cli::{self, Error};

const USAGE: &str = "Usage: dd [OPERAND]...
Copy a file in blocks.

  if=FILE  of=FILE  bs=BYTES  ibs=BYTES  obs=BYTES
  count=N  skip=N  seek=N     blocks to copy, to skip in the input, to skip in the output; with B behind it, bytes
  conv=lcase|ucase|swab|sync|notrunc|excl|nocreat|fsync|fdatasync|sparse|noerror,...
  iflag=count_bytes|skip_bytes|fullblock,...  oflag=append|seek_bytes,...
  status=none|noxfer|progress
Blocks are always read in full. BYTES and N may end in c, w, b, K, M, G, kB, MB, GB, KiB, MiB, GiB.
";

/// How much is held in memory, however large the blocks are.
const PIECE: usize = 64 << 10;

struct Operands {
    input: Option<String>,
    output: Option<String>,
    ibs: u64,
    obs: u64,
    skip: u64,
    seek: u64,
    limit: Option<u64>,
    conversions: Vec<String>,
    append: bool,
    status: String,
}

pub fn main(arguments: Vec<String>) -> i32 {
    let operands = arguments.get(1..).unwrap_or_default().to_vec();
    cli::run(arguments, USAGE, 1, |_| run(&parse(&operands)?))
}

fn parse(arguments: &[String]) -> Result<Operands, Error> {
    let mut operands = Operands {
        input: None,
        output: None,
        ibs: 512,
        obs: 512,
        skip: 0,
        seek: 0,
        limit: None,
        conversions: Vec::new(),
        append: false,
        status: String::new(),
    };
    let (mut count, mut skip, mut seek, mut flags) = (None, None, None, Vec::new());
    for argument in arguments.iter().filter(|argument| *argument != "--") {
        let unknown = || format!("unrecognized operand '{argument}'");
        let (name, value) = argument.split_once('=').ok_or_else(unknown)?;
        match name {
            "if" => operands.input = Some(value.to_owned()),
            "of" => operands.output = Some(value.to_owned()),
            "bs" => (operands.ibs, operands.obs) = (block(value)?, block(value)?),
            "ibs" => operands.ibs = block(value)?,
            "obs" => operands.obs = block(value)?,
            "count" => count = Some(value),
            "skip" | "iseek" => skip = Some(value),
            "seek" | "oseek" => seek = Some(value),
            "conv" => operands.conversions.extend(value.split(',').map(String::from)),
            "iflag" | "oflag" => flags.extend(value.split(',')),
            "status" => operands.status = value.to_owned(),
            _ => return Err(unknown().into()),
        }
    }
    const CONVERSIONS: [&str; 11] =
        ["lcase", "ucase", "swab", "sync", "notrunc", "excl", "nocreat", "fsync", "fdatasync", "sparse", "noerror"];
    if let Some(unknown) = operands.conversions.iter().find(|name| !CONVERSIONS.contains(&name.as_str())) {
        return Err(format!("invalid conversion: '{unknown}'").into());
    }
    const FLAGS: [&str; 11] = [
        "append",
        "count_bytes",
        "skip_bytes",
        "seek_bytes",
        "fullblock",
        "sync",
        "dsync",
        "direct",
        "nonblock",
        "noatime",
        "nocache",
    ];
    if let Some(unknown) = flags.iter().find(|name| !FLAGS.contains(name)) {
        return Err(format!("invalid flag: '{unknown}'").into());
    }
    operands.append = flags.contains(&"append");
    let amount = |text: Option<&str>, unit: u64, flag: &str| -> Result<Option<u64>, Error> {
        let Some(text) = text else { return Ok(None) };
        let bytes = (text.ends_with('B') && text[..text.len() - 1].ends_with(|c: char| c.is_ascii_digit()))
            || flags.contains(&flag);
        let number = number(text.strip_suffix('B').filter(|_| bytes).unwrap_or(text))?;
        Ok(Some(if bytes { number } else { number.saturating_mul(unit) }))
    };
    operands.limit = amount(count, operands.ibs, "count_bytes")?;
    operands.skip = amount(skip, operands.ibs, "skip_bytes")?.unwrap_or(0);
    operands.seek = amount(seek, operands.obs, "seek_bytes")?.unwrap_or(0);
    Ok(operands)
}

fn block(text: &str) -> Result<u64, Error> {
    match number(text)? {
        0 => Err(format!("invalid number: '{text}'").into()),
        size => Ok(size),
    }
}

/// A number with a unit, or a product of such (`2x3K`).
fn number(text: &str) -> Result<u64, Error> {
    text.split('x').try_fold(1u64, |product, factor| {
        let wrong = || Error::from(format!("invalid number: '{text}'"));
        let digits = factor.len() - factor.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = factor[..digits].parse().map_err(|_| wrong())?;
        let unit = &factor[digits..];
        let power = |letter: &str| ["k", "m", "g", "t", "p", "e"].iter().position(|unit| *unit == letter);
        let size = match unit.to_ascii_lowercase().as_str() {
            "" | "c" => 1,
            "w" => 2,
            "b" => 512,
            lower => {
                let (letter, base) = match lower.strip_suffix("ib") {
                    Some(letter) => (letter, 1024u64),
                    None => lower.strip_suffix('b').map_or((lower, 1024), |letter| (letter, 1000)),
                };
                let power = power(letter).ok_or_else(wrong)?;
                u32::try_from(power + 1).ok().and_then(|power| base.checked_pow(power)).ok_or_else(wrong)?
            }
        };
        number.checked_mul(size).and_then(|number| number.checked_mul(product)).ok_or_else(wrong)
    })
}

fn run(operands: &Operands) -> cli::Outcome {
    let has = |name: &str| operands.conversions.iter().any(|conversion| conversion == name);
    let failed = |path: &str, e: io::Error| Error::from(format!("failed to open '{path}': {}", cli::reason(&e)));
    // The streams are used without a buffer of their own, so that what is not copied stays for others to read.
    let mut input = match &operands.input {
        Some(path) => ManuallyDrop::new(File::open(path).map_err(|e| failed(path, e))?),
        // SAFETY: the standard streams are open for as long as the process lives, and are not closed here.
        None => ManuallyDrop::new(unsafe { File::from_raw_fd(0) }),
    };
    let mut output = match &operands.output {
        Some(path) => {
            let mut how = File::options();
            how.write(true).append(operands.append).create(!has("nocreat")).create_new(has("excl"));
            ManuallyDrop::new(how.open(path).map_err(|e| failed(path, e))?)
        }
        // SAFETY: as above.
        None => ManuallyDrop::new(unsafe { File::from_raw_fd(1) }),
    };
    if let Some(path) = &operands.output
        && !operands.append
    {
        if !has("notrunc") {
            output.set_len(operands.seek).map_err(|e| failed(path, e))?;
        }
        output.seek(SeekFrom::Start(operands.seek))?;
    } else if operands.seek > 0 && !operands.append {
        let place = i64::try_from(operands.seek)?;
        let sought = output.seek(SeekFrom::Current(place));
        sought.map_err(|e| format!("'standard output': cannot seek: {}", cli::reason(&e)))?;
    }
    let name = operands.input.as_deref().unwrap_or("standard input");
    let reading = |e: io::Error| Error::from(format!("error reading '{name}': {}", cli::reason(&e)));
    if operands.skip > 0 && (operands.input.is_none() || input.seek(SeekFrom::Start(operands.skip)).is_err()) {
        io::copy(&mut (&*input).take(operands.skip), &mut io::sink()).map_err(reading)?;
    }
    let began = Instant::now();
    let mut buffer = vec![0; PIECE];
    let (mut total, mut written) = (0u64, 0u64);
    loop {
        let most = operands.limit.map_or(u64::MAX, |limit| limit - total).min(PIECE as u64) as usize;
        let length = fill(&mut input, &mut buffer[..most]).map_err(reading)?;
        let piece = &mut buffer[..length];
        total += length as u64;
        convert(piece, has("lcase"), has("ucase"), has("swab"));
        output.write_all(piece).map_err(writing)?;
        written += length as u64;
        if length < most || most == 0 {
            break;
        }
    }
    if has("sync") {
        let missing = total.next_multiple_of(operands.ibs) - total;
        written += io::copy(&mut io::repeat(0).take(missing), &mut *output).map_err(writing)?;
    }
    if has("fsync") || has("fdatasync") {
        output.sync_all()?;
    }
    if operands.status != "none" {
        report(operands, total, written, began.elapsed().as_secs_f64());
    }
    Ok(0)
}

fn writing(e: io::Error) -> Error {
    format!("writing output: {}", cli::reason(&e)).into()
}

/// Reads until the buffer is full or the input ends. Devices without end are read like files.
fn fill(input: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(length)
}

fn convert(bytes: &mut [u8], lower: bool, upper: bool, swap: bool) {
    if lower {
        bytes.make_ascii_lowercase();
    }
    if upper {
        bytes.make_ascii_uppercase();
    }
    if swap {
        bytes.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    }
}

fn report(operands: &Operands, total: u64, written: u64, seconds: f64) {
    let records = |bytes: u64, block: u64| format!("{}+{}", bytes / block, u8::from(!bytes.is_multiple_of(block)));
    eprintln!("{} records in\n{} records out", records(total, operands.ibs), records(written, operands.obs));
    if operands.status != "noxfer" {
        let plural = if written == 1 { "" } else { "s" };
        let speed = written as f64 / seconds.max(1e-9) / 1e6;
        eprintln!("{written} byte{plural} copied, {seconds:.6} s, {speed:.1} MB/s");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(input: &[u8], old: &[u8], arguments: &[&str]) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::write(&from, input).unwrap();
        std::fs::write(&to, old).unwrap();
        let mut all = vec![format!("if={}", from.display()), format!("of={}", to.display()), "status=none".into()];
        all.extend(arguments.iter().map(|argument| argument.to_string()));
        run(&parse(&all).unwrap()).unwrap();
        std::fs::read(&to).unwrap()
    }

    #[test]
    fn blocks_are_copied() {
        assert_eq!(copy(b"0123456789", b"", &["bs=3", "count=2", "skip=1"]), b"345678");
        assert_eq!(copy(b"0123456789", b"", &["bs=3", "count=4B", "skip=1B"]), b"1234");
        assert_eq!(copy(b"ab", b"xxxxx", &["bs=1", "seek=2"]), b"xxab");
        assert_eq!(copy(b"ab", b"xxxxx", &["bs=1", "seek=2", "conv=notrunc"]), b"xxabx");
        assert_eq!(copy(b"ab", b"xx", &["oflag=append", "conv=notrunc"]), b"xxab");
        assert_eq!(copy(b"abc", b"", &["bs=2", "conv=sync,ucase"]), b"ABC\0");
        assert_eq!(copy(b"abcde", b"", &["conv=swab"]), b"badce");
        let large = vec![7; PIECE * 2 + 5];
        assert_eq!(copy(&large, b"", &["bs=1G"]), large);
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(number("2x3K").unwrap(), 6144);
        assert_eq!(number("1MB").unwrap(), 1_000_000);
        assert_eq!(number("1MiB").unwrap(), 1 << 20);
        for wrong in ["", "K", "1q", "99999999999999999999", "16E1", "99E"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for wrong in ["x", "conv=ascii", "bs=0", "iflag=x", "y=1"] {
            assert!(parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
