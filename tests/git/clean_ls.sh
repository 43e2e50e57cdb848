git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
echo 1 > a; echo 2 > b.c; mkdir -p d/e f/g; echo 3 > d/c; echo 4 > d/e/h; echo 5 > f/g/i; echo 'o' > x.o; echo '*.o' > .gitignore; echo y > f/y.o
git add a b.c d/c .gitignore
git ls-files
git ls-files -s
git ls-files -o
git ls-files --others --exclude-standard
git ls-files -o -i --exclude-standard
git ls-files -i
git ls-files -c -o --exclude-standard
git ls-files --directory -o
git ls-files -z | tr '\0' '|'
git ls-files -t
git ls-files d
git ls-files '*.c'
git ls-files nosuch
git ls-files --error-unmatch nosuch
git ls-files --error-unmatch a
cd d
git ls-files
git ls-files --full-name
git ls-files -o
git ls-files ..
git ls-files ../a
cd ..
git commit -qm one
rm b.c
echo mod >> a
git ls-files -m
git ls-files -d
git ls-files -d -m
git ls-files -u
git ls-files --stage a
git clean
git clean -n
git clean -nd
git clean -ndx
git clean -ndX
git clean -nX
git clean -nx
git clean -nd f
git clean -nd f/g/i
git clean -n -d -e i
cd d
git clean -nd
cd ..
git clean -f
ls -R
git clean -fd
ls -R
git clean -fdX
ls -R
mkdir -p emp/ty
git clean -fdq
ls
git clean -x -X -f
git checkout -q .
git clean -fdx
mkdir sub
git init -q sub
echo k > sub/k
git clean -nd
git clean -fd
git clean -ffd
ls
