r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
mkdir -p d/e; echo a >a.txt; echo b >d/e/b.txt; echo 'c c' >'d/é c.txt'; git add .; git commit -qm one -m body
git tag -a v1 -m 'tag it'
r git cat-file -t HEAD
r git cat-file -s HEAD
r git cat-file -p HEAD
r git cat-file -p HEAD^{tree}
r git cat-file -p HEAD:a.txt
r git cat-file -p v1
r git cat-file -t v1
r git cat-file -p HEAD:d
r git cat-file blob HEAD:a.txt
r git cat-file commit v1
r git cat-file tag HEAD
r git cat-file blob HEAD
r git cat-file -e HEAD
r git cat-file -e nope
r git cat-file -e 1234567890123456789012345678901234567890
r git cat-file -t nope
r git cat-file -p nope
printf 'HEAD\nHEAD:a.txt\nnope\n' | git cat-file --batch-check; echo $?
printf 'HEAD:a.txt\nv1\n' | git cat-file --batch; echo $?
printf 'HEAD:a.txt\n' | git cat-file --batch-check='%(objecttype) %(objectsize)'; echo $?
git cat-file --batch-all-objects --batch-check; echo $?
r git hash-object a.txt d/e/b.txt
echo hello | git hash-object --stdin; echo $?
echo hello | git hash-object -w --stdin; echo $?
r git cat-file -p ce01362
r git hash-object nope
r git ls-tree HEAD
r git ls-tree -r HEAD
r git ls-tree -r -t HEAD
r git ls-tree -d HEAD
r git ls-tree -d -r HEAD
r git ls-tree -l HEAD
r git ls-tree -r --long HEAD
r git ls-tree --name-only HEAD
r git ls-tree -r --name-only HEAD d
r git ls-tree HEAD d
r git ls-tree HEAD d/
r git ls-tree HEAD d/e
r git ls-tree HEAD d/e/b.txt a.txt
r git ls-tree -t HEAD d/e/b.txt
r git ls-tree HEAD nope
r git ls-tree nope
r git ls-tree HEAD:a.txt
r git ls-tree HEAD:d
r git ls-tree --abbrev HEAD
r git ls-tree --object-only HEAD
r git ls-tree --format='%(objectname) %(path)' HEAD
git ls-tree -z HEAD | tr '\0' '|'; echo
cd d
r git ls-tree HEAD
r git ls-tree --full-tree HEAD
r git ls-tree --full-name HEAD
r git ls-tree HEAD e
r git ls-tree --name-only HEAD ../a.txt
cd ..
echo new >n.txt; git add n.txt
r git write-tree
t=$(git write-tree)
r git commit-tree $t -p HEAD -m 'by hand'
r git commit-tree $t -p HEAD -m 'by hand' -m 'second'
echo msg | git commit-tree $t; echo $?
r git commit-tree nope -m x
r git commit-tree $t -p nope -m x
r git commit-tree HEAD -m x
r git read-tree HEAD
r git ls-files -s
r git read-tree --empty
r git ls-files
r git read-tree HEAD^{tree}
r git read-tree --prefix=sub/ HEAD:d
r git ls-files
r git read-tree nope
r git read-tree -m HEAD
r git ls-files
r git status --short
