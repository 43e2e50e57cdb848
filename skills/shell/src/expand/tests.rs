mod idioms;
mod parameters;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use brush_parser::ast::Word;

use super::*;

/// A shell without commands: a substitution gives back its own source.
pub struct Shell {
    pub variables: BTreeMap<String, Value>,
    pub readonly: HashSet<String>,
    pub positional: Vec<String>,
    pub options: Vec<Opt>,
    pub cwd: String,
    /// The output of commands, by their source.
    pub outputs: HashMap<String, String>,
    /// Kept for as long as the shell works in it.
    directory: Option<Directory>,
}

impl Shell {
    pub fn new() -> Self {
        Self {
            variables: BTreeMap::new(),
            readonly: HashSet::new(),
            positional: Vec::new(),
            options: Vec::new(),
            cwd: "/".into(),
            outputs: HashMap::new(),
            directory: None,
        }
    }

    pub fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), Value::Scalar(value.into()));
        self
    }

    pub fn array(mut self, name: &str, elements: &[&str]) -> Self {
        let elements = (0..).zip(elements.iter().map(|element| (*element).to_owned())).collect();
        self.variables.insert(name.into(), Value::Indexed(elements));
        self
    }

    pub fn keyed(mut self, name: &str, elements: &[(&str, &str)]) -> Self {
        let elements = elements.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.variables.insert(name.into(), Value::Keyed(elements));
        self
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.positional = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    pub fn option(mut self, option: Opt) -> Self {
        self.options.push(option);
        self
    }

    pub fn output(mut self, command: &str, output: &str) -> Self {
        self.outputs.insert(command.into(), output.into());
        self
    }

    /// The arguments that these words make, each as `<…>`, as `printf '<%s>'` shows them.
    pub fn show(&mut self, source: &str) -> String {
        let tokens = brush_parser::tokenize_str(source).expect("the source has tokens");
        let all: Vec<Word> = tokens.iter().map(Word::from).collect();
        match words(self, &all.iter().collect::<Vec<_>>()) {
            Ok(words) => words.iter().map(|word| format!("<{word}>")).collect(),
            Err(stop) => format!("{}! {}", stop.code, stop.message),
        }
    }
}

impl Env for Shell {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.variables.get(name).map(Cow::Borrowed)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Stop> {
        if self.readonly.contains(name) {
            return Err(Stop::failed(format!("{name}: readonly variable")));
        }
        match self.variables.get_mut(name) {
            Some(Value::Indexed(elements)) => drop(elements.insert(0, value)),
            Some(Value::Keyed(elements)) => drop(elements.insert("0".into(), value)),
            _ => drop(self.variables.insert(name.into(), Value::Scalar(value))),
        }
        Ok(())
    }

    fn set_element(&mut self, name: &str, index: &str, value: String) -> Result<(), Stop> {
        match self.variables.entry(name.into()).or_insert_with(|| Value::Indexed(BTreeMap::new())) {
            Value::Keyed(elements) => drop(elements.insert(index.into(), value)),
            Value::Indexed(elements) => drop(elements.insert(index.parse().expect("a number"), value)),
            scalar => {
                let first = scalar.elements().into_iter().map(|text| (0, text));
                let new = [(index.parse().expect("a number"), value)];
                *scalar = Value::Indexed(first.chain(new).collect());
            }
        }
        Ok(())
    }

    fn set_array(&mut self, name: &str, elements: Vec<String>) -> Result<(), Stop> {
        self.variables.insert(name.into(), Value::Indexed((0..).zip(elements).collect()));
        Ok(())
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        self.variables.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    fn positional(&self) -> &[String] {
        &self.positional
    }

    fn special(&self, name: char) -> Option<String> {
        match name {
            '#' => Some(self.positional.len().to_string()),
            '?' => Some("0".into()),
            '0' => Some("bash".into()),
            '-' => Some("hBc".into()),
            '$' => Some("42".into()),
            _ => None,
        }
    }

    fn option(&self, option: Opt) -> bool {
        let usual = matches!(option, Opt::Braces | Opt::SkipDots | Opt::PatternReplacement);
        usual != self.options.contains(&option)
    }

    fn attributes(&self, name: &str) -> String {
        match self.get(name).as_deref() {
            Some(Value::Indexed(_)) => "a".to_owned(),
            Some(Value::Keyed(_)) => "A".to_owned(),
            _ => String::new(),
        }
    }

    fn named_option(&self, _: &str) -> bool {
        false
    }

    fn substitute(&mut self, source: &str) -> Result<String, Stop> {
        Ok(self.outputs.get(source).cloned().unwrap_or_else(|| source.to_owned()))
    }

    fn cwd(&self) -> &str {
        &self.cwd
    }

    fn is_terminal(&self, _: u32) -> bool {
        false
    }
}

type Set = fn(Shell) -> Shell;

fn plain(shell: Shell) -> Shell {
    shell
}

/// Compares each case with the result of bash 5.2 after
///
/// ```sh
/// HOME=/h OLDPWD=/old x=abcdef e= sp=' a  b ' q="it's" file=foo.tar.gz path=/usr/local/bin/x.sh n=5 star='*' bs='\*'
/// ref=x refe='a[1]' a=(one "two words" '' four) sparse=([2]=b [5]=c); declare -A m=([k]=v ["a b"]=1)
/// set -- "a b" "" c
/// ```
#[track_caller]
fn agree(shell: fn() -> Shell, cases: &[(Set, &str, &str)]) {
    for (set, source, expected) in cases {
        assert_eq!(set(shell()).show(source), *expected, "{source}");
    }
}

pub fn shell() -> Shell {
    let mut shell = Shell::new()
        .var("IFS", " \t\n")
        .var("HOME", "/h")
        .var("OLDPWD", "/old")
        .var("x", "abcdef")
        .var("e", "")
        .var("sp", " a  b ")
        .var("q", "it's")
        .var("file", "foo.tar.gz")
        .var("path", "/usr/local/bin/x.sh")
        .var("n", "5")
        .var("star", "*")
        .var("bs", r"\*")
        .var("ref", "x")
        .var("refe", "a[1]")
        .array("a", &["one", "two words", "", "four"])
        .keyed("m", &[("k", "v"), ("a b", "1")])
        .args(&["a b", "", "c"]);
    let sparse = [(2, "b".to_owned()), (5, "c".to_owned())];
    shell.variables.insert("sparse".into(), Value::Indexed(sparse.into()));
    shell
}

/// The same in a directory with files.
pub fn files() -> Shell {
    let directory = Directory::new();
    for name in ["d1/d2", ".hd"] {
        fs::create_dir_all(directory.0.join(name)).expect("a directory");
    }
    let names = ["a.txt", "b.txt", "c.TXT", ".hidden", "a b.txt", "x[1].c", "star*", "B.txt"];
    for name in names.into_iter().chain(["d1/a.txt", "d1/.h", "d1/d2/deep.txt"]) {
        fs::write(directory.0.join(name), "").expect("a file");
    }
    std::os::unix::fs::symlink("d1", directory.0.join("link")).expect("a link");
    let mut shell = shell();
    shell.cwd = directory.0.to_str().expect("a name in UTF-8").to_owned();
    shell.directory = Some(directory);
    shell
}

/// A directory of its own for a test, removed at its end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kiso-shell-{}-{number}", std::process::id())).join("globs");
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(parent) = self.0.parent() {
            fs::remove_dir_all(parent).expect("the directory is still there");
        }
    }
}

#[test]
fn arrays() {
    agree(
        shell,
        &[
            (
                plain,
                r#"${a[0]} "${a[1]}" ${a[-1]} ${a} ${a[n-4]} "${a[$n-2]}" "${a[$((n-3))]}""#,
                "<one><two words><four><one><two><words><four><>",
            ),
            (
                plain,
                r#""${sparse[@]}" "${!sparse[@]}" "${sparse[2]}" "${sparse[-1]}" ${#sparse[@]} "${sparse[0]-u}""#,
                "<b><c><2><5><b><c><2><u>",
            ),
            (plain, r#"${m[k]} "${m[a b]}" "${m["a b"]}" ${m[zz]-none}"#, "<v><1><1><none>"),
            (plain, "${a[9]:=nine} ${a[9]} ${#a[@]}", "<nine><nine><5>"),
            (
                plain,
                r#"${!ref} ${!refe} "${!ref}" ${!ref:1:2} ${!ref%f} ${!a[@]} "${!r*}""#,
                "<abcdef><two><words><abcdef><bc><abcde><0><1><2><3><ref refe>",
            ),
        ],
    );
}

#[test]
fn unset() {
    agree(
        shell,
        &[
            (|shell| shell.option(Opt::Nounset), "$unset", "127! unset: unbound variable"),
            (
                |shell| shell.option(Opt::Nounset),
                r#"${unset-x} ${unset:+y} "$@" ${#a[@]} "${nope[@]}""#,
                "<x><a b><><c><4>",
            ),
            (|shell| shell.option(Opt::Nounset), "${#unset}", "127! unset: unbound variable"),
            (|shell| shell.option(Opt::Nounset), "$((unset+1))", "127! unset: unbound variable"),
            (|shell| shell.option(Opt::Nounset), "${unset%x}", "127! unset: unbound variable"),
            (plain, "${x.y}", "1! ${x.y}: bad substitution"),
            (plain, "${}", "1! ${}: bad substitution"),
            (plain, "${!unset}", "1! unset: invalid indirect expansion"),
        ],
    );
}

#[test]
fn tildes() {
    agree(
        shell,
        &[(
            plain,
            r#"~ ~/x "~" \~ a~ ~- x=~ x=~/a:~/b ~nobodyy ~"x" ~$x ~/"$x" --p=~ "x"=~ x:~"#,
            "</h></h/x><~><~><a~></old><x=/h><x=/h/a:/h/b><~nobodyy><~x><~abcdef></h/abcdef><--p=~><x=~><x:~>",
        )],
    );
}

#[test]
fn braces() {
    agree(
        shell,
        &[
            (plain, "$x{y,} $n{,x}$n {$n,$x}1", "<abcdef><55><5>"),
            (
                plain,
                r#"{a,b}c {01..10..3} {a..e..2} {3..1} {a} {} {,} a{b,c{d,e}}f {a,b}{1,2} {1..a} {-1..1} "{a,b}" \{a,b} {a,b\,c}"#,
                "<ac><bc><01><04><07><10><a><c><e><3><2><1><{a}><{}><abf><acdf><acef><a1><a2><b1><b2><{1..a}><-1><0><1><{a,b}><{a,b}><a><b,c>",
            ),
            (
                plain,
                r#"x{1..3..0} {1..3..-1} {001..3} {$x,b} a{,b} {{a,b} {a,b}} {a{b,c} {"a b",c} {~,x}/y"#,
                "<x1><x2><x3><1><2><3><001><002><003><abcdef><b><a><ab><{a><{b><a}><b}><{ab><{ac><a b><c></h/y><x/y>",
            ),
            (
                plain,
                r#"{1..3}{a,b} pre{"$@",z}post {a,"$x"} {A..C} {-05..5..5} {5..-5..5} {2..1..2}"#,
                "<1a><1b><2a><2b><3a><3b><prea b><><cpost><prezpost><a><abcdef><A><B><C><-05><000><005><5><0><-5><2>",
            ),
            (
                plain,
                r#"{a,b,{c,d}e}f{1,2} {{1..3},x} {a,b}{c {1..2}..3} {1..3 ..5} {a,}{b,} "{"a,b"}" {a\,b,c} {'a,b',c}"#,
                "<af1><af2><bf1><bf2><cef1><cef2><def1><def2><1><2><3><x><a{c><b{c><1..3}><2..3}><{1..3><..5}><ab><a><b><{a,b}><a,b><c><a,b><c>",
            ),
            (
                plain,
                "{z..w} {1.5..3} {1..} {a..1} {+1..3} {0x1..3} {00..02} {9..011}",
                "<z><y><x><w><{1.5..3}><{1..}><{a..1}><1><2><3><{0x1..3}><00><01><02><009><010><011>",
            ),
        ],
    );
}

#[test]
fn arithmetic() {
    agree(
        shell,
        &[
            (
                plain,
                r#"$((1+2)) "$((n*2))" $((n++)) $n $((n+=5)) $[1+2] $((unset)) $(( (1+2)*3 )) $((${#x}+1))"#,
                "<3><10><5><6><11><3><0><9><7>",
            ),
            (
                plain,
                r#"$((a[1]=4)) ${a[1]} $((a[1]++ + ++a[1])) $((m[k]=7)) ${m[k]} $(( "1" + 1 ))"#,
                "<4><4><10><7><7><2>",
            ),
        ],
    );
}

#[test]
fn globs() {
    agree(
        files,
        &[
            (plain, "*.txt", "<B.txt><a b.txt><a.txt><b.txt>"),
            (plain, "*", "<B.txt><a b.txt><a.txt><b.txt><c.TXT><d1><link><star*><x[1].c>"),
            (plain, ".*", "<.hd><.hidden>"),
            (plain, "*/", "<d1/><link/>"),
            (
                plain,
                r#"*/*.txt d1/* nomatch* "*".txt *"."txt '*' \*"#,
                "<d1/a.txt><link/a.txt><d1/a.txt><d1/d2><nomatch*><*.txt><B.txt><a b.txt><a.txt><b.txt><*><*>",
            ),
            (plain, r#"$star $bs "$star""#, r"<B.txt><a b.txt><a.txt><b.txt><c.TXT><d1><link><star*><x[1].c><\*><*>"),
            (
                plain,
                r"[ab].txt [!a].txt [^a].txt ?.txt [a-b].* [[:upper:]].txt x\[1].c x[[]1].c 'a b'* a\ b*",
                "<a.txt><b.txt><B.txt><b.txt><B.txt><b.txt><B.txt><a.txt><b.txt><a.txt><b.txt><B.txt><x[1].c><x[1].c><a b.txt><a b.txt>",
            ),
            (|shell| shell.option(Opt::Nullglob), "nomatch* [a].txt", "<a.txt>"),
            (|shell| shell.option(Opt::Noglob), "*.txt {a,b}", "<*.txt><a><b>"),
            (
                |shell| shell.option(Opt::Dotglob),
                "*",
                "<.hd><.hidden><B.txt><a b.txt><a.txt><b.txt><c.TXT><d1><link><star*><x[1].c>",
            ),
            (|shell| shell.option(Opt::Nocaseglob), "b.TX* A.t*", "<B.txt><b.txt><a.txt>"),
            (
                |shell| shell.option(Opt::Globstar),
                "**",
                "<B.txt><a b.txt><a.txt><b.txt><c.TXT><d1><d1/a.txt><d1/d2><d1/d2/deep.txt><link><star*><x[1].c>",
            ),
            (
                |shell| shell.option(Opt::Globstar),
                "**/*.txt d1/** **/d2",
                "<B.txt><a b.txt><a.txt><b.txt><d1/a.txt><d1/d2/deep.txt><d1/><d1/a.txt><d1/d2><d1/d2/deep.txt><d1/d2>",
            ),
            (
                |shell| shell.option(Opt::Extglob),
                "@(a|b).txt !(*.txt) +([a-c]).txt ?(a).txt *(a|b).txt @(nomatch)",
                "<a.txt><b.txt><c.TXT><d1><link><star*><x[1].c><a.txt><b.txt><a.txt><a.txt><b.txt><@(nomatch)>",
            ),
            (
                plain,
                "link/* ./*.txt ../globs/b* d1//a* */.h d1/../a*",
                "<link/a.txt><link/d2><./B.txt><./a b.txt><./a.txt><./b.txt><../globs/b.txt><d1//a.txt><d1/.h><link/.h><d1/../a b.txt><d1/../a.txt>",
            ),
            (
                plain,
                r#"[a [] []a] [!] [a/b] "[a]".txt [\a].txt [[:punct:]]* ["!"a].txt [a-].txt"#,
                "<[a><[]><[]a]><[!]><[a/b]><[a].txt><a.txt><[[:punct:]]*><a.txt><a.txt>",
            ),
            (
                plain,
                "*.{txt,TXT} {a,nope}.txt ./{d1,d2}/",
                "<B.txt><a b.txt><a.txt><b.txt><c.TXT><a.txt><nope.txt><./d1/><./d2/>",
            ),
            (
                plain,
                r#""$@"* "d1"/* d1/"a"* d1\/* /nonexist/* */*/*.txt"#,
                "<a b><><c.TXT><d1/a.txt><d1/d2><d1/a.txt><d1/a.txt><d1/d2></nonexist/*><d1/d2/deep.txt><link/d2/deep.txt>",
            ),
            (
                |shell| shell.option(Opt::Extglob),
                "+(a|b).txt a+(.)txt *.!(txt) !(a|b).* @(d|x)*",
                "<a.txt><b.txt><a.txt><c.TXT><x[1].c><B.txt><a b.txt><c.TXT><x[1].c><d1><x[1].c>",
            ),
        ],
    );
}
