//! `node` in command lines: modules from files, Node's modules, other commands, and the end of a script.

mod http;
mod npm;
mod types;

use crate::harness::{Home, Ran};

#[track_caller]
fn shell(home: &Home, line: &str) -> Ran {
    home.kiso(&["shell", "-s", "default", "-c", line])
}

/// A home whose session has these files.
fn home(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    let here: String = files
        .iter()
        .map(|(path, text)| {
            let dir = path.rsplit_once('/').map_or(".", |(dir, _)| dir);
            format!("mkdir -p {dir}\ncat > {path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n")
        })
        .collect();
    shell(&home, &here).ok();
    home
}

#[test]
fn modules_are_found_as_in_node() {
    let home = home(&[
        ("lib/a.js", "exports.add = (a, b) => a + b; exports.main = require.main === module"),
        ("lib/dir/index.js", "module.exports = __filename"),
        ("x.json", "{\"v\": [1]}"),
        ("node_modules/shout/package.json", "{\"main\": \"lib/m.js\"}"),
        ("node_modules/shout/lib/m.js", "module.exports = (text) => text.toUpperCase()"),
        ("node_modules/esm/package.json", "{\"type\": \"module\", \"exports\": {\".\": {\"import\": \"./m.js\"}}}"),
        ("node_modules/esm/m.js", "export const k = 5; export default () => 'hi'"),
        (
            "main.js",
            "console.log(require('./lib/a').add(1, 2), require('./lib/a').main, require('./lib/dir'), require('./x'), require('shout')('x'), require.main === module); import('esm').then((m) => console.log(m.k, m.default()))",
        ),
        (
            "main.mjs",
            "import a, { add } from './lib/a.js'; import { readFileSync } from 'node:fs'; console.log(a.add === add, typeof readFileSync, import.meta.url); console.log(await Promise.resolve('awaited'))",
        ),
        ("large.js", "require('fs').writeFileSync('big.js', '//' + 'x'.repeat(9 << 20)); require('./big')"),
    ]);
    shell(&home, "node main.js").ok().prints(&["3 false /work/lib/dir/index.js { v: [ 1 ] } X true", "5 hi"]);
    shell(&home, "node main.mjs").ok().prints(&["true function file:///work/main.mjs", "awaited"]);
    shell(&home, "cd lib && node ../main").ok().prints(&["5 hi"]);
    shell(&home, "node -e \"require('left-pad')\"").exit(1).says(&[
        "Cannot find module 'left-pad'",
        "`npm install` installs",
        "MODULE_NOT_FOUND",
    ]);
    shell(&home, "node -e \"require('node:net')\"").exit(1).says(&["node:net is not available", "`fetch`, node:http"]);
    shell(&home, "node large.js").exit(1).says(&["/work/big.js: a module has at most 8 MiB"]);
}

#[test]
fn a_script_ends_as_in_node() {
    let home = home(&[
        ("thrown.js", "function inner(x) { throw new RangeError('too deep') }\n\ninner()"),
        ("syntax.js", "let x = 1;\nlet y = ;"),
        (
            "later.js",
            "setTimeout(() => { console.log('later'); process.exitCode = 4 }, 5); process.on('exit', (code) => console.log('exit', code))",
        ),
    ]);
    shell(&home, "node thrown.js").exit(1).says(&[
        "Uncaught RangeError: too deep",
        "at inner (/work/thrown.js:1:",
        "at <anonymous> (/work/thrown.js:3:",
    ]);
    shell(&home, "node syntax.js").exit(1).says(&["SyntaxError", "(/work/syntax.js:2:9)"]);
    shell(&home, "node later.js").exit(4).prints(&["later\nexit 4"]);
    shell(&home, "mkdir -p d/e; node -e \"require('fs').rmdirSync('d')\"")
        .exit(1)
        .says(&["ENOTEMPTY: directory not empty, rmdir 'd'"]);
    shell(&home, "node -e 'process.exit(3)'").exit(3);
    shell(&home, "node -e 'Promise.reject(new Error(\"late\"))'").exit(1).says(&["Uncaught Error: late"]);
    shell(&home, "node --version; nodejs -p '[1, {a: 2}]'; echo 'console.log(process.argv.slice(2))' | node - a b")
        .ok()
        .prints(&["v22.", "[ 1, { a: 2 } ]", "[ 'a', 'b' ]"]);
    shell(&home, "node --none").exit(9).says(&["bad option: --none"]);
    shell(&home, "npx cowsay").exit(1).says(&["npm error could not determine executable to run: cowsay"]);
    shell(&home, "yarn add x").exit(127).says(&["yarn: command not found", "use `npm`"]);
}

#[test]
fn scripts_start_the_commands_of_the_line() {
    let home = home(&[(
        "run.js",
        "const { execSync, spawnSync, spawn, exec } = require('child_process');\n\
         console.log(execSync('echo $((6 * 7)) | cat', { encoding: 'utf8' }).trim(), spawnSync('sort', { input: 'b\\na\\n' }).stdout.toString());\n\
         console.log(spawnSync('sh', ['-c', 'echo bad >&2; exit 5'], { encoding: 'utf8' }));\n\
         try { execSync('exit 3', { stdio: 'pipe' }) } catch (error) { console.log(error.status, error.message) }\n\
         console.log(spawnSync('no-such-command').error.code, spawnSync('sleep', ['30'], { timeout: 50 }).error.code);\n\
         const child = spawn('cat'); child.stdout.on('data', (data) => console.log('child', String(data))); child.on('close', (code) => console.log('closed', code)); child.stdin.end('typed');\n\
         exec('echo out; exit 2', (error, stdout) => console.log(error.code, stdout.trim()));\n\
         execSync('echo inherited', { stdio: 'inherit' })",
    )]);
    let ran = shell(&home, "node run.js");
    ran.ok().prints(&["42 a\nb", "status: 5", "stderr: 'bad\\n'", "3 Command failed: exit 3", "ENOENT ETIMEDOUT"]);
    ran.ok().prints(&["child typed", "closed 0", "2 out", "inherited"]);
    // The temporary files of streams are removed.
    shell(&home, "ls -A /tmp | grep -c node-").exit(1);
}
