//! A wasi:cli/command that rustc builds without cargo: answers with what it read, or exits with 3 where the input has
//! `"fail":true`.

use std::io::Read;

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("standard input is text");
    println!("read {} bytes: {}", input.len(), input.trim());
    if input.replace(' ', "").contains("\"fail\":true") {
        eprintln!("asked to fail");
        std::process::exit(3);
    }
}
