import os
import shutil
import subprocess
import sys
import tempfile
import time

done = subprocess.run(["sort", "-r"], input="a\nc\nb\n", capture_output=True, text=True, check=True)
print(done.stdout.split(), done.returncode, repr(done.stderr))
print(subprocess.run("echo out; echo err >&2; exit 3", shell=True, capture_output=True))
print(subprocess.check_output(["tr", "a-z", "A-Z"], input=b"letters"))
both = subprocess.run("echo one; echo two >&2", shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(repr(both.stdout), both.stderr)
for words, options in [
    (["false"], {"check": True}),
    (["no-such-command-here"], {}),
    (["./none.sh"], {}),
    (["pwd"], {"cwd": "no-such-directory"}),
    (["sleep", "5"], {"timeout": 0.05}),
]:
    try:
        print(subprocess.run(words, **options))
    except (OSError, subprocess.SubprocessError) as error:
        print(type(error).__name__, getattr(error, "filename", None), getattr(error, "returncode", None))
with open("words.txt", "w") as file:
    print(subprocess.call(["printf", "%s\\n", "zeta", "alpha"], stdout=file))
with open("words.txt") as file:
    print(subprocess.run(["sort"], stdin=file, capture_output=True, text=True).stdout.split())
with open("log.txt", "w") as file:
    for word in ("one", "two"):
        subprocess.run(["echo", word], stdout=file)
    later = subprocess.Popen(["sh", "-c", "echo three; echo error >&2"], stdout=file, stderr=subprocess.STDOUT)
later.wait()
print(open("log.txt").read().split())
print(subprocess.Popen(["wc", "-l"], stdin=open("log.txt"), stdout=subprocess.PIPE, text=True).communicate()[0].strip())
first = subprocess.Popen(["seq", "100"], stdout=subprocess.PIPE)
second = subprocess.Popen(["wc", "-l"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
first.stdout.close()
print(second.communicate()[0].strip(), first.wait())
talk = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for word in ("hello", "world"):
    talk.stdin.write(word + "\n")
    print(talk.poll(), talk.stdout.readline().strip())
print(talk.communicate("the end\n"), talk.stdin.closed)
with subprocess.Popen(["yes"], stdout=subprocess.PIPE, text=True) as endless:
    print(endless.stdout.readline().strip())
    endless.kill()
print(endless.returncode)
print(len(subprocess.run(["cat"], input=b"x" * 1_000_000, stdout=subprocess.PIPE).stdout))
print(subprocess.run(["head", "-n", "1"], input="line\n" * 50_000, capture_output=True, text=True))
print(subprocess.run(["sh", "-c", 'echo "$0 $1 $WORD"', "zero", "a b"], env={"WORD": "set", "PATH": "/usr/bin:/bin"}, capture_output=True).stdout)
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "x"], capture_output=True, text=True).returncode)
print(subprocess.getstatusoutput("echo said; exit 2"), subprocess.getoutput("echo said"))
print(shutil.which("no-such-command-here"), bool(shutil.which("sort")))
print(subprocess.run(["printf", "\\377\\r\\n"], capture_output=True).stdout)
print(repr(subprocess.run(["printf", "a\\r\\nb\\n"], capture_output=True, text=True).stdout))
print(subprocess.run("kill -9 $$", shell=True).returncode)
endless = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
first = subprocess.Popen(["head", "-n", "1"], stdin=endless.stdout, stdout=subprocess.PIPE)
endless.stdout.close()
print(first.communicate(), endless.wait())
os.makedirs("bin", exist_ok=True)
with open("bin/own-command", "w") as file:
    file.write("#!/bin/sh\necho own $1\n")
os.chmod("bin/own-command", 0o755)
os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
print(subprocess.check_output(["own-command", "a b"]), os.path.basename(shutil.which("own-command")))
for words, options in [(["echo", "a\0b"], {}), (["cat"], {"input": b"bytes", "text": True}), (["cat"], {"input": "text"})]:
    try:
        print(subprocess.run(words, **options))
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
first = subprocess.Popen(["cat"], stdin=open("words.txt"), stdout=subprocess.PIPE)
second = subprocess.Popen(["wc", "-l"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
first.stdout.close()
print(second.communicate()[0].strip(), first.wait())
with open("sorted.txt", "w") as file:
    first = subprocess.Popen(["seq", "50000"], stdout=subprocess.PIPE)
    second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=file)
    first.stdout.close()
    print(first.wait(), second.wait(), file.tell() == os.path.getsize("sorted.txt"))
ahead = subprocess.Popen(["seq", "3"], stdout=subprocess.PIPE, text=True)
print(ahead.stdout.readline(), ahead.communicate())
try:
    with subprocess.Popen(["sleep", "1"], stdout=subprocess.PIPE) as slow:
        slow.communicate(timeout=0.05)
except subprocess.TimeoutExpired as error:
    print(type(error).__name__, slow.returncode)
with open("out.txt", "w") as out, open("err.txt", "w") as err:
    both = subprocess.Popen("seq 20000; echo error >&2", shell=True, stdout=out, stderr=err)
    while both.poll() is None:
        time.sleep(0.01)
    print(os.path.getsize("out.txt"), open("err.txt").read().strip())
with tempfile.TemporaryFile() as file:
    subprocess.run(["seq", "20000"], stdout=file)
    file.seek(0)
    print(len(file.read()))
    file.seek(0)
    print(subprocess.run(["tail", "-n", "1"], stdin=file, capture_output=True).stdout)
print(subprocess.run(["cat"], stdin=open("log.txt"), stdout=open("copy.txt", "w")).returncode, open("copy.txt").read().split())
unbuffered = subprocess.Popen(["wc", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
print(unbuffered.stdin.write(b"x" * 200_000), unbuffered.communicate()[0].strip())
early = subprocess.Popen(["true"], stdin=subprocess.PIPE)
early.wait()
early.stdin.write(b"nobody reads it")
print(early.communicate())
