//! `gzip`, `xz` and `bzip2`, and the names under which they unpack.

pub mod format;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use format::Format;

const USAGE: &str = "Usage: gzip | xz | bzip2 [OPTION]... [FILE]...
Compress files in their place, or with -d unpack them. gunzip, unxz and bunzip2 unpack; zcat, xzcat and bzcat unpack to
standard output.

  -c  -k  -f  -n  -q   to standard output, keep the file, overwrite, no name, quiet
  -d  -t  -l  -0..-9   unpack, test, list (gzip), fast to small
  -r  -S SUFFIX -v     trees, another suffix than .gz, .xz or .bz2, say what is done
";

struct Options {
    format: Format,
    unpack: bool,
    to_stdout: bool,
    keep: bool,
    force: bool,
    test: bool,
    list: bool,
    verbose: bool,
    recursive: bool,
    level: u32,
    suffix: String,
}

pub fn main(arguments: Vec<String>) -> i32 {
    let name = cli::name(&arguments);
    cli::run(arguments, USAGE, 1, |mut parser| {
        let format = match name.as_str() {
            "gzip" | "gunzip" | "zcat" => Format::Gzip,
            "xz" | "unxz" | "xzcat" => Format::Xz,
            _ => Format::Bzip2,
        };
        let to_stdout = name.ends_with("cat");
        let mut options = Options {
            format,
            unpack: to_stdout || name.contains("un"),
            to_stdout,
            keep: false,
            force: to_stdout,
            test: false,
            list: false,
            verbose: false,
            recursive: false,
            level: format.usual_level(),
            suffix: format.suffix().into(),
        };
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('d') | Long("decompress" | "uncompress") => options.unpack = true,
                Short('c') | Long("stdout" | "to-stdout") => options.to_stdout = true,
                Short('k') | Long("keep") => options.keep = true,
                Short('f') | Long("force") => options.force = true,
                Short('t') | Long("test") => (options.test, options.unpack) = (true, true),
                Short('l') | Long("list") => options.list = true,
                Short('v') | Long("verbose") => options.verbose = true,
                Short('r') | Long("recursive") => options.recursive = true,
                Short('S') | Long("suffix") => options.suffix = cli::value(&mut parser)?,
                Short(digit @ '0'..='9') => options.level = digit.to_digit(10).unwrap_or(6),
                Long("fast") => options.level = 1,
                Long("best") => options.level = 9,
                Short('z') | Long("compress") => options.unpack = false,
                Short('N') | Long("name") => return Err("-N: names are not kept in archives here".into()),
                Short('n' | 'q') | Long("no-name" | "quiet") => {}
                // There is one thread, and the memory is the task's.
                Short('T' | 'M') | Long("threads" | "memlimit") => drop(cli::value(&mut parser)?),
                Short('e' | 's') | Long("extreme" | "small") => {}
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.list && format != Format::Gzip {
            return Err("-l is for gzip alone; -t tests a file".into());
        }
        if options.list {
            println!("         compressed        uncompressed  ratio uncompressed_name");
        }
        let mut code = 0;
        for file in cli::files_or_stdin(files) {
            for file in expand(&options, file) {
                let done = if file == "-" { stream(&options) } else { one(&options, &file) };
                if let Err(e) = done {
                    eprintln!("{name}: {e}");
                    // A file that was left alone is a warning.
                    let left = ["-- ignored", "-- unchanged", "not overwritten"]
                        .iter()
                        .any(|end| e.to_string().ends_with(end));
                    code = if left && code != 1 { 2 } else { 1 };
                }
            }
        }
        Ok(code)
    })
}

fn expand(options: &Options, file: String) -> Vec<String> {
    if !options.recursive || file == "-" {
        return vec![file];
    }
    let walk = walkdir::WalkDir::new(&file).sort_by_file_name().into_iter().flatten();
    walk.filter(|entry| entry.file_type().is_file()).map(|entry| entry.path().to_string_lossy().into_owned()).collect()
}

fn stream(options: &Options) -> Result<(), Error> {
    let input = io::stdin().lock();
    if options.test {
        return convert(options, input, io::sink(), "stdin");
    }
    convert(options, input, io::stdout().lock(), "stdin")
}

fn convert(options: &Options, mut input: impl Read, mut output: impl Write, name: &str) -> Result<(), Error> {
    if options.unpack {
        let mut input = BufReader::with_capacity(64 << 10, input);
        let head = io::BufRead::fill_buf(&mut input).map_err(cli::with_path(name))?;
        if head.is_empty() {
            return Err(format!("{name}: unexpected end of file").into());
        }
        if !options.format.is(head) {
            if options.force && options.to_stdout {
                io::copy(&mut input, &mut output).map_err(cli::with_path(name))?;
                return Ok(());
            }
            return Err(format!("{name}: not in {} format", options.format.name()).into());
        }
        io::copy(&mut options.format.decoder(input), &mut output).map_err(|e| broken(name, e))?;
    } else {
        options.format.encode(&mut input, &mut output, options.level).map_err(cli::with_path(name))?;
    }
    output.flush()?;
    Ok(())
}

fn broken(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("{name}: unexpected end of file").into(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("{name}: invalid compressed data--format violated ({error})").into()
        }
        _ => cli::with_path(name)(error),
    }
}

fn one(options: &Options, file: &str) -> Result<(), Error> {
    let meta = std::fs::metadata(file).map_err(cli::with_path(file))?;
    if meta.is_dir() {
        return Err(format!("{file} is a directory -- ignored").into());
    }
    let input = File::open(file).map_err(cli::with_path(file))?;
    if options.list {
        return list(file, meta.len());
    }
    if options.test {
        return convert(options, input, io::sink(), file);
    }
    if options.to_stdout {
        return convert(options, input, io::stdout().lock(), file);
    }
    let target = if options.unpack {
        match file.strip_suffix(&options.suffix) {
            Some(target) => target.to_owned(),
            None => match file.strip_suffix(options.format.short_suffix()) {
                Some(stem) => format!("{stem}.tar"),
                None => return Err(format!("{file}: unknown suffix -- ignored").into()),
            },
        }
    } else if file.ends_with(&options.suffix) {
        return Err(format!("{file} already has {} suffix -- unchanged", options.suffix).into());
    } else {
        format!("{file}{}", options.suffix)
    };
    if !options.force && std::path::Path::new(&target).exists() {
        return Err(format!("{target} already exists; not overwritten").into());
    }
    let output = BufWriter::with_capacity(64 << 10, File::create(&target).map_err(cli::with_path(&target))?);
    if let Err(e) = convert(options, input, output, file) {
        // Half a file is worse than none.
        let _ = std::fs::remove_file(&target);
        return Err(e);
    }
    if !options.keep {
        std::fs::remove_file(file).map_err(cli::with_path(file))?;
    }
    if options.verbose {
        eprintln!("{file}:\t-- {} {target}", if options.keep { "created" } else { "replaced with" });
    }
    Ok(())
}

fn list(file: &str, packed: u64) -> Result<(), Error> {
    let input = File::open(file).map_err(cli::with_path(file))?;
    let unpacked =
        io::copy(&mut Format::Gzip.decoder(BufReader::new(input)), &mut io::sink()).map_err(|e| broken(file, e))?;
    let ratio = if unpacked == 0 { 0.0 } else { 100.0 * (1.0 - packed as f64 / unpacked as f64) };
    println!("{packed:19} {unpacked:19} {ratio:5.1}% {}", file.strip_suffix(".gz").unwrap_or(file));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(unpack: bool) -> Options {
        options_for(Format::Gzip, unpack)
    }

    fn options_for(format: Format, unpack: bool) -> Options {
        Options {
            format,
            unpack,
            to_stdout: true,
            keep: true,
            force: false,
            test: false,
            list: false,
            verbose: false,
            recursive: false,
            level: 6,
            suffix: format.suffix().into(),
        }
    }

    #[test]
    fn every_format_comes_back_as_it_was() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(|n| (n / 7).to_string().into_bytes()).collect();
        for format in [Format::Gzip, Format::Xz, Format::Bzip2] {
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            convert(&options_for(format, false), text.as_slice(), &mut packed, "text").unwrap();
            assert!(format.is(&packed) && packed.len() < text.len() / 3, "{}: {}", format.name(), packed.len());
            // Two files behind each other are one.
            packed.extend(packed.clone());
            convert(&options_for(format, true), packed.as_slice(), &mut back, "text").unwrap();
            assert_eq!(back.len(), 2 * text.len());
            assert!(back.starts_with(&text) && back.ends_with(&text));
            for cut in [packed.len() / 4, packed.len() / 2 - 1] {
                let error =
                    convert(&options_for(format, true), &packed[..cut], io::sink(), "f").unwrap_err().to_string();
                assert!(error.starts_with("f: unexpected end of file"), "{}: {error}", format.name());
            }
            for at in (0..packed.len() / 2).step_by(1 + packed.len() / 40) {
                let mut broken = packed.clone();
                broken[at] ^= 0x55;
                // Some bytes say nothing. What is broken ends in words, and never in a panic.
                let _ = convert(&options_for(format, true), broken.as_slice(), io::sink(), "f");
            }
        }
    }

    /// The header asks for a dictionary of 4 GiB.
    #[test]
    fn a_dictionary_that_is_too_large_is_refused() {
        let mut packed = Vec::new();
        convert(&options_for(Format::Xz, false), b"some text".as_slice(), &mut packed, "text").unwrap();
        assert_eq!(packed[12..16], [2, 0, 0x21, 1], "the header of the block");
        packed[16] = 40;
        let sum = crc32(&packed[12..20]);
        packed[20..24].copy_from_slice(&sum.to_le_bytes());
        let error =
            convert(&options_for(Format::Xz, true), packed.as_slice(), io::sink(), "f").unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
        })
    }

    /// Takes so many bytes and then no more, like a disk.
    struct Bounded(usize);

    impl Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(bytes.len() <= 64 << 10, "more than a piece is held");
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn endless_data_is_unpacked_in_pieces() {
        let mut member = Vec::new();
        convert(&options(false), io::repeat(0).take(10 << 20), &mut member, "zeros").unwrap();
        struct Endless(Vec<u8>, usize);
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let count = (&self.0[self.1..]).read(into)?;
                self.1 = (self.1 + count) % self.0.len();
                Ok(count)
            }
        }
        let error = convert(&options(true), Endless(member, 0), Bounded(25 << 20), "endless").unwrap_err();
        assert!(error.to_string().starts_with("endless: "), "{error}");
    }

    #[test]
    fn what_is_cut_off_or_changed_is_an_error() {
        let mut packed = Vec::new();
        convert(&options(false), b"some text".as_slice(), &mut packed, "text").unwrap();
        let unpack = |bytes: &[u8]| convert(&options(true), bytes, io::sink(), "f").map_err(|e| e.to_string());
        assert_eq!(unpack(&packed), Ok(()));
        assert_eq!(unpack(&packed[..packed.len() - 3]), Err("f: unexpected end of file".into()));
        assert_eq!(unpack(b"plain"), Err("f: not in gzip format".into()));
        assert_eq!(unpack(b""), Err("f: unexpected end of file".into()));
        let at = packed.len() - 8;
        packed[at] ^= 1;
        assert!(unpack(&packed).unwrap_err().contains("format violated"));
    }
}
