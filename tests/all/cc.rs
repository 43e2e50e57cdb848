//! The C compiler as a package: built from its sources when it is added, and used to compile programs.

use crate::harness::{Home, Ran, missing_tool, root};
use crate::python::wheel;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A home with the compiler. Each process has one, because the build takes seconds.
fn home() -> Option<&'static Home> {
    static HOME: OnceLock<Home> = OnceLock::new();
    let wheel = wheel("cc")?;
    Some(HOME.get_or_init(|| {
        let home = Home::new();
        home.config("[exec]\ntimeout_s = 600\n");
        let added = home.kiso(&["skill", "add", "cc", "--from", wheel.to_str().unwrap()]);
        added.ok().prints(&["installed cc 0.9.28+1: ar, cc, gcc, ranlib, tcc in every command line"]);
        // The build leaves no other files.
        let left = std::fs::read_dir(home.path().join("packages/cc/0.9.28+1")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(left.iter().all(|name| ["built", "empty", "files"].contains(&name.as_str())), "{left:?}");
        home
    }))
}

#[track_caller]
fn shell(home: &Home, session: &str, line: &str) -> Ran {
    home.kiso(&["shell", "--session", session, "-c", line])
}

fn put(home: &Home, session: &str, path: &str, text: impl AsRef<[u8]>) {
    let file = home.work(session).join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

const LIBRARY: [(&str, &str); 3] = [
    ("lib/two.h", "int twice(int);\nextern const char *name;\n"),
    ("lib/two.c", "#include \"two.h\"\nint twice(int x) { return 2 * x; }\n"),
    ("lib/name.c", "#include \"two.h\"\nconst char *name = NAME;\n"),
];

const MAIN: &str = r#"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "two.h"

static int got;
static void handler(int number) { got = number; }

int main(int argc, char **argv)
{
    static jmp_buf back;
    char line[100], *end;
    FILE *file;
    if (argc > 1 && !strcmp(argv[1], "abort"))
        abort();
    if (argc > 1 && !strcmp(argv[1], "null"))
        return *(volatile int *)0xfffffff0;
    printf("%s %s %d %s\n", argv[0], argc > 1 ? argv[1] : "-", twice(21), name);
    printf("%" PRIu64 " %.3f %d%d %Lf\n", UINT64_MAX, sqrt(2), isnan(NAN) != 0, isinf(-INFINITY) != 0, 1.25L);
    signal(SIGINT, handler);
    raise(SIGINT);
    if (!setjmp(back))
        longjmp(back, 1);
    printf("%d %d %d\n", got, clock() >= 0, system("ls") == -1 && errno == ENOSYS);
    file = fopen("note.txt", "w");
    fprintf(file, "%s\n", getenv("WORD"));
    fclose(file);
    printf("%s\n", getcwd(line, sizeof line));
    while (fgets(line, sizeof line, stdin))
        printf("> %s", line);
    return (int)strtol("11", &end, 2);
}
"#;

#[test]
fn what_is_compiled_runs() {
    let Some(home) = home() else { return };
    put(home, "c", "hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n");
    shell(home, "c", "cc hello.c -o hello && ./hello").ok().prints(&["hello\n"]);
    shell(home, "c", "gcc -O2 -g -Wall -Wextra -std=c99 -pedantic -static -fPIC -pthread hello.c -lm && ./a.out").ok();
    for (path, text) in LIBRARY {
        put(home, "c", path, text);
    }
    put(home, "c", "main.c", MAIN);
    let built = "cc -c lib/two.c lib/name.c -Ilib -DNAME='\"two\"' && ar rcs lib/libtwo.a two.o name.o && ranlib lib/libtwo.a && \
        ar t lib/libtwo.a && cc -MD -Ilib -c main.c -o main.o && cat main.d && cc main.o -Llib -ltwo -lm -o bin";
    shell(home, "c", built).ok().prints(&["two.o\nname.o\n", "lib/two.h"]);
    let ran = shell(home, "c", "mkdir -p in; cd in; printf 'a\\nb' | WORD=word ../bin arg; echo \" $?\"; cat note.txt");
    assert_eq!(
        ran.ok().stdout,
        "../bin arg 42 two\n18446744073709551615 1.414 11 1.250000\n2 1 1\n/work/in\n> a\n> b 3\nword\n"
    );
    shell(home, "c", "./bin abort; echo $?; ./bin null; echo $?").ok().prints(&["134\n134"]).says(&["./bin: aborted"]);
    put(home, "c", "comparisons.c", std::fs::read(root().join("packages/cc/comparisons.c")).unwrap());
    shell(home, "c", "cc comparisons.c -o comparisons && ./comparisons").ok();
    // From standard input, to standard output, and with errors.
    shell(home, "c", "echo 'int x = FIVE;' | cc -E -DFIVE=5 -").ok().prints(&["int x = 5;"]);
    put(home, "c", "wrong.c", "int main(void) { return missing; }\n");
    shell(home, "c", "cc wrong.c").exit(1).says(&["wrong.c:1: error: 'missing' undeclared"]);
    shell(home, "c", "cc -shared hello.c").exit(1).says(&["-shared is not supported"]);
    shell(home, "c", "cc -run hello.c").exit(1).says(&["-run is not available"]);
    shell(home, "c", "cc -S hello.c").exit(1).says(&["-S"]);
}

#[test]
fn a_skill_in_c_is_written_tried_and_installed() {
    let Some(home) = home() else { return };
    let hi = "#include <stdio.h>\nint main(int argc, char **argv) { return printf(\"Hello, %s!\\n\", argc > 1 ? argv[1] : \"you\") < 0; }\n";
    put(home, "skill", "hi.c", hi);
    shell(home, "skill", "cc -O2 -o hi.wasm hi.c && ./hi.wasm Ada").ok().prints(&["Hello, Ada!"]);
    let file = home.work("skill").join("hi.wasm");
    home.kiso(&["skill", "add", file.to_str().unwrap(), "--grant", "none"]).ok();
    shell(home, "skill", "hi Grace | tr a-z A-Z").ok().prints(&["HELLO, GRACE!"]);
}

/// The directory with C sources. Returns `None`, with a message, if they cannot be fetched.
fn sources() -> Option<PathBuf> {
    let output = Command::new("sh").arg(root().join("tests/cc/fetch.sh")).arg(root().join("target/cc")).output();
    let said = output.map_or_else(|e| e.to_string(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let sources = said.trim().strip_prefix("READY ").map(PathBuf::from);
    if sources.is_none() {
        missing_tool("C sources", &said);
    }
    sources
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg("-r").args([from, to]).status().expect("there is a cp").success());
}

const LUA: &str = r##"
local s = 0 for i = 1, 10 do s = s + i end print(s, 10 // 3, 7 % -3, 2^0.5, ("x"):rep(3))
for i = 3, 1, -1 do io.write(i, " ") end print()
print(select("#", pcall(error)), pcall(error, "why", 0))
local co = coroutine.wrap(function(a) local b = coroutine.yield(a * 2) return b + 1 end) print(co(4), co(5))
print(string.format("%5.2f|%-5s|%q", 3.14159, "ab", 1 << 62), ("hello world"):gsub("o", "0"))
local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) print(table.concat(t, ","), math.maxinteger, 1e308 * 10)
"##;

const LUA_PRINTS: &str = "55\t3\t-2\t1.4142135623731\txxx\n3 2 1 \n2\tfalse\twhy\n8\t6\n 3.14|ab   |0x4000000000000000\thell0 w0rld\t2\n\
    3,2,1\t9223372036854775807\tinf\n";

const SQLITE: &str = r#"
#include "sqlite3.h"
#include <stdio.h>
static int row(void *x, int n, char **v, char **names)
{
    for (int i = 0; i < n; i++) printf("%s%s", i ? "|" : "", v[i] ? v[i] : "NULL");
    return puts("") < 0;
}
int main(int argc, char **argv)
{
    static char sql[1 << 16];
    sqlite3 *db;
    char *error = 0;
    fread(sql, 1, sizeof sql - 1, stdin);
    if (sqlite3_open(argv[1], &db) || sqlite3_exec(db, sql, row, 0, &error)) return printf("error: %s\n", error);
    return sqlite3_close(db);
}
"#;

const SQL: &str = "create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
  insert into t select i, printf('%05d', i * 7919 % 1000), i / 3.0 from n;
create index ix on t(b);
select count(*), sum(a), min(b), max(b), round(avg(c), 4) from t;
select a, b from t where b between '00100' and '00103' order by b;
select json_extract('{\"x\":[1,2,{\"y\":3}]}', '$.x[2].y'), upper('abc'), hex(zeroblob(3)), typeof(1.5), 7 / 2, 7.0 / 2;
begin; delete from t where a % 2; rollback; select count(*) from t;
begin; delete from t where a % 2; commit; select count(*) from t;
select b, row_number() over (order by c desc) from t limit 3;
pragma integrity_check;
";

const SQL_PRINTS: &str = "1000|500500|00000|00999|166.8333\n900|00100\n579|00101\n258|00102\n937|00103\n3|ABC|000000|real|3|3.5\n1000\n500\n\
    00000|1\n00162|2\n00324|3\nok\n";

#[test]
#[ignore = "fetches and compiles for a minute"]
fn known_libraries_build_and_pass_their_tests() {
    let (Some(home), Some(sources)) = (home(), sources()) else { return };
    let work = |session: &str| home.work(session);
    shell(home, "zlib", "true").ok();
    copy(&sources.join("zlib"), &work("zlib").join("zlib"));
    let line = "cd zlib && cc -O2 -DHAVE_UNISTD_H -DHAVE_STDARG_H -c adler32.c compress.c crc32.c deflate.c gz*.c inf*.c trees.c \
        uncompr.c zutil.c && ar rcs libz.a *.o && cc -I. test/example.c -L. -lz -o example && ./example && \
        cc -I. test/minigzip.c -L. -lz -o minigzip && ./minigzip < ChangeLog | gzip -dc | cmp - ChangeLog";
    shell(home, "zlib", line).ok().prints(&["large_inflate(): OK", "inflate with dictionary: hello, hello!"]);

    shell(home, "cjson", "true").ok();
    copy(&sources.join("cjson"), &work("cjson").join("cjson"));
    let line = "cd cjson/tests && cc -c ../cJSON.c ../cJSON_Utils.c unity_setup.c unity/src/unity.c && \
        for test in *.c; do name=${test%.c}; case $name in unity_setup) continue;; esac; \
        parts='unity_setup.o unity.o'; grep -q cJSON_Utils.h $test && parts=\"$parts cJSON_Utils.o\"; \
        grep -q common.h $test || parts=\"$parts cJSON.o\"; \
        cc -w -I.. -Iunity/src $test $parts -o $name && ./$name > out.txt; echo \"$name: $(tail -n 1 out.txt)\"; done";
    let ran = shell(home, "cjson", line);
    let passed = ran.ok().stdout.lines().filter(|line| line.ends_with(": OK")).count();
    assert_eq!((passed, ran.stdout.lines().count()), (21, 21), "{}", ran.stdout);

    shell(home, "lua", "true").ok();
    copy(&sources.join("lua5.4/src"), &work("lua").join("src"));
    put(home, "lua", "t.lua", LUA);
    let line = "cd src && mv luac.c luac && cc -w -O2 *.c -lm -o ../lua && cd .. && ./lua t.lua";
    assert_eq!(shell(home, "lua", line).ok().stdout, LUA_PRINTS);

    shell(home, "sqlite", "true").ok();
    copy(&sources.join("sqlite"), &work("sqlite").join("src"));
    put(home, "sqlite", "main.c", SQLITE);
    put(home, "sqlite", "t.sql", SQL);
    let line = "cc -w -O2 -Isrc -DSQLITE_THREADSAFE=0 main.c src/sqlite3.c -o db && ./db t.db < t.sql";
    assert_eq!(shell(home, "sqlite", line).ok().stdout, SQL_PRINTS);
}
