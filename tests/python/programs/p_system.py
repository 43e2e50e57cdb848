import os
import sys

print("before", flush=True)
print(os.system("echo from the shell; exit 4") >> 8)
print(os.popen("echo one; echo two").read().split())
with os.popen("cat > kept.txt", "w") as pipe:
    pipe.write("written through a pipe\n")
print(open("kept.txt").read().strip())
print(os.popen("exit 3").close() >> 8)
with open("script.py", "w") as file:
    file.write("#!/usr/bin/env python3\nimport sys\nprint(sys.argv, sys.stdin.read().strip())\n")
os.chmod("script.py", 0o755)
sys.stdout.flush()
print(os.system("echo input | ./script.py a 'b c'"))
print(os.waitstatus_to_exitcode(os.system("exit 3")), os.WEXITSTATUS(os.system("exit 4")))
print({os.popen(f"echo {number}").read() for number in range(100)} == {f"{number}\n" for number in range(100)})
print(os.waitstatus_to_exitcode(os.system("kill -9 $$")))
