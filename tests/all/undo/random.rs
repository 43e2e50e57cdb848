//! Random work that is undone run by run and redone.

use super::tree::Tree;
use super::{SESSION, line, tree};
use crate::harness::Home;

/// Number of runs, and of command lines in each.
const RUNS: usize = 8;
const LINES: usize = 25;

/// Pseudorandom numbers, the same for the same seed (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    /// The seed of `KISO_UNDO_SEED` or of the time; it is printed, so that a failure can be reproduced.
    pub(crate) fn seeded() -> Random {
        let given = std::env::var("KISO_UNDO_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed: u64 = given.unwrap_or_else(now);
        println!("KISO_UNDO_SEED={seed}");
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// The path of a file that may exist or not.
    fn file(&mut self) -> String {
        let name = format!("f{}", self.below(6));
        match self.below(3) {
            0 => name,
            _ => format!("{}/{name}", self.dir()),
        }
    }

    fn dir(&mut self) -> String {
        let name = format!("d{}", self.below(4));
        match self.below(3) {
            0 => format!("{name}/d{}", self.below(3)),
            _ => name,
        }
    }

    /// A command line that changes something, if its files exist.
    pub(crate) fn line(&mut self) -> String {
        let (file, other, dir, another, n) = (self.file(), self.file(), self.dir(), self.dir(), self.below(1_000));
        match self.below(22) {
            0..4 => format!("echo {n} > {file}"),
            4 | 5 => format!("seq {n} >> {file}"),
            6 => format!("sed -i 's/1/one/' {file}"),
            7 => format!("mv {file} {other}"),
            8 => format!("mv {dir} {another}"),
            9 => format!("rm -rf {dir}"),
            10 => format!("rm -f {file} {other}"),
            11 => format!("ln -f {file} {other}"),
            12 => format!("ln -sf {n} {file}"),
            13 => format!("mkdir -p {dir}/{another}"),
            // Two runs of it create the same archive, independent of the time.
            14 => format!("tar czf t{}.tgz --mtime=@{n} {dir}", n % 3),
            15 => format!("tar xzf t{}.tgz", n % 3),
            16 => format!("cp -r {dir} {another}"),
            17 => format!("chmod 600 {file}; truncate -s {n} {other}"),
            18 => format!("cat {file} {other} > {file}.new; mv {file}.new {file}"),
            19 => format!("mv {file} /tmp/x; mv /tmp/x {other}; cp -r {dir} /tmp/t; mv /tmp/t {another}/t"),
            20 => format!("echo {n} | tee -a {file} {other} > /dev/null"),
            _ => format!("printf {n} 1<> {file}; rmdir {dir}; : > {other}"),
        }
    }

    /// A script of lines, each of which may fail.
    pub(crate) fn script(&mut self, lines: usize) -> String {
        (0..lines).map(|_| self.line() + " 2> /dev/null\n").collect::<String>() + "true"
    }
}

#[test]
fn random_work_is_undone_and_redone_to_the_last_bit() {
    let mut random = Random::seeded();
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 600\n");
    line(&home, "mkdir -p d0/d1 d2; seq 300 > f1; seq 5 > d0/f2; ln f1 d2/f3; ln -s f1 f4").ok();
    let mut trees: Vec<(Tree, String)> = vec![(tree(&home), String::new())];
    for _ in 0..RUNS {
        let script = random.script(LINES);
        line(&home, &script).ok();
        trees.push((tree(&home), script));
    }
    for pair in trees.windows(2).rev() {
        // A run without changes has nothing to undo.
        if pair[0].0 != pair[1].0 {
            println!("{}", pair[1].1);
            home.kiso(&["undo", "-s", SESSION]).ok();
        }
        pair[0].0.assert_same(&tree(&home));
    }
    for pair in trees.windows(2) {
        if pair[0].0 != pair[1].0 {
            // The oldest first, because it was undone last.
            home.kiso(&["undo", "--redo"]).ok();
        }
        pair[1].0.assert_same(&tree(&home));
    }
}
