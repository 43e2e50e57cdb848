//! Words as people write them, and those that would end the component.

use super::*;

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

/// The end of a substitution depends on its content.
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
