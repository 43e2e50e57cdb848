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
    /// What commands print, by their source.
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

/// What each case expands to is what bash 5.2 makes of it after
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
fn quotes() {
    agree(
        shell,
        &[
            (plain, r#"a b 'c d' "e f" g\ h "" ''"#, "<a><b><c d><e f><g h><><>"),
            (plain, r#"'$x' "\$x" \$x "\\" "\a" \"a\""#, r#"<$x><$x><$x><\><\a><"a">"#),
            (plain, r#""a$x"b'c'$n"d e"f\ g"#, "<aabcdefbc5d ef g>"),
            (plain, r#""a'b" 'a"b' "a\"b" "a\`b""#, r#"<a'b><a"b><a"b><a`b>"#),
            (plain, r#"$'a\tb\x41\u00e9\101\e\cA\'q\"' $'\z' $"tr $x""#, "<a\tbAéA\x1b\x01'q\"><\\z><tr abcdef>"),
            (plain, r#"$'\'' $'\\' $'a\0b' $'\x4' $'\u20ac' '\n' "\n""#, r"<'><\><a><><€><\n><\n>"),
            (plain, r#"$ "$" $% "$%" a$ "a$" $/ "$ x""#, "<$><$><$%><$%><a$><a$><$/><$ x>"),
        ],
    );
}

#[test]
fn lists() {
    agree(
        shell,
        &[
            (plain, r#""$@""#, "<a b><><c>"),
            (plain, "$@", "<a><b><c>"),
            (plain, r#""$*""#, "<a b  c>"),
            (plain, "$*", "<a><b><c>"),
            (plain, r#"x"$@"y "x$@y" "$@$@""#, "<xa b><><cy><xa b><><cy><a b><><ca b><><c>"),
            (|shell| shell.args(&[]), r#""$@" $@ "$*" x"$@" "$@$@" ""$@ "$e$@""#, "<><x><>"),
            (|shell| shell.var("IFS", ":"), r#""$*" $* $@ x$@y"#, "<a b::c><a b><><c><a b><><c><xa b><><cy>"),
            (|shell| shell.var("IFS", ""), r#""$*" $* x$@y"#, "<a bc><a b><c><xa b><cy>"),
            (|shell| shell.unset("IFS"), r#""$*" $* $sp"#, "<a b  c><a><b><c><a><b>"),
            (plain, r#""${@:2}" "${@:0:1}" "${@: -1}" "${*:2}""#, "<><c><bash><c>< c>"),
            (
                plain,
                r#""${a[@]}" ${a[@]} "${a[*]}" x"${a[@]}"y"#,
                "<one><two words><><four><one><two><words><four><one two words  four><xone><two words><><foury>",
            ),
            (plain, r#""${none[@]}" x"${none[@]}" "${none[*]}" ""${none[@]} "${none[@]:-none}""#, "<x><><><none>"),
        ],
    );
}

#[test]
fn splitting() {
    agree(
        shell,
        &[
            (plain, r#"$sp x$sp $sp"c" "$sp" x"$sp""#, "<a><b><x><a><b><a><b><c>< a  b ><x a  b >"),
            (
                |shell| shell.var("IFS", ":"),
                r#"${path} "$path" $sp"#,
                "</usr/local/bin/x.sh></usr/local/bin/x.sh>< a  b >",
            ),
            (|shell| shell.var("IFS", "/"), "$path x$path", "<><usr><local><bin><x.sh><x><usr><local><bin><x.sh>"),
            (|shell| shell.var("IFS", "ab"), "$x", "<><><cdef>"),
            (|shell| shell.var("IFS", "ax"), r#"$x "$x" ${x}a"#, "<><bcdef><abcdef><><bcdefa>"),
            (plain, r#"$e "$e" $unset "$unset" x$unset"#, "<><><x>"),
            (|shell| shell.var("IFS", "l"), "$path a/l/b", "</usr/><oca></bin/x.sh><a/l/b>"),
        ],
    );
}

#[test]
fn defaults() {
    agree(
        shell,
        &[
            (plain, r#"${unset-d} ${unset:-d} ${e-d} ${e:-d} ${x-d} "${unset-}" ${unset-}"#, "<d><d><d><abcdef><>"),
            (
                plain,
                r#"${unset:-a b} "${unset:-a b}" ${unset:-"a b" c} "${unset:-"a b" c}""#,
                "<a><b><a b><a b><c><a b c>",
            ),
            (
                plain,
                r#"${unset:-'a b'} "${unset:-'a b'}" ${unset:-a\}b} "${unset:-a\}b}" "${y-"}"}" ${y-'}'}"#,
                "<a b><'a b'><a}b><a}b><}><}>",
            ),
            (plain, r#"${x+y} ${x:+y} ${e+y} ${e:+y} ${unset+y} "${unset+y}" ${@+"$@"}"#, "<y><y><y><><a b><><c>"),
            (plain, "${new:=val} $new ${new:=other}", "<val><val><val>"),
            (plain, "${unset=a b} ${unset}", "<a><b><a><b>"),
            (plain, r#""${unset:-"${unset2:-deep "$x"}"}" "${unset:-${unset2:-$x}}""#, "<deep abcdef><abcdef>"),
            (plain, r#""${unset:-$'a\tb'}" ${unset:-~} "${unset:-~}""#, "<a\tb></h><~>"),
            (plain, "${unset:-{a,b}}", "<{a,b}>"),
            (plain, "${unset?no} after", "127! unset: no"),
            (plain, "${unset:?no such thing} after", "127! unset: no such thing"),
            (plain, "${e:?}", "127! e: parameter null or not set"),
            (plain, "${unset?}", "127! unset: parameter not set"),
            (plain, "${1:=x} ${2:=x}", "1! $2: cannot assign in this way"),
        ],
    );
}

#[test]
fn lengths() {
    agree(
        shell,
        &[
            (
                plain,
                "${#x} ${#e} ${#unset} ${#@} ${#*} ${#} $# ${##} ${#a[@]} ${#a} ${#a[1]} ${#1}",
                "<6><0><0><3><3><3><3><1><4><3><9><3>",
            ),
            (plain, "${#a[*]} ${#sparse[5]} ${#m[k]} ${#m[@]}", "<4><1><1><2>"),
        ],
    );
}

#[test]
fn removal() {
    agree(
        shell,
        &[
            (
                plain,
                "${file%.*} ${file%%.*} ${file#*.} ${file##*.} ${path##*/} ${path%/*} ${file%x} ${file#}",
                "<foo.tar><foo><tar.gz><gz><x.sh></usr/local/bin><foo.tar.gz><foo.tar.gz>",
            ),
            (
                plain,
                r#""${x#'a'}" "${x#"a"}" "${x%"${x#??}"}" "${file%'.gz'}" "${x%'}'}" "${x%\}}""#,
                "<bcdef><bcdef><ab><foo.tar><abcdef><abcdef>",
            ),
            (
                plain,
                r#""${x%%[!a]*}" "${x##*[[:lower:]]}" "${x%"$x"}" "${bs#\\}" "${star#\*}" "${star%"*"}""#,
                "<a><><><*><><>",
            ),
            (
                |shell| shell.option(Opt::Extglob),
                r"${x##+([a-c])} ${x//@(a|c)/_} ${path//+(\/)/-} ${file/%.@(gz|bz2)/}",
                "<def><_b_def><-usr-local-bin-x.sh><foo.tar>",
            ),
            (plain, r#""${a[@]#o}" "${a[@]%s}""#, "<ne><two words><><four><one><two word><><four>"),
        ],
    );
}

#[test]
fn replacement() {
    agree(
        shell,
        &[
            (
                plain,
                "${file/o/0} ${file//o/0} ${file/#f/F} ${file/%gz/GZ} ${file//[a-f]} ${file/./} ${file/}",
                "<f0o.tar.gz><f00.tar.gz><Foo.tar.gz><foo.tar.GZ><oo.tr.gz><footar.gz><foo.tar.gz>",
            ),
            (
                plain,
                r"${file/#/pre-} ${file/%/-post} ${file//./\/} ${path//\//_} ${path//\//:} ${file//\./-}",
                "<pre-foo.tar.gz><foo.tar.gz-post><foo/tar/gz><_usr_local_bin_x.sh><:usr:local:bin:x.sh><foo-tar-gz>",
            ),
            (
                plain,
                r#"${x//b/&} ${x//b/\&} "${x//b/"&"}" ${x//?/.} ${x//*/z} ${x/b*d/-} ${x//}"#,
                "<abcdef><a&cdef><a&cdef><......><z><a-ef><abcdef>",
            ),
            (
                plain,
                r#""${x/a/\n}" "${path//\//\\}" "${x/a/\$}" "${x/b/\"}" ${x/b/\\n} "${x/b/a&c}" "${x/'a'/'b'}""#,
                r#"<nbcdef><\usr\local\bin\x.sh><$bcdef><a"cdef><a\ncdef><aabccdef><bbcdef>"#,
            ),
            (plain, r#"${x/b/$n} "${x/b/~}" "${a[@]/o/0}""#, "<a5cdef><a/hcdef><0ne><tw0 words><><f0ur>"),
        ],
    );
}

#[test]
fn slices() {
    agree(
        shell,
        &[
            (
                plain,
                r#"${x:2} ${x:1:2} ${x: -2} ${x: -3:2} ${x:1:-1} ${x:10} "${x:0:0}" ${x:n-4:n-3} ${x:$n} ${x:(-2)}"#,
                "<cdef><bc><ef><de><bcde><><bc><f><ef>",
            ),
            (plain, r#"${x:${#x}-2} ${x:0:${#x}-1} "${x:0:1}${x:$((1+1)):1}" ${x::2}"#, "<ef><abcde><ac><ab>"),
            (
                plain,
                r#""${a[@]:1:2}" "${a[@]: -2}" "${sparse[@]:2:1}" "${sparse[@]:3}" "${*:1:2}""#,
                "<two words><><><four><b><c><a b >",
            ),
            (plain, "${x:1:-9}", "1! -9: substring expression < 0"),
        ],
    );
}

#[test]
fn letters() {
    agree(
        shell,
        &[
            (
                plain,
                r#"${x^} ${x^^} ${x^^[ace]} ${x,,} ${file^f} ${file^^} "${a[@]^}" ${x^^[b-d]} ${x^g}"#,
                "<Abcdef><ABCDEF><AbCdEf><abcdef><Foo.tar.gz><FOO.TAR.GZ><One><Two words><><Four><aBCDef><abcdef>",
            ),
            (
                plain,
                r#""${x@Q}" ${q@Q} ${x@U} ${x@u} ${x@L} ${unset@Q} "${e@Q}" "${a[@]@Q}""#,
                r"<'abcdef'><'it'\''s'><ABCDEF><Abcdef><abcdef><''><'one'><'two words'><''><'four'>",
            ),
            (
                plain,
                "${x@A} ${e@A} ${a[@]@A} ${a@a} ${m@a} ${x@a}",
                r#"<x='abcdef'><e=''><declare><-a><a=([0]="one"><[1]="two><words"><[2]=""><[3]="four")><a><A>"#,
            ),
        ],
    );
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

/// As people write them.
#[test]
fn idioms() {
    agree(
        shell,
        &[
            (
                plain,
                r#"${a[@]+"${a[@]}"} ${none[@]+"${none[@]}"} ${1+"$@"} ${x:+--flag "$x"} ${x:+"a  b"c d}"#,
                "<one><two words><><four><a b><><c><--flag><abcdef><a  bc><d>",
            ),
            (
                plain,
                r#""${a[*]/%/,}" "${a[@]/#/-}" ${path//[^a-z]/} ${sp//[[:space:]]/} ${sp// /_}"#,
                "<one, two words, , four,><-one><-two words><-><-four><usrlocalbinxsh><ab><_a__b_>",
            ),
            (
                plain,
                r#""${q//\'/}" "${q//\'/\"}" "${x//c/\\\"}" "${q/"'"/"''"}" "${x//abc/\$x}" 'a'\''b'"#,
                r#"<its><it"s><ab\"def><it''s><$xdef><a'b>"#,
            ),
            (
                plain,
                r#""${a[$((${#a[@]}-1))]}" "${@:$#}" "${!#}" "${@:1:$#-1}" "${a[@]:0:${#a[@]}-1}""#,
                "<four><c><c><a b><><one><two words><>",
            ),
            (
                plain,
                r"{1..3}.txt img_{001..003}.{png,jpg} {a,b}{,.bak} dir/{sub1,sub2/{x,y}} {$n..7} \{1..3\} {1.. 3}",
                "<1.txt><2.txt><3.txt><img_001.png><img_001.jpg><img_002.png><img_002.jpg><img_003.png><img_003.jpg><a><a.bak><b><b.bak><dir/sub1><dir/sub2/x><dir/sub2/y><{5..7}><{1..3}><{1..><3}>",
            ),
            (
                plain,
                r#""${unset-$n}" ${unset-"$n"$x} ${unset-$sp} "${unset-$sp}" ${unset-"$sp"} "${unset:-$@}" "${unset:-"$@"}""#,
                "<5><5abcdef><a><b>< a  b >< a  b ><a b><><c><a b><><c>",
            ),
            (|shell| shell.var("IFS", ""), r#"${unset:-a,b} "${unset:-a,b}" ${unset:-"a,b",c}"#, "<a,b><a,b><a,b,c>"),
            (
                |shell| shell.var("IFS", ":"),
                r#"x${path}:y a:b "a:b":$path ${unset:-/a:/b}"#,
                "<x/usr/local/bin/x.sh:y><a:b><a:b:/usr/local/bin/x.sh></a></b>",
            ),
            (plain, r##"~:x "~":x "#" \# a\#b $# ${#}"##, "</h:x><~:x><#><#><a#b><3><3>"),
        ],
    );
}

fn one(source: &str) -> Word {
    Word { value: source.into(), loc: None }
}

/// What a substitution is depends on where it ends.
#[test]
fn commands() {
    let cases = [
        (r#"$(echo "a)b")"#, r#"echo "a)b""#),
        ("$(echo 'a)b')", "echo 'a)b'"),
        ("$(case x in x) echo y;; (z) esac)", "case x in x) echo y;; (z) esac"),
        ("$(cat <<E\nit's ) here\nE\n)", "cat <<E\nit's ) here\nE\n"),
        ("$(cat <<-'E O'\n\tit's (\n\tE O\n)", "cat <<-'E O'\n\tit's (\n\tE O\n"),
        ("$(echo a # comment )\n)", "echo a # comment )\n"),
        ("$( (echo sub) )", " (echo sub) "),
        ("$((echo sub); echo)", "(echo sub); echo"),
        (r#"$(echo "$(echo "nested ) $(echo '(')")")"#, r#"echo "$(echo "nested ) $(echo '(')")""#),
        ("$(echo $((1 << 2)))", "echo $((1 << 2))"),
        ("$(echo ${x%)})", "echo ${x%)}"),
        ("$(echo \\))", "echo \\)"),
        ("$(cat <<< ')')", "cat <<< ')'"),
        (r"`echo \`echo \$x\``", "echo `echo $x`"),
    ];
    for (source, command) in cases {
        let mut shell = Shell::new().output(command, "printed  it");
        assert_eq!(text(&mut shell, &one(source)), Ok("printed  it".into()), "{source}");
        assert_eq!(word(&mut shell, &one(source)), Ok(vec!["printed".into(), "it".into()]), "{source}");
        let quoted = format!("\"{source}\"");
        assert_eq!(word(&mut shell, &one(&quoted)), Ok(vec!["printed  it".into()]), "{quoted}");
    }
    let mut shell = Shell::new().output("echo \"a\"", "yes").output("echo \\\"a\\\"", "no");
    assert_eq!(text(&mut shell, &one("\"`echo \\\"a\\\"`\"")), Ok("yes".into()));
    assert_eq!(text(&mut shell, &one("`echo \\\"a\\\"`")), Ok("no".into()));
}

#[test]
fn documents() {
    let source = "\"$x\" ${u:-\"q r\"} \\$x \\\\ \\a \\\" `echo hi` $((1+1)) $@ $*  a\\\nb ~ {a,b} * 'it' ${x%'ef'}\n";
    let mut shell = shell().args(&["a b", "c"]).output("echo hi", "hi");
    let expected = "\"abcdef\" q r $x \\ \\a \\\" hi 2 a b c a b c  ab ~ {a,b} * 'it' abcd\n";
    assert_eq!(heredoc(&mut shell, source), Ok(expected.into()));
}

#[test]
fn right_sides_of_assignments() {
    let cases = [
        ("~/a:~/b", "/h/a:/h/b"),
        ("a:~", "a:/h"),
        ("~:x", "/h:x"),
        ("\"$x\":~/b", "abcdef:/h/b"),
        ("~$x", "~abcdef"),
        ("'~':\\~", "~:~"),
        ("$sp", " a  b "),
        ("*", "*"),
        ("{a,b}", "{a,b}"),
        ("$@", "a b  c"),
        ("\"${a[*]}\"", "one,two words,,four"),
        ("${a[@]}", "one two words  four"),
    ];
    for (source, expected) in cases {
        assert_eq!(assigned(&mut shell().var("IFS", ","), &one(source)), Ok(expected.into()), "{source}");
    }
    assert_eq!(text(&mut shell(), &one("a:~")), Ok("a:~".into()));
}

#[test]
fn patterns_with_quotes() {
    let cases =
        [("f*", true), ("'f*'", false), ("$star", true), ("\"$star\"", false), ("f\"o\"?", true), ("$bs", false)];
    for (source, expected) in cases {
        assert_eq!(
            pattern(&mut shell(), &one(source)).map(|pattern| pattern.matches_text("foo")),
            Ok(expected),
            "{source}"
        );
    }
}

/// Each of these would end the component's stack, memory or time.
#[test]
fn nesting_is_limited() {
    let pairs = [
        ("${a:-", "}"),
        ("\"${a:-", "}\""),
        ("\"x ${a:-", "}\""),
        ("$((", "))"),
        ("$((1+", "))"),
        ("\"x $(echo ", ")\""),
        ("${a[", "]}"),
        ("${a#", "}"),
        ("${a/", "}"),
        ("${a:$((", "))}"),
        ("$[", "]"),
    ];
    for (open, close) in pairs {
        let nested = |count: usize| one(&format!("{}1{}", open.repeat(count), close.repeat(count)));
        assert!(word(&mut Shell::new(), &nested(20)).is_ok(), "{open}");
        for count in [100, 10_000] {
            let stop = word(&mut Shell::new(), &nested(count)).expect_err(open);
            assert!(stop.reach == Reach::Line && stop.code == 1, "{stop:?}");
        }
        word(&mut Shell::new(), &one(&open.repeat(10_000))).expect_err("it is not closed");
    }
    assert_eq!(word(&mut Shell::new(), &one(&"{a,".repeat(10_000))).map(|words| words.len()), Ok(1));
    assert_eq!(word(&mut Shell::new(), &one(&"{".repeat(10_000))).map(|words| words.len()), Ok(1));
}

#[test]
fn braces_are_limited() {
    let sources = ["{1..1000000000}", "{-9223372036854775808..9223372036854775807}", "{1..200000}{a,b}"];
    for source in sources.map(str::to_owned).into_iter().chain(["{a,b}".repeat(30)]) {
        let stop = word(&mut shell(), &one(&source)).expect_err(&source);
        assert!(stop.message.starts_with("brace expansion: more than 200000 words"), "{}", stop.message);
    }
    let sources = ["{1..99999999999999999999}", "~99999999999999999999"];
    for source in sources {
        assert_eq!(word(&mut shell(), &one(source)), Ok(vec![source.into()]));
    }
    assert_eq!(word(&mut shell(), &one("{1..200000}")).map(|words| words.len()), Ok(200_000));
}

#[test]
fn nothing_matches_a_glob() {
    let mut shell = files().option(Opt::Failglob);
    assert_eq!(word(&mut shell, &one("*.nope")).map_err(|stop| stop.message), Err("no match: *.nope".into()));
}

#[test]
fn readonly_variables_stay() {
    let mut shell = shell();
    shell.readonly.insert("new".into());
    assert_eq!(shell.show("${new:=x}"), "1! new: readonly variable");
}
