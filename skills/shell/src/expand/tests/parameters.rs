//! Parameters and the operations on them.

use super::*;

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
