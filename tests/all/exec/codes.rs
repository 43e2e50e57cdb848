//! Exit codes of programs that were not built for kiso: for WASI preview 1, and for later versions that have exit codes.

use crate::harness::{Home, root};

/// A home with a program of `tests/guests/wat` as a command; in its source, `was` is replaced by `is`.
fn with_program(home: &Home, name: &str, wat: &str, (was, is): (&str, &str)) {
    let text = std::fs::read_to_string(root().join("tests/guests/wat").join(wat)).unwrap();
    assert!(text.contains(was), "{wat} does not exit with {was}");
    let wasm = wat::parse_str(text.replace(was, is)).unwrap();
    let file = home.file(&format!("{name}.wasm"), wasm);
    home.kiso(&["skill", "add", file.to_str().unwrap(), "--grant", "none"]).ok().prints(&["WASI command"]);
}

#[test]
fn a_program_for_preview_1_ends_with_its_own_code() {
    let home = Home::new();
    // As on Linux, only the lowest eight bits count.
    for (code, seen) in [("0", 0), ("3", 3), ("126", 126), ("255", 255), ("256", 0), ("300", 44), ("-1", 255)] {
        let name = format!("ends-{}", code.replace('-', "minus-"));
        with_program(&home, &name, "preview1-exit3.wat", ("i32.const 3", &format!("i32.const {code}")));
        home.shell(&format!("{name}; echo it ended with $?")).ok().prints(&[&format!("it ended with {seen}\n")]);
    }
    home.shell("ends-3").exit(3);
    home.shell("set -e; ends-255; echo not here").exit(255);
    home.shell("ends-3 | cat; ends-0 && ends-256 && echo went well").ok().prints(&["went well"]);
    home.shell("set -o pipefail; ends-3 | cat").exit(3);
    // As a skill, it returns an answer, or an error with the code.
    home.kiso(&["skill", "run", "ends-0"]).ok();
    home.kiso(&["skill", "run", "ends-256"]).ok();
    home.kiso(&["skill", "run", "ends-3"]).exit(1).says(&["exit code 3"]);
    home.kiso(&["skill", "info", "ends-3"]).ok();
    home.kiso(&["skill", "audit", "ends-3"]).ok();
}

#[test]
fn a_component_that_knows_codes_ends_with_its_own() {
    let home = Home::new();
    with_program(&home, "ends", "exit-with-code.wat", ("i32.const 7", "i32.const 200"));
    home.shell("ends; echo it ended with $?").ok().prints(&["it ended with 200\n"]);
    home.kiso(&["skill", "run", "ends"]).exit(1).says(&["exit code 200"]);
    home.kiso(&["skill", "info", "ends"]).ok();
}
