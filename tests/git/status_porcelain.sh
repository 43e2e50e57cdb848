git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git status -s
git status -sb
git status --porcelain=v2 -b
echo one > a.txt
echo 'sp ace' > 'sp ace.txt'
git status -s
git status --porcelain
git status -z | tr '\0' '|'
git add .
git status -s
git status --porcelain=v2
git commit -q -m first
git status -sb
git status --porcelain -b
git status --porcelain=v2 --branch
echo two >> a.txt
mkdir -p d/e
echo y > d/e/y
echo z > d/z
git status -s
git status -s -uall
git status -s -u
git status -s -uno
git status --short --untracked-files=all d
git add a.txt
echo three >> a.txt
git status --short
git status --porcelain=v2
git mv 'sp ace.txt' renamed.txt
git status -s
git status --porcelain=2 -z | tr '\0' '|'
git status -z | tr '\0' '|'
cd d
git status -s
git status --porcelain
cd ..
git add d
git rm -q --cached a.txt
git status -s
printf 'x' > "$(printf 'caf\303\251')"
git status -s
git status --porcelain=v3
git status --porcelain --ignored
echo 'd/' > .gitignore
echo q > d/q
git status -s --ignored
git status --porcelain=v2 --ignored -uall
git commit -qm second
git status -s -b
git checkout -q -b side
git status -sb
git checkout -q --detach
git status -sb
git status --porcelain=v2 -b
