//! `bc`: calculates with decimal numbers of any length. The language is that of POSIX with what GNU's bc adds.

mod lexer;
mod math;
mod number;
mod parser;
mod print;
mod program;
mod run;

use std::io::{self, BufReader, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli;
use lexer::{File, Lexer};
use parser::{Parser, Wrong};
use program::Item;
use run::{Flow, Machine, Stop};

const USAGE: &str = "Usage: bc [-l] [FILE]...
Calculate with decimal numbers of any length: the files, then standard input.

  -l               with s(x), c(x), a(x), l(x), e(x) and j(n,x), and scale=20
  scale=10         digits behind the point of a quotient (0)
  ibase=16, obase=2    the base of input and of output
  + - * / % ^  sqrt(x)  length(x)  scale(x)  read()  = += ++ --  == < && ||  !
  if, else, while, for, break, continue, define f(x) { auto y; return (x) }, print, halt, quit
It ends with 1 if a line could not be read or calculated; the others are done nevertheless.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut library = false;
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('l') | Long("mathlib") => library = true,
                // There is no greeting, and no warning of what GNU's bc adds.
                Short('q' | 's' | 'w' | 'i') | Long("quiet" | "standard" | "warn" | "interactive") => {}
                Value(file) => {
                    let name = file.to_string_lossy().into_owned();
                    let reader = BufReader::new(cli::open(&name).map_err(cli::with_path(&name))?);
                    files.push(File { name, reader: Box::new(reader) });
                }
                other => return Err(other.unexpected().into()),
            }
        }
        files.push(File { name: "(standard_in)".into(), reader: Box::new(io::stdin().lock()) });
        calculate(Lexer::new(files), library, io::stdout().lock())
    })
}

fn calculate(lexer: Lexer, library: bool, out: impl Write) -> cli::Outcome {
    let mut parser = Parser::new(lexer);
    let mut machine = Machine::new(out, library);
    let mut code = 0;
    loop {
        match parser.item() {
            Ok(Item::End) => break,
            Ok(Item::Function(name, function)) => machine.define(name, function),
            Ok(Item::Statements(statements)) => match machine.run(&statements, &mut parser.lexer) {
                Ok(Flow::Halt) => break,
                Ok(_) => {}
                Err(Stop::Failed(why)) => {
                    machine.flush()?;
                    eprintln!("bc: {}: {why}", parser.lexer.place());
                    code = 1;
                }
                Err(Stop::Write(error)) => return Err(error.into()),
            },
            Err(Wrong::Syntax(why)) => {
                machine.flush()?;
                eprintln!("bc: {}: {why}", parser.lexer.place());
                parser.recover();
                code = 1;
            }
            Err(Wrong::Quit) => break,
            Err(Wrong::Read(error)) => return Err(error.into()),
        }
    }
    machine.flush()?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a program, and its exit code.
    fn bc(program: &str, library: bool) -> (String, i32) {
        // A build without optimisation needs more of a stack than the sandbox has.
        let program = program.to_owned();
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(move || run_program(&program, library));
        thread.unwrap().join().unwrap()
    }

    fn run_program(program: &str, library: bool) -> (String, i32) {
        let reader = Box::new(io::Cursor::new(program.as_bytes().to_vec()));
        let lexer = Lexer::new(vec![File { name: "(standard_in)".into(), reader }]);
        let mut out = Vec::new();
        let code = calculate(lexer, library, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), code)
    }

    #[test]
    fn programs() {
        for (program, printed) in [
            ("1+2*3\n", "7\n"),
            ("-2^2; 2^3^2\n", "4\n512\n"),
            ("a=3\na++; a; ++a; a--\n", "3\n4\n5\n5\n"),
            ("(a=3)\n", "3\n"),
            ("1 < 2; 2 == 3; !0 && 1\n", "1\n0\n1\n"),
            ("ibase=16; FF; A.8\nibase=A; 10\n", "255\n10.5\n10\n"),
            ("obase=2; 10; -5\n", "1010\n-101\n"),
            ("for (i = 0; i < 3; i++) i\n", "0\n1\n2\n"),
            ("while (1) { n += 1; if (n == 3) break }\nn\n", "3\n"),
            ("if (0) 1 else 2\n", "2\n"),
            ("define f(n) {\n  if (n < 2) return (1)\n  return (n * f(n - 1))\n}\nf(20)\n", "2432902008176640000\n"),
            ("define void g(x) { print x, \"\\n\" }\ng(7)\n", "7\n"),
            ("define h(a[]) { a[0] = 9; return (a[1]) }\nb[1] = 4; h(b[]); b[0]\n", "4\n0\n"),
            ("define k(*a[]) { a[0] = 9 }\nx = k(b[]); b[0]\n", "9\n"),
            ("define m(x) { auto y; y = x; return (y) }\ny = 5; z = m(1); y\n", "5\n"),
            ("\"text\"; \"more\n\"\n", "textmore\n"),
            ("scale=3; 1/3; last*3; .\n", ".333\n.999\n.999\n"),
            ("x = read()\n12\nx + 1\n", "13\n"),
            ("/* a\ncomment */ 1 # and\n", "1\n"),
            ("1\n2; if (0) quit\n3\n", "1\n"),
            ("2^230\n", "17254365866976409468586889655692563631127772430425966387906310559498\\\n24\n"),
        ] {
            assert_eq!(bc(program, false), (printed.to_owned(), 0), "{program}");
        }
        assert_eq!(bc("scale=5; e(1); 4*a(1)\n", true).0, "2.71828\n3.14156\n");
    }

    #[test]
    fn a_long_sum_is_no_deep_one() {
        let sum = vec!["1"; 100_000].join("+") + "\n";
        assert_eq!(bc(&sum, false), ("100000\n".to_owned(), 0));
    }

    #[test]
    fn an_error_ends_its_line_and_no_other() {
        for wrong in ["1/0", "1 +", "2^2^30", "f(1)", "sqrt(-1)", "a[-1]", "}", "?", "e(1)", "(1", "x[16777216]=1"] {
            let program = format!("{wrong}\n1+1\n");
            assert_eq!(bc(&program, false), ("2\n".to_owned(), 1), "{wrong}");
        }
        for deep in [
            format!("{}1{}\n", "(".repeat(100_000), ")".repeat(100_000)),
            format!("{}1\n", "-".repeat(100_000)),
            format!("{}1\n", "2^".repeat(100_000)),
            format!("{}1{}\n", "{".repeat(100_000), "}".repeat(100_000)),
            "define f(n) { return (f(n + 1)) }\nf(1)\n".to_owned(),
        ] {
            assert_eq!(bc(&deep, false), (String::new(), 1));
        }
    }
}
