r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; tr '\r' '\n' <"$HOME/err" | sed "s/^/! /"; echo; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 20 >a.txt; git add .; git commit -qm base
git checkout -q -b t; for i in 1 2 3; do echo f$i >f$i; git add .; GIT_AUTHOR_DATE="170000010$i +0100" GIT_COMMITTER_DATE="170000010$i +0100" git commit -qm "add f$i"; done
git checkout -q main; echo m >m; git add .; git commit -qm 'main moves'
r git rebase main
r git rebase t~3
git checkout -q t
r git rebase main
r git log --format='%s %ad'
r git reflog -6 --format='%gs'
r git rebase main
r git rebase --onto main~1 main
r git log --format=%s
r git rebase nope
r git rebase --continue
r git rebase --abort
echo x >>a.txt
r git rebase main
git add a.txt
r git rebase main
git reset -q --hard
r git rebase main t
git checkout -q main
r git rebase main t
r git rebase t main
r git log --oneline --format=%s -1
git checkout -q -b s t; git cherry-pick main~3 >/dev/null 2>&1; git checkout -q -b dup main~1; git cherry-pick t >/dev/null; echo own >own; git add .; git commit -qm own
r git rebase t
r git log --format=%s
GIT_SEQUENCE_EDITOR='sed -i -e "1s/pick/drop/"' r git rebase -i HEAD~2
r git log --format=%s -3
git checkout -q t
GIT_SEQUENCE_EDITOR='sed -i -e "2s/pick/squash/;3s/pick/fixup/"' GIT_EDITOR=true r git rebase -i HEAD~3
r git log --format=%B -2
r git show --stat --format=%s
for i in 4 5 6; do echo f$i >f$i; git add .; git commit -qm "add f$i"; done
GIT_SEQUENCE_EDITOR='sed -i -e "2s/pick/reword/"' GIT_EDITOR='sed -i -e "s/add/ADD/"' r git rebase -i HEAD~3
r git log --format=%s -3
GIT_SEQUENCE_EDITOR='sed -i -e "1s/pick/edit/"' r git rebase -i HEAD~2
r git status
echo more >>f5; git add .; git commit -q --amend --no-edit
r git rebase --continue
r git log --format=%s -3
echo fix >>f4; git add .; git commit -q --fixup HEAD~2
GIT_SEQUENCE_EDITOR=: r git rebase -i --autosquash HEAD~4
r git log --format=%s -4
GIT_SEQUENCE_EDITOR='sed -i -e "1{h;d};2{G}"' r git rebase -i HEAD~2
r git log --format=%s -3
r git rebase --exec 'true' HEAD~1
echo dirty >>a.txt
r git rebase --autostash main | sed 's/^\(Created autostash:\).*/\1/'
r git status --short
