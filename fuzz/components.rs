//! Inputs of `kiso skill add`: components from a grammar, damaged copies of the tests' guests, components and core modules from
//! wasm-smith, and generated manifests packed into any of these.

use crate::dice::Dice;
use crate::smith::Smith;
use crate::{Source, Target};
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::store::Store;
use kiso_tests::{guest, root};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Components {
    _dir: TempDir,
    skills: Skills,
    file: PathBuf,
    /// Small valid components, to be damaged.
    right: Vec<Vec<u8>>,
    smith: Smith,
    sources: [Source; 3],
    /// The source of the last input. Inputs of this target run one at a time.
    source: usize,
}

/// Inputs in the ordinary tests: a third from wasm-smith, two thirds from the sources that only the long lane uses otherwise.
const ORDINARY: u64 = 3_000;

const GRAMMAR: usize = 0;
const GUESTS: usize = 1;
const SMITH: usize = 2;

impl Components {
    pub(crate) fn new() -> Components {
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("there is room");
        let home = Home::open(&dir.path().join("home")).expect("a new home");
        let config = Config::load(&home).expect("the configuration is right");
        let store = Store::open(&home.store_path()).expect("a new store");
        let skills = Skills::new(home, config, store, Arc::new(Quiet));
        let wats = std::fs::read_dir(root().join("tests/guests/wat")).expect("it is there");
        let mut wats: Vec<PathBuf> = wats.map(|entry| entry.expect("it is there").path()).collect();
        wats.sort();
        wats.retain(|path| path.extension().is_some_and(|ending| ending == "wat"));
        let mut right: Vec<Vec<u8>> =
            wats.iter().map(|path| wat::parse_file(path).expect("the text is a component")).collect();
        right.retain(|bytes| bytes.len() < 64 << 10);
        right.push(std::fs::read(guest("calc")).expect("it is built"));
        let file = dir.path().join("fuzz.wasm");
        let sources = ["grammar", "guests", "wasm-smith"].map(|name| Source { name, inputs: 0, past: 0 });
        Components { _dir: dir, skills, file, right, smith: Smith::start(), sources, source: GRAMMAR }
    }
}

impl Target for Components {
    fn name(&self) -> &'static str {
        "components"
    }

    fn ordinary(&self) -> u64 {
        ORDINARY
    }

    fn make(&mut self, dice: &mut Dice) -> Vec<u8> {
        let (third, number) = (dice.below(3), dice.number());
        self.source = match dice.below(5) {
            _ if third == 0 || (third == 1 && number >= ORDINARY) => SMITH,
            0..=2 => GRAMMAR,
            _ => GUESTS,
        };
        let mut bytes = match self.source {
            SMITH => self.smith.make(dice.next()),
            GRAMMAR => wat::parse_str(component(dice, 0)).unwrap_or_default(),
            _ => self.right[dice.below(self.right.len())].clone(),
        };
        if dice.once_in(3) {
            for _ in 0..1 + dice.below(4) {
                dice.mutate(&mut bytes);
            }
        }
        if dice.below(3) > 0 {
            let mut text = manifest(dice).into_bytes();
            for _ in 0..[0, 0, 0, 1, 3][dice.below(5)] {
                dice.mutate(&mut text);
            }
            bytes = kiso_sandbox::skill::pack::pack(&bytes, &String::from_utf8_lossy(&text));
        }
        bytes
    }

    /// A file that is refused for a reason other than "not a component" was parsed to its end.
    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String> {
        let mut all = 0;
        for input in inputs {
            std::fs::write(&self.file, input).map_err(|error| error.to_string())?;
            let past = match self.skills.examine(&self.file, None, None) {
                Ok(_) => 1,
                Err(error) => {
                    let broken = ["damaged or cut off", "not WebAssembly", "cannot be wrapped", "not UTF-8"];
                    u64::from(!broken.iter().any(|words| error.message.contains(words)))
                }
            };
            all += past;
            let source = &mut self.sources[self.source];
            source.inputs += 1;
            source.past += past;
        }
        Ok(all)
    }

    fn sources(&self) -> Vec<Source> {
        self.sources.to_vec()
    }
}

/// A component of plain functions in the text format, with random types, imports and components inside.
fn component(dice: &mut Dice, depth: usize) -> String {
    let mut text = "(component\n".to_owned();
    for _ in 0..dice.below(3) {
        let name = dice.one_of(&[
            "wasi:cli/environment@0.2.0",
            "wasi:io/poll@0.2.0",
            "wasi:sockets/tcp@0.2.0",
            "kiso:skill/log@0.1.0",
            "kiso:skill/log@9.0.0",
            "acme:gpu/render@1.0.0",
            "plain-name",
        ]);
        let _ = writeln!(
            text,
            "(import \"{name}\" (instance (export \"f{}\" (func (param \"a\" string)))))",
            dice.below(3)
        );
    }
    let types = 1 + dice.below(12);
    for n in 0..types {
        let _ = writeln!(text, "(type $t{n} {})", definition(dice, n));
    }
    let functions = 1 + dice.below(4);
    text += "(core module $m (memory (export \"memory\") 1)
        (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))\n";
    let mut lifted = String::new();
    for n in 0..functions {
        // Lists have the same flat signature whatever their elements are.
        let params = dice.below(8);
        let flat = if params == 0 { String::new() } else { format!("(param{})", " i32 i32".repeat(params)) };
        let gives = dice.once_in(2);
        let result = if gives { "(result i32) (i32.const 0)" } else { "" };
        let _ = writeln!(text, "(func (export \"f{n}\") {flat} {result})");
        let params: String = (0..params).map(|p| format!("(param \"p{p}\" (list $t{}))", dice.below(types))).collect();
        let name = if dice.once_in(12) { "x".repeat(1 + dice.below(200)) } else { format!("tool-{n}") };
        let _ = write!(
            lifted,
            "(alias core export $i \"f{n}\" (core func $c{n}))
             (func $l{n} {params} {} (canon lift (core func $c{n}) (memory $memory) (realloc $realloc)))
             (export \"{name}\" (func $l{n}))\n",
            if gives { "(result string)" } else { "" }
        );
    }
    text += ")\n(core instance $i (instantiate $m))\n(alias core export $i \"memory\" (core memory $memory))
        (alias core export $i \"realloc\" (core func $realloc))\n";
    text += &lifted;
    if depth < 3 && dice.once_in(5) {
        text += &component(dice, depth + 1);
    }
    text + ")"
}

/// A type that may refer to the `before` earlier ones.
fn definition(dice: &mut Dice, before: usize) -> String {
    let one = |dice: &mut Dice| match before {
        0 => "u8".to_owned(),
        _ if dice.once_in(2) => format!("$t{}", dice.below(before)),
        _ => dice.one_of(&["u8", "s64", "f32", "f64", "char", "bool", "string"]).to_owned(),
    };
    let count = if dice.once_in(20) { 1 + dice.below(300) } else { 1 + dice.below(5) };
    let listed = |dice: &mut Dice, each: &dyn Fn(&mut Dice, usize) -> String| -> String {
        (0..count).map(|n| each(dice, n)).collect()
    };
    match dice.below(9) {
        0 => format!("(record{})", listed(dice, &|dice, n| format!(" (field \"f{n}\" {})", one(dice)))),
        1 => format!("(tuple{})", listed(dice, &|dice, _| format!(" {}", one(dice)))),
        2 => format!("(variant{})", listed(dice, &|dice, n| format!(" (case \"c{n}\" {})", one(dice)))),
        3 => format!("(enum{})", listed(dice, &|dice, n| format!(" \"{}{n}\"", "e".repeat(1 + dice.below(40))))),
        4 => format!("(flags{})", (0..count.min(32)).map(|n| format!(" \"g{n}\"")).collect::<String>()),
        5 => format!("(option {})", one(dice)),
        6 => format!("(result {} (error {}))", one(dice), one(dice)),
        7 => format!("(list {})", one(dice)),
        _ => format!("(tuple {} {})", one(dice), one(dice)),
    }
}

fn manifest(dice: &mut Dice) -> String {
    let quoted = |text: String| toml::Value::String(text).to_string();
    let name =
        if dice.once_in(8) { dice.text() } else { dice.one_of(&["fuzz", "a-b", "x_1", "data", "exec"]).to_owned() };
    let version = if dice.once_in(8) { dice.text() } else { "0.1.0".to_owned() };
    let mut text = format!("[kiso]\ntype = \"skill\"\nname = {}\nversion = {}\n", quoted(name), quoted(version));
    if dice.once_in(2) {
        text += &format!("description = {}\n", quoted(dice.text()));
    }
    text += "[kiso.skill]\n";
    if dice.once_in(2) {
        text += &format!("summary = {}\ncategory = {}\n", quoted(dice.text()), quoted(dice.text()));
    }
    if dice.once_in(3) {
        text += &format!("examples = [{}, \"plot {{file}}\"]\n", quoted(dice.text()));
    }
    if dice.once_in(3) {
        text += "secrets = [\"api_key\"]\n";
    }
    for n in 0..dice.below(5) {
        let kind = dice.one_of(&["string", "int", "float", "bool", "path", "list", "object", "enum"]);
        let more = match dice.below(7) {
            0 => format!(", default = {}", dice.one_of(&["1", "\"a\"", "true", "[]", "1.5", "nan"])),
            1 => format!(", minimum = {}, maximum = {}", dice.below(9), dice.below(9)),
            2 => {
                format!(", pattern = {}", quoted(dice.one_of(&["^a+$", "(", "(a*)*b", "\\p{L}{9}", "[^/]"]).to_owned()))
            }
            3 => format!(", enum = [\"a\", {}]", quoted(dice.text())),
            4 => format!(", min_length = {}, max_length = {}", dice.below(9), dice.next() >> 1),
            5 => ", required = true".to_owned(),
            _ => String::new(),
        };
        text += &format!("args.a{n} = {{ type = \"{kind}\"{more} }}\n");
    }
    if dice.once_in(2) {
        text += "[kiso.skill.needs]\n";
        for line in
            ["memory_mib = 64", "timeout_s = 5", "workspace = \"write\"", "memory_mib = -1", "timeout_s = 99999999999"]
        {
            if dice.once_in(4) {
                text += line;
                text.push('\n');
            }
        }
        if dice.once_in(3) {
            let host = dice.one_of(&["*", "api.example.org", "*.a.b:80", "[::1]:1", "a b", "", "http://x/", "x:99999"]);
            text += &format!(
                "http = [{{ host = \"{host}\", methods = [\"GET\", \"{}\"] }}]\n",
                dice.one_of(&["POST", "get", " "])
            );
        }
    }
    text
}
