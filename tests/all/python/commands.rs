//! Commands started by a Python program: processes of its line, with its limits and labels.

use super::{copy_of, home};
use crate::labels::integrity;

/// Uses `_kiso_host.py`'s protocol directly. Prints the host's answer to a request; an argument overrides the request's length.
const ASK: &str = "import os
control = os.open('/usr/local/lib/python3.12/site-packages/kiso-commands', os.O_RDONLY)
def ask(head, data=b'', size=None):
    head = head.encode()
    size = len(head) if size is None else size
    os.write(control, size.to_bytes(4, 'little') + len(data).to_bytes(4, 'little') + head + data)
    os.fsync(control)
    return os.read(control, 1000)[8:].decode()
";

#[test]
fn their_limits_are_those_of_the_line() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 5\nmax_processes = 20\n");
    for (program, limit) in [
        ("subprocess.run(['sleep', '1000'])", "time"),
        ("subprocess.run('while :; do :; done', shell=True)", "time"),
        ("subprocess.run(['python3', '-c', 'while True: pass'])", "time"),
        ("started = [subprocess.Popen(['sleep', '1000']) for _ in range(100)]", "processes"),
        ("subprocess.Popen(['sleep', '1000'], stdout=subprocess.PIPE).stdout.read()", "time"),
    ] {
        let line = format!("python3 -c \"import subprocess; {program}\"");
        let told = home.kiso(&["--json", "shell", "-c", &line]).json();
        let ended = (told["exit_code"].as_u64(), told["limit"]["limit"].as_str());
        assert_eq!(ended, (Some(137), Some(limit)), "{program}: {told}");
    }
    // Each process starts the next one; some limit ends the chain.
    let again =
        home.file("again.py", "import subprocess, sys\nsubprocess.run([sys.executable, __file__], check=True)\n");
    std::fs::create_dir_all(home.work("default")).unwrap();
    std::fs::copy(again, home.work("default").join("again.py")).unwrap();
    let told = home.kiso(&["--json", "shell", "-c", "python3 again.py"]).json();
    assert_ne!(told["exit_code"], 0, "{told}");
    // Only the line itself waits for a process that outlives the program.
    let later = |word: &str| format!("until [ -e go-{word} ]; do sleep 0.05; done; echo {word} > {word}");
    let started = format!("import subprocess; subprocess.Popen('{}', shell=True)", later("kept"));
    let line = format!("python3 -c \"{started}\"; ls kept || touch go-kept");
    home.kiso(&["shell", "-c", &line]).ok();
    home.kiso(&["shell", "-c", "cat kept"]).ok().prints(&["kept"]);
    let started =
        "import subprocess; subprocess.Popen('sleep 0.2; echo in time', shell=True, stdout=open('file', 'w'))";
    home.kiso(&["shell", "-c", &format!("python3 -c \"{started}\"")]).ok();
    home.kiso(&["shell", "-c", "cat file"]).ok().prints(&["in time"]);
    // Killing a program kills the processes that it started.
    let started = format!("import subprocess; subprocess.run('{}', shell=True)", later("late"));
    let line = format!("timeout 1 python3 -c \"{started}\"; touch go-late; sleep 0.5; ls late");
    home.kiso(&["shell", "-c", &line]).exit(2);
}

#[test]
fn their_labels_are_those_of_what_they_have_read() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    home.config("model = \"reflex\"\n");
    let file = home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n");
    home.kiso(&["skill", "add", file.parent().unwrap().to_str().unwrap()]).ok();
    for (program, whose) in [
        ("print(subprocess.run(['echo', '42'], capture_output=True))", "user"),
        ("print(subprocess.run(['cat', '/skills/greet/SKILL.md'], capture_output=True).stdout)", "publisher"),
        ("subprocess.run(['cat', '/skills/greet/SKILL.md'])", "publisher"),
        ("print(subprocess.run(['grep', '-q', 'hello', '/skills/greet/SKILL.md']).returncode)", "publisher"),
        (
            "print(subprocess.Popen(['sh', '-c', 'cat | wc -c'], stdin=open('/skills/greet/SKILL.md')).wait())",
            "publisher",
        ),
        ("text = open('/skills/greet/SKILL.md').read(); subprocess.run(['sh', '-c', 'echo 1 > copy'])", "user"),
        ("print(subprocess.run(['cat', 'copy'], capture_output=True).stdout)", "publisher"),
    ] {
        home.kiso(&["run", &format!("$ python3 -c \"import subprocess; {program}\"")]).ok();
        if program.starts_with("text") {
            // This program prints nothing; the next one shows the file that it wrote.
            continue;
        }
        assert_eq!(integrity(&home), whose, "{program}");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let Some(home) = home() else { return };
    let run = |program: &str| {
        std::fs::create_dir_all(home.work("requests")).unwrap();
        std::fs::write(home.work("requests").join("ask.py"), format!("{ASK}{program}")).unwrap();
        home.kiso(&["shell", "--session", "requests", "-c", "python3 ask.py"])
    };
    for request in [
        "ask('')",
        "ask('no JSON')",
        "ask('{}', size=1000)",
        "ask('{\"op\": \"format-the-disk\"}')",
        "ask('{\"op\": \"start\", \"argv\": [], \"env\": [], \"cwd\": \"/\", \"streams\": [\"null\", \"null\", \"null\"]}')",
        "ask('{\"op\": \"start\", \"argv\": [\"ls\"], \"env\": [], \"cwd\": \"work\", \"streams\": [\"null\", \"null\", \"null\"]}')",
        "ask('{\"op\": \"kill\", \"child\": 1}')",
        "ask('{\"op\": \"move\", \"read\": [' + '1,' * 100000 + '1]}')",
        "ask('{\"op\": \"move\", \"read\": [], \"child\": 7}')",
    ] {
        run(&format!("print({request})")).ok().prints(&["{\"errno\":\"EINVAL\"", "Invalid argument"]);
    }
    for request in [
        "ask('{\"op\": \"move\", \"read\": [5]}')",
        "ask('{\"op\": \"move\", \"read\": [], \"write\": 5}', b'bytes')",
        "ask('{\"op\": \"start\", \"argv\": [\"ls\"], \"env\": [], \"cwd\": \"/\", \"streams\": [{\"own\": 3}, \"null\", \"null\"]}')",
        "ask('{\"op\": \"start\", \"argv\": [\"ls\"], \"env\": [], \"cwd\": \"/\", \"streams\": [{\"of\": 3}, \"null\", \"null\"]}')",
    ] {
        run(&format!("print({request})")).ok().prints(&["{\"errno\":\"EBADF\""]);
    }
    run("print(ask('{\"op\": \"move\", \"read\": []}'), ask('{\"op\": \"close\", \"pipe\": 9}'))")
        .ok()
        .prints(&["{} {}"]);
    run("print(ask('{\"op\": \"exists\", \"name\": \"../../bin/ls\"}'))").ok().prints(&["{\"exists\":false}"]);
    run("import subprocess; print(subprocess.Popen(['true']).wait(1e300))").ok().prints(&["0"]);
    // A request that is too long, and an empty one.
    run("try:\n    os.write(control, bytes(5 << 20))\nexcept OSError as error: print('refused')\nprint(os.read(control, 10))\nimport subprocess\nprint(subprocess.run(['true']).returncode)")
        .ok()
        .prints(&["refused\nb''\n0"]);
    let many = "import subprocess
kept = []
try:
    for _ in range(300): kept.append(subprocess.Popen(['true'], stdin=subprocess.PIPE))
except OSError as error: print(error)
print(subprocess.Popen(['true'], stdin=subprocess.PIPE) if not kept.clear() else None)";
    run(many).ok().prints(&["at most 256 pipes", "<Popen: returncode: None args: ['true']>"]);
    run(
        "import subprocess\ntry:\n    subprocess.run(['echo', 'x' * (3 << 20)])\nexcept OSError as error: print(error)",
    )
    .ok()
    .prints(&["Argument list too long"]);
}

#[test]
fn one_that_may_not_write_starts_none() {
    let Some(home) = home() else { return };
    let apart = copy_of(home);
    apart.kiso(&["skill", "grant", "python", "--none"]).ok();
    apart.kiso(&["shell", "-c", "echo inside > file"]).ok();
    for start in ["import subprocess; subprocess.run(['cat', '/work/file'])", "import os; os.system('cat /work/file')"]
    {
        let ended = apart.kiso(&["shell", "-c", &format!("python3 -c \"{start}\"")]);
        ended.exit(1).says(&["Python may not start commands here"]);
        assert!(!ended.stdout.contains("inside"), "{}", ended.stdout);
    }
}
