//! `awk`, whose commands run in the task's shell.

use std::io::{self, Read, Write};

use awk::{Child, Commands};
use command::process::{self, Input, Process, Refused};

pub fn main(arguments: Vec<String>) -> i32 {
    awk::command(arguments, process::environment(), &mut Shell)
}

struct Shell;

struct Started(Process);

impl Child for Started {
    fn wait(&mut self) -> i32 {
        self.0.wait()
    }
}

fn argv(command: &str) -> Vec<String> {
    ["sh", "-c", command].map(String::from).to_vec()
}

fn refused(refused: Refused) -> io::Error {
    io::Error::other(refused.message)
}

impl Commands for Shell {
    fn run(&mut self, command: &str) -> io::Result<i32> {
        let process = process::start(&argv(command), process::environment(), Input::Inherited).map_err(refused)?;
        Ok(process.wait())
    }

    fn reader(&mut self, command: &str) -> io::Result<(Box<dyn Read>, Box<dyn Child>)> {
        let (process, pipe) = process::start_reading(&argv(command), process::environment()).map_err(refused)?;
        Ok((Box::new(pipe), Box::new(Started(process))))
    }

    fn writer(&mut self, command: &str) -> io::Result<(Box<dyn Write>, Box<dyn Child>)> {
        let (process, pipe) = process::start_writing(&argv(command), process::environment()).map_err(refused)?;
        Ok((Box::new(pipe), Box::new(Started(process))))
    }
}
