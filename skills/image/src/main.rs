//! `image`: a skill, and commands of the shell. The first word says which command this instance is; without any other word it is the skill.
//!
//! Unlike the other bundled commands it does not use the crate `command`, whose interface to the host no skill is given. What it needs of
//! that is here.

use std::io::Read;

/// Bytes of a request.
const MAX_REQUEST: u64 = 1 << 20;

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
    let code = if words.len() <= 1 { skill(&words) } else { pictures::command::run(&words) };
    std::process::exit(code);
}

fn skill(words: &[String]) -> i32 {
    let name = words.first().map(|path| path.rsplit('/').next().unwrap_or_default());
    let mut request = String::new();
    let is_skill =
        name.is_none_or(|name| !["convert", "magick", "mogrify", "identify", "montage", "exiftool"].contains(&name));
    let read = is_skill && std::io::stdin().lock().take(MAX_REQUEST).read_to_string(&mut request).is_ok();
    if !read || request.trim().is_empty() {
        return pictures::command::run(words);
    }
    match pictures::call::answer(&request) {
        Ok(answer) => {
            use std::io::Write;
            i32::from(std::io::stdout().write_all(answer.as_bytes()).is_err())
        }
        Err(message) => {
            eprintln!("{message}");
            1
        }
    }
}
