//! `curl` and `wget`: commands of the shell. The first word says which command this instance is.

fn main() {
    command::start();
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    std::process::exit(transfers::run(&words));
}
