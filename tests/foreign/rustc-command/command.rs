//! A wasi:cli/command that rustc builds without cargo: prints its input, or exits with 3 if the input contains
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
