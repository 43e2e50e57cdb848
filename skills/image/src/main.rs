//! `image`: commands of the shell. The first word says which command this instance is.
//!
//! Unlike the other bundled commands it does not use the crate `command`: WASI's own functions are enough for it.

fn main() {
    std::panic::set_hook(Box::new(|_| {
        let name = std::env::args().next().unwrap_or_default();
        eprintln!("{name}: the picture cannot be read: a mistake in the program that reads it");
        std::process::exit(1);
    }));
    // WASI has no working directory; the host names it here.
    if let Some(directory) = std::env::var_os("PWD").filter(|_| cfg!(target_os = "wasi")) {
        let _ = std::env::set_current_dir(directory);
    }
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    std::process::exit(pictures::command::run(&words));
}
