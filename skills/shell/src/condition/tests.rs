use std::fs;

use super::*;
use crate::expand::Reach;
use crate::expand::tests::{Directory, Shell, files};

fn ask(args: &[&str]) -> Result<bool, String> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let mut shell = files();
    let result = test(&mut shell, &args);
    result.map_err(|stop| {
        assert_eq!((stop.code, stop.reach), (2, Reach::Command));
        stop.message
    })
}

/// As `test` of bash 5.2 answers.
#[test]
fn arguments() {
    let cases: &[(&[&str], Result<bool, &str>)] = &[
        (&[], Ok(false)),
        (&["x"], Ok(true)),
        (&[""], Ok(false)),
        (&["-n"], Ok(true)),
        (&["!", ""], Ok(true)),
        (&["-n", ""], Ok(false)),
        (&["-z", ""], Ok(true)),
        (&["a", "=", "a"], Ok(true)),
        (&["a", "==", "b"], Ok(false)),
        (&["a", "!=", "b"], Ok(true)),
        (&["b", ">", "a"], Ok(true)),
        (&["1", "-eq", "01"], Ok(true)),
        (&[" 7 ", "-gt", "5"], Ok(true)),
        (&["-3", "-le", "-3"], Ok(true)),
        (&["=", "=", "="], Ok(true)),
        (&["!", "=", "!"], Ok(true)),
        (&["(", "=", ")"], Ok(false)),
        (&["(", "a", ")"], Ok(true)),
        (&["!", "a", "=", "b"], Ok(true)),
        (&["!", "(", "a", ")"], Ok(false)),
        (&["(", "!", "a", ")"], Ok(false)),
        (&["!", "!", "a"], Ok(true)),
        (&["a", "-a", ""], Ok(false)),
        (&["a", "-o", ""], Ok(true)),
        (&["a", "=", "a", "-a", "b", "=", "c"], Ok(false)),
        (&["a", "=", "a", "-o", "b", "=", "c", "-a", ""], Ok(true)),
        (&["(", "a", "=", "b", ")", "-o", "(", "c", "=", "c", ")"], Ok(true)),
        (&["!", "-e", "nope", "-a", "-d", "d1"], Ok(true)),
        (&["1", "-eq", "a"], Err("a: integer expression expected")),
        (&["a", "b"], Err("a: unary operator expected")),
        (&["1", "-xx", "2"], Err("-xx: binary operator expected")),
        (&["a", "b", "c", "d", "e"], Err("too many arguments")),
        (&["(", "a"], Err("(: unary operator expected")),
    ];
    for (args, expected) in cases {
        assert_eq!(ask(args), expected.map_err(str::to_owned), "{args:?}");
    }
}

#[test]
fn files_and_variables() {
    let cases: &[(&[&str], bool)] = &[
        (&["-f", "a.txt"], true),
        (&["-d", "a.txt"], false),
        (&["-e", "nope"], false),
        (&["-e", ""], false),
        (&["-L", "link"], true),
        (&["-d", "link"], true),
        (&["-f", "link/a.txt"], true),
        (&["-s", "a.txt"], false),
        (&["-r", "a.txt"], true),
        (&["-w", "a.txt"], true),
        (&["-x", "a.txt"], false),
        (&["-x", "d1"], true),
        (&["-c", "/dev/null"], true),
        (&["-f", "/dev/null"], false),
        (&["d1", "-ef", "link"], true),
        (&["a.txt", "-ef", "./d1/../a.txt"], true),
        (&["a.txt", "-ef", "b.txt"], false),
        (&["nope", "-ef", "nope"], false),
        (&["a.txt", "-nt", "nope"], true),
        (&["nope", "-ot", "a.txt"], true),
        (&["nope", "-nt", "a.txt"], false),
        (&["-v", "x"], true),
        (&["-v", "nope"], false),
        (&["-v", "sparse"], false),
        (&["-v", "sparse[2]"], true),
        (&["-v", "m[a b]"], true),
        (&["-v", "3"], true),
        (&["-v", "4"], false),
        (&["-t", "0"], false),
    ];
    for (args, expected) in cases {
        assert_eq!(ask(args), Ok(*expected), "{args:?}");
    }
}

#[test]
fn programs_are_known_by_their_content() {
    let Directory(path) = &Directory::new();
    for (name, content) in [("script", "#!/bin/sh\n"), ("module", "\0asm\x01"), ("text", "hello")] {
        fs::write(path.join(name), content).expect("a file");
    }
    let cwd = path.to_str().expect("a name in UTF-8");
    let executable = |name| file::is(cwd, &UnaryPredicate::FileExistsAndIsExecutable, name);
    assert_eq!(["script", "module", "text"].map(executable), [true, true, false]);
}

/// The condition between `[[` and `]]`, parsed as the shell does.
fn condition(source: &str) -> ExtendedTestExpr {
    use brush_parser::ast::Command;
    let source = format!("[[ {source} ]]");
    let options = brush_parser::ParserOptions::default();
    let mut program = brush_parser::Parser::new(source.as_bytes(), &options).parse_program().expect("a condition");
    match program.complete_commands.remove(0).0.remove(0).0.first.seq.remove(0) {
        Command::ExtendedTest(test, _) => test.expr,
        other => panic!("{other} is no condition"),
    }
}

/// As bash 5.2 answers.
#[test]
fn extended() {
    let cases = [
        ("foo == f*", true),
        (r#"foo == "f*""#, false),
        ("foo == $star", true),
        (r#"foo == "$star""#, false),
        ("foo == @(foo|bar)", true),
        ("foo != f*", false),
        ("foo == !(bar)", true),
        (r#""a b" == a\ b"#, true),
        ("ab == a* && ab == *b && ab == ??", true),
        ("3 -lt 10 && n+1 -eq 6", true),
        ("n -eq 4 || sparse[2] -eq 0", true),
        ("-z $nope && ! -n $nope", true),
        ("( a == a ) && b < c", true),
        ("! a == b", true),
        ("b > a", true),
        ("-v a[1]", true),
        ("-v a[5]", false),
        ("$n", true),
        ("$e", false),
        ("-f a.txt && ! -d a.txt", true),
    ];
    for (source, expected) in cases {
        assert_eq!(extended_test(&mut files(), &condition(source)), Ok(expected), "{source}");
    }
}

#[test]
fn expressions_fill_the_match() {
    let cases: &[(&str, Option<&[&str]>)] = &[
        (r#""a b" =~ ^a\ (b)$"#, Some(&["a b", "b"])),
        ("2024-01-02 =~ ^([0-9]{4})-([0-9]{2})", Some(&["2024-01", "2024", "01"])),
        (r#"a.b =~ "a.b""#, Some(&["a.b"])),
        (r#"axb =~ "a.b""#, None),
        (r#"axb =~ a"."b"#, None),
        ("axb =~ a.b", Some(&["axb"])),
        ("abc =~ (z)?", Some(&["", ""])),
        ("foo123 =~ [[:alpha:]]+([[:digit:]]+)", Some(&["foo123", "123"])),
        ("a-b =~ [a-]-", Some(&["a-"])),
        ("a =~ ^(a|b)$", Some(&["a", "a"])),
        ("$q =~ t.s", Some(&["t's"])),
        (r"user@host.com =~ ^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$", Some(&["user@host.com"])),
        ("$x =~ ^$star", None),
        ("Zoë7 =~ ^[[:alpha:]]+", Some(&["Zoë"])),
        ("Zoë-É =~ [^[:alnum:]]([[:upper:]])", Some(&["-É", "É"])),
        ("é =~ [[:upper:]]", None),
    ];
    for (source, expected) in cases {
        let mut shell = files().var("star", "z+");
        let result = extended_test(&mut shell, &condition(source));
        assert_eq!(result, Ok(expected.is_some()), "{source}");
        let groups = shell.get("BASH_REMATCH").map(|value| value.elements()).unwrap_or_default();
        assert_eq!(groups, expected.unwrap_or_default(), "{source}");
    }
    for (source, expected) in
        [("É =~ é", true), ("é =~ ^É$", true), ("É =~ [é]", true), ("ÉÀ =~ ^[[:lower:]]+$", true), ("É =~ e", false)]
    {
        assert_eq!(extended_test(&mut files(), &condition(source)), Ok(false), "{source}");
        let mut shell = files().option(Opt::Nocasematch);
        assert_eq!(extended_test(&mut shell, &condition(source)), Ok(expected), "{source}");
    }
    let mut shell = Shell::new().var("open", "(");
    let wrong = extended_test(&mut shell, &condition("x =~ $open")).expect_err("an open group");
    assert_eq!((wrong.code, wrong.reach), (2, Reach::Command));
}

#[test]
fn nesting_is_limited() {
    let parentheses: Vec<String> = ["("; 10_000].iter().chain(&["a"]).map(|arg| (*arg).to_owned()).collect();
    let stop = test(&mut Shell::new(), &parentheses).expect_err("too deep");
    assert_eq!(stop.message, "nested too deeply");
    let mut negated = vec!["!".to_owned(); 100_000];
    negated.extend(["a", "=", "a"].map(str::to_owned));
    assert_eq!(test(&mut Shell::new(), &negated), Ok(true));
    let chain = condition(&["a == a"; 1000].join(" && "));
    assert_eq!(extended_test(&mut Shell::new(), &chain).map_err(|stop| stop.code), Err(2));
}
