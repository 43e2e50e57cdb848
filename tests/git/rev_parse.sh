r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
r git rev-parse HEAD
r git rev-parse --abbrev-ref HEAD
r git rev-parse --verify HEAD
r git rev-parse --verify -q HEAD
mkdir -p d/e; echo a >a.txt; echo b >d/e/b.txt; git add .; git commit -qm one
echo b >>a.txt; GIT_COMMITTER_DATE='1700000100 +0000' git commit -qam two
git tag v1 HEAD~1; git tag -a v2 -m 'two'
r git rev-parse HEAD
r git rev-parse --short HEAD
r git rev-parse --short=10 HEAD
r git rev-parse --short HEAD HEAD~1
r git rev-parse --abbrev-ref HEAD
r git rev-parse --abbrev-ref main
r git rev-parse --abbrev-ref HEAD~1
r git rev-parse --abbrev-ref @
r git rev-parse --symbolic-full-name HEAD
r git rev-parse --symbolic-full-name v1
r git rev-parse --verify main
r git rev-parse --verify nope
r git rev-parse --quiet --verify nope
r git rev-parse nope
r git rev-parse HEAD nope
r git rev-parse a.txt
r git rev-parse HEAD a.txt
r git rev-parse HEAD -- a.txt
r git rev-parse HEAD~1..HEAD
r git rev-parse HEAD~1...HEAD
r git rev-parse ..HEAD
r git rev-parse ^HEAD~1 HEAD
r git rev-parse HEAD^@
r git rev-parse 'HEAD^!'
r git rev-parse v2
r git rev-parse 'v2^{}' 'v2^{commit}' 'v2^{tree}' 'HEAD^{tree}'
r git rev-parse HEAD:a.txt
r git rev-parse HEAD:d/e
r git rev-parse :a.txt
r git rev-parse HEAD:nope
r git rev-parse HEAD~5
r git rev-parse --show-toplevel
r git rev-parse --git-dir
r git rev-parse --absolute-git-dir
r git rev-parse --git-common-dir
r git rev-parse --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository
r git rev-parse --show-prefix
r git rev-parse --show-cdup
r git rev-parse --git-path hooks
r git rev-parse --git-path HEAD
r git rev-parse --show-superproject-working-tree
r git rev-parse --all
r git rev-parse --branches
r git rev-parse --tags
r git rev-parse --show-object-format
r git rev-parse --foo
r git rev-parse --verify HEAD HEAD
r git rev-parse --revs-only HEAD a.txt --foo
r git rev-parse --abbrev-ref '@{u}'
r git rev-parse --abbrev-ref --symbolic-full-name '@{upstream}'
r git rev-parse 'HEAD@{0}' 'HEAD@{1}' 'main@{1}'
r git rev-parse ':/one'
r git rev-parse refs/heads/main heads/main tags/v1
r git rev-parse "$(git rev-parse HEAD | cut -c1-8)"
cd d/e
r git rev-parse --show-prefix
r git rev-parse --show-cdup
r git rev-parse --show-toplevel
r git rev-parse --git-dir
r git rev-parse --git-common-dir
r git rev-parse --git-path hooks
r git rev-parse HEAD:./b.txt
r git rev-parse HEAD:../../a.txt
cd ../../.git
r git rev-parse --git-dir
r git rev-parse --is-inside-work-tree --is-inside-git-dir
r git rev-parse --show-toplevel
cd ..; git checkout -q HEAD~1
r git rev-parse --abbrev-ref HEAD
r git rev-parse --symbolic-full-name HEAD
mkdir /tmp/none.$$; cd /tmp/none.$$
git rev-parse --git-dir; echo $?
git rev-parse HEAD; echo $?
cd /; rm -rf /tmp/none.$$
