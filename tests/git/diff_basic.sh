git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
mkdir -p src/deep docs
cat > src/app.py <<'X'
import os
import sys


def first(a):
    if a:
        return 1
    return 0


def second(b):
    for i in range(b):
        print(i)
    return b


class Thing:
    def __init__(self):
        self.x = 1

    def get(self):
        return self.x


def main():
    first(1)
    second(2)


if __name__ == "__main__":
    main()
X
printf 'one\ntwo\nthree' > noend.txt
printf 'a b\n' > 'with space.txt'
printf 'caf\303\251\n' > "$(printf 'caf\303\251.txt')"
printf 'bin\000ary' > data.bin
: > empty.txt
seq 1 60 > docs/numbers.txt
echo deep > src/deep/x.c
git add -A; git commit -q -m first
echo "== clean"; git diff; git diff --stat; git diff --exit-code; echo $?
sed -i 's/return 0/return -1/; s/self.x = 1/self.x = 2/' src/app.py
{ sed '/^def main/,$d' src/app.py; printf 'def third(c):\n    """Third."""\n    return c\n\n\n'; sed -n '/^def main/,$p' src/app.py; } >new; mv new src/app.py
printf 'one\ntwo\nthree\n' > noend.txt
printf 'a  b\nmore\n' > 'with space.txt'
printf 'cafe\n' > "$(printf 'caf\303\251.txt')"
printf 'bin\000arx!' > data.bin
echo x > empty.txt
sed -i '5d; 20s/$/ changed/; 40,45d; 58a added' docs/numbers.txt
echo new > untracked.txt
rm src/deep/x.c
echo "== plain"; git diff
echo "== stat"; git diff --stat; git diff --shortstat; git diff --numstat
git diff --name-only; git diff --name-status; git diff --summary; git diff --raw
echo "== paths"; git diff src; git diff -- src/app.py; git diff --stat -- 'docs/*' '*.py'; git diff --stat ':!docs'; git diff --name-only -- '*.txt'
cd src; git diff --stat; git diff app.py | head -5; git diff --name-only --relative; git diff --name-only .; cd ..
echo "== context"; git diff -U0 docs; git diff -U1 src/app.py; git diff --unified=10 src/app.py
echo "== exit"; git diff --exit-code >/dev/null; echo $?; git diff --quiet; echo $?; git diff --quiet -- nothere; echo $?
git diff nothere; echo $?
git diff nothere --; echo $?
git diff --bogus 2>&1 | head -1; echo $?
echo "== ws"; git diff -w 'with space.txt'; git diff -b -- 'with space.txt'; git diff --ignore-space-at-eol noend.txt
echo "== R"; git diff -R noend.txt; git diff -R --stat; git diff -R src/deep
echo "== z"; git diff --name-only -z | tr '\0' '|'; git diff --name-status -z | tr '\0' '|'; git diff --numstat -z | tr '\0' '|'; git diff --raw -z | tr '\0' '|'
echo
echo "== filter"; git diff --name-only --diff-filter=D; git diff --name-only --diff-filter=d; git diff --name-status --diff-filter=AM; git diff --diff-filter=Q; echo $?
echo "== both"; git diff --stat -p noend.txt; git diff --patch-with-stat noend.txt; git diff --numstat --shortstat --summary; git diff --raw --stat -p noend.txt; git diff --compact-summary
echo "== staged"; git add src empty.txt; git diff --cached; git diff --staged --stat; git diff --cached --name-status; git diff --name-status; git diff HEAD --name-status; git diff --cached --quiet; echo $?
echo "== no prefix"; git diff --no-prefix noend.txt; git diff --src-prefix=x/ --dst-prefix=y/ noend.txt; git diff --full-index noend.txt; git diff --abbrev=12 noend.txt
git diff -s; git diff --no-patch; git diff --name-only --name-status; echo $?
echo "== color"; git diff --color=never noend.txt; git diff --no-color noend.txt; git diff --color=auto noend.txt
git diff --color=always noend.txt; git diff --color docs src; git diff --cached --color=always src; git diff --color --stat
echo "== text"; git diff --text data.bin | tr '\0' '@'; git diff --binary data.bin | head -3
echo "== S"; git diff -S'changed' --name-only; git diff -G'add.d' --name-only; git diff -Snothing
git diff --stat=40; git diff --stat=100,10; git diff --stat=60,20,2
printf 'bad  \n \tx\nfine\n\n\n' > noend.txt; git diff --check; echo $?; git diff --check docs; echo $?
printf '<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n' > noend.txt; git diff --check; echo $?
git diff HEAD~5; echo $?
git diff main -- noend.txt | head -4; git diff HEAD noend.txt | tail -3; git diff -W src/app.py docs; git diff --cached -W src/app.py
