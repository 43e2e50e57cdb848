r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; tr '\r' '\n' <"$HOME/err" | sed "s/^/! /"; echo; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 20 >a.txt; git add .; git commit -qm base
git checkout -q -b t; echo f1 >f1; git add .; git commit -qm 'add f1'; sed -i 's/^5$/five/' a.txt; git commit -qam 'five'; echo f2 >f2; git add .; git commit -qm 'add f2'
git checkout -q main; sed -i 's/^5$/FUENF/' a.txt; git commit -qam fuenf; git checkout -q t; git tag start
r git rebase main
r git status
r cat a.txt
r git branch
r cat .git/rebase-merge/head-name .git/rebase-merge/onto .git/rebase-merge/orig-head .git/rebase-merge/msgnum .git/rebase-merge/end
r git rebase main
r git rebase --continue | grep -v '^ Date: '
r git diff --name-only
r git rebase --abort
r git status --short --branch
r git log --format=%s
r git rebase main
r git rebase --skip
r git log --format=%s
git reset -q --hard start
r git rebase main
sed -i '/^[<=>]/d' a.txt; git add a.txt
r git status
GIT_EDITOR=true r git rebase --continue | grep -v '^ Date: '
r git log --format=%s
r git status
git reset -q --hard start
r git rebase -X theirs main
r git log --format=%s
git reset -q --hard start
GIT_SEQUENCE_EDITOR='sed -i -e "2s/pick/squash/"' r git rebase -i main
git checkout -q --theirs a.txt; git add a.txt
GIT_EDITOR=true r git rebase --continue | grep -v '^ Date: '
r git log --format=%B
git reset -q --hard start
git checkout -q --detach
r git rebase main
r git rebase --abort
r git status
git checkout -q t; echo f1 >zz; git rm -q f1; git commit -qm gone; echo u >f1
r git rebase -i HEAD~1 --exec false
r git status
r git rebase --abort
