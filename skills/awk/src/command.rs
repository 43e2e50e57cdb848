//! The command line of `awk`.

use crate::interpret::{Settings, assignment, run};
use crate::{Commands, Program};

const USAGE: &str = "Usage: awk [OPTION]... 'PROGRAM' [FILE | NAME=VALUE]...
       awk [OPTION]... -f PROGRAMFILE [FILE | NAME=VALUE]...
Run an AWK program over the lines of the files or of standard input.

  -F FS              the separator of fields: a character, a regular expression, or t for a tab
  -v NAME=VALUE      assign before the program begins
  -f PROGRAMFILE     read the program from a file; may be given several times
  -e PROGRAM         a part of the program, beside -f
  -i inplace         replace each file by what is printed while it is read
  -k, --csv          read comma-separated values with quotes
  --                 the end of the options
";

/// Ends the command that is used wrongly, or whose program fails.
const FAILED: i32 = 2;

/// Levels of nested statements and expressions that all running functions may take together. Measured: an endless recursion
/// ends in an error, natively and in the sandbox, with room to spare.
const STACK: usize = 7_000;

#[derive(Default)]
struct Line {
    settings: Settings,
    program: Option<Vec<u8>>,
    operands: Vec<String>,
}

/// Runs `awk` with these arguments, the command's name first, and returns its exit code.
pub fn command(arguments: Vec<String>, environment: Vec<(String, String)>, commands: &mut dyn Commands) -> i32 {
    let mut arguments = arguments.into_iter();
    let name = arguments.next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let done = parsed(arguments.collect()).and_then(|line| match line {
        Ok(mut line) => {
            line.settings.environment = environment;
            line.settings.stack = STACK;
            line.settings.arguments = std::iter::once(name.clone()).chain(line.operands).collect();
            let program = Program::parse(&line.program.unwrap_or_default()).map_err(|e| e.to_string())?;
            run(&program, line.settings, commands).map_err(|e| e.to_string())
        }
        Err(text) => {
            print!("{}", text.replace("awk (kiso)", &format!("{name} (kiso)")));
            Ok(0)
        }
    });
    done.unwrap_or_else(|message| {
        eprintln!("{name}: {message}");
        FAILED
    })
}

/// The command line, or a text to print instead of running anything.
fn parsed(arguments: Vec<String>) -> Result<Result<Line, String>, String> {
    let mut line = Line::default();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next_if(|argument| argument.len() > 1 && argument.starts_with('-')) {
        if argument == "--" {
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
            let letter = match name {
                "field-separator" => 'F',
                "assign" => 'v',
                "file" => 'f',
                "source" => 'e',
                "include" => 'i',
                "csv" => 'k',
                "help" => return Ok(Err(USAGE.into())),
                "version" => return Ok(Err(version())),
                "posix"
                | "traditional"
                | "re-interval"
                | "characters-as-bytes"
                | "optimize"
                | "no-optimize"
                | "sandbox" => continue,
                _ => return Err(format!("unknown option '--{name}'; 'awk --help' lists them")),
            };
            let mut value =
                || value.clone().or_else(|| arguments.next()).ok_or_else(|| format!("'--{name}' needs a value"));
            line.option(letter, &mut value)?;
            continue;
        }
        let letters: Vec<char> = argument.chars().skip(1).collect();
        for (at, letter) in letters.iter().enumerate() {
            match letter {
                'h' => return Ok(Err(USAGE.into())),
                'V' => return Ok(Err(version())),
                'W' if argument == "-W" || argument == "-Wversion" => return Ok(Err(version())),
                'b' | 'c' | 'O' | 'P' | 'r' | 's' | 'S' | 'n' => continue,
                _ => {}
            }
            let rest: String = letters[at + 1..].iter().collect();
            let mut attached = !rest.is_empty();
            let mut value = || {
                if std::mem::take(&mut attached) {
                    return Ok(rest.clone());
                }
                arguments.next().ok_or_else(|| format!("'-{letter}' needs a value"))
            };
            if line.option(*letter, &mut value)? {
                break;
            }
        }
    }
    if line.program.is_none() {
        let Some(program) = arguments.next() else {
            return Err("a program is needed; 'awk --help' shows how".into());
        };
        line.program = Some(program.into_bytes());
    }
    line.operands = arguments.collect();
    Ok(Ok(line))
}

fn version() -> String {
    format!("awk (kiso) {}\n", env!("CARGO_PKG_VERSION"))
}

impl Line {
    /// Takes an option. `true`: with a value.
    fn option(&mut self, letter: char, value: &mut dyn FnMut() -> Result<String, String>) -> Result<bool, String> {
        match letter {
            'F' => {
                let text = value()?;
                let separator = if text == "t" { "\t".into() } else { text };
                self.settings.variables.push(("FS".into(), separator.into_bytes()));
            }
            'v' => {
                let text = value()?;
                let Some((name, text)) = assignment(&text) else {
                    return Err(format!("'-v {text}' is no assignment; write -v NAME=VALUE"));
                };
                self.settings.variables.push((name.into(), text.into()));
            }
            'f' => {
                let path = value()?;
                let mut source = Vec::new();
                let read = crate::stream::open(&path).and_then(|mut file| file.read_to_end(&mut source));
                read.map_err(|e| format!("{path}: {}", crate::interpret::reason(&e)))?;
                self.add(&source);
            }
            'e' => self.add(value()?.as_bytes()),
            'i' => match value()?.as_str() {
                "inplace" => self.settings.in_place = true,
                other => {
                    return Err(format!(
                        "'-i {other}' cannot be loaded; only 'inplace' is there, and -f reads a program"
                    ));
                }
            },
            'k' => {
                self.settings.csv = true;
                return Ok(false);
            }
            _ => return Err(format!("unknown option '-{letter}'; 'awk --help' lists them")),
        }
        Ok(true)
    }

    fn add(&mut self, source: &[u8]) {
        let program = self.program.get_or_insert_default();
        program.extend_from_slice(source);
        program.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        parsed(text.split(' ').map(str::to_owned).collect()).unwrap().unwrap()
    }

    #[test]
    fn options_end_at_the_program() {
        let line = line("-F= -vF=1 -v x=a=b prog -v file");
        assert_eq!(
            line.settings.variables,
            [("FS".into(), b"=".to_vec()), ("F".into(), b"1".to_vec()), ("x".into(), b"a=b".to_vec())]
        );
        assert_eq!(line.program.as_deref(), Some(&b"prog"[..]));
        assert_eq!(line.operands, ["-v", "file"]);
    }

    #[test]
    fn wrong_use_is_said() {
        for text in ["-x p", "-v", "-v 1 p", "--nothing p", "-i what p", ""] {
            let arguments = text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
            assert!(parsed(arguments).is_err(), "{text}");
        }
    }

    #[test]
    fn assignments_are_told_from_files() {
        assert_eq!(assignment("a_1=x=y"), Some(("a_1", "x=y")));
        assert_eq!(assignment("./a=b"), None);
        assert_eq!(assignment("1=b"), None);
    }
}
