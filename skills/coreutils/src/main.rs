//! The commands of kiso's shell in one component: `argv[0]` says which one this instance is.
//!
//! `table.rs` lists them. Most are the crates of uutils; the others have a file each in `src/`.

mod archive;
mod awk;
mod bc;
mod checksum;
mod chmod;
mod cli;
mod cmp;
mod column;
mod compress;
mod date;
mod dd;
mod df;
mod diff;
mod du;
mod env;
mod file;
mod find;
mod glob;
mod grep;
mod iconv;
mod identity;
mod install;
mod jq;
mod link;
mod list;
mod openssl;
mod patch;
mod posix;
mod rg;
mod sed;
mod small;
mod sort;
mod split;
mod stat;
mod table;
mod tar_command;
mod timeout;
mod tree;
mod which;
mod xargs;
mod xxd;
mod zip_command;

use table::Run;

fn main() {
    command::start();
    let mut arguments: Vec<_> = std::env::args_os().collect();
    let path = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some(option) = cli::without_effect(name, &arguments) {
        eprintln!("{name}: the option {option} is not supported here");
        std::process::exit(2);
    }
    cli::keep_equals(name, &mut arguments);
    let code = match table::find(name).map(|command| &command.run) {
        Some(Run::Uutils(messages, main)) => {
            // Their crate for temporary files asks the standard library where to put them, which panics on WASI.
            let _ = tempfile::env::override_temp_dir(std::path::Path::new("/tmp"));
            if let Err(e) = uucore::locale::setup_localization(messages) {
                eprintln!("{name}: {e}");
            }
            main(arguments.into_iter())
        }
        Some(Run::Own(main)) => main(arguments.drain(..).map(|a| a.to_string_lossy().into_owned()).collect()),
        None => {
            eprintln!("{name}: not one of the commands in this component");
            127
        }
    };
    std::process::exit(code)
}
