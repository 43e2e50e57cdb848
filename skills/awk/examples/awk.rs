//! The interpreter as a command of the host, to compare it with others: `cargo run -p awk --example awk -- PROGRAM FILE…`.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use awk::{Child, Commands};

struct Host;

struct Started(std::process::Child);

impl Child for Started {
    fn wait(&mut self) -> i32 {
        self.0.wait().ok().and_then(|status| status.code()).unwrap_or(1)
    }
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

impl Commands for Host {
    fn run(&mut self, command: &str) -> io::Result<i32> {
        Ok(shell(command).status()?.code().unwrap_or(1))
    }

    fn reader(&mut self, command: &str) -> io::Result<(Box<dyn Read>, Box<dyn Child>)> {
        let mut child = shell(command).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((Box::new(out), Box::new(Started(child))))
    }

    fn writer(&mut self, command: &str) -> io::Result<(Box<dyn Write>, Box<dyn Child>)> {
        let mut child = shell(command).stdin(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((Box::new(input), Box::new(Started(child))))
    }
}

fn main() {
    // Without optimization, functions take more of the stack than in the sandbox.
    let run = || awk::command(std::env::args().collect(), std::env::vars().collect(), &mut Host);
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(run);
    let code = thread.and_then(|thread| thread.join().map_err(|_| io::ErrorKind::Other.into())).unwrap_or(134);
    std::process::exit(code);
}
