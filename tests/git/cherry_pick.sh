r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 20 >a.txt; git add .; git commit -qm base
git checkout -q -b x
for i in 1 2 3; do echo f$i >f$i; git add .; GIT_AUTHOR_NAME="Bob" GIT_AUTHOR_DATE="170000010$i +0100" git commit -qm "add f$i" -m "body $i"; done
sed -i 's/^5$/five/' a.txt; git commit -qam 'change five'
git checkout -q main; sed -i 's/^5$/FUENF/' a.txt; git commit -qam 'fuenf'
r git cherry-pick x~3
r git log -1 --format='%an %ad %cn%n%B'
r git cherry-pick -x x~2
r git log -1 --format=%B
r git cherry-pick -n x~1
r git status --short
r git cherry-pick x
git commit -qm 'by hand'
r git cherry-pick x
r git status --short
r cat a.txt
r cat .git/CHERRY_PICK_HEAD .git/MERGE_MSG
r git cherry-pick --continue
r git cherry-pick x~1
echo fixed >a.txt; git add a.txt
GIT_EDITOR=true r git cherry-pick --continue
r git log -1 --format=%s%n%b
r git cherry-pick --abort
r git cherry-pick --skip
r git cherry-pick nope
git reset -q --hard HEAD~4
r git cherry-pick x~4..x
r git status
r git cherry-pick --skip
r git log --oneline --format=%s
git reset -q --hard HEAD~3
r git cherry-pick x~3 x x~2
echo both >a.txt; git add a.txt
GIT_EDITOR=true r git cherry-pick --continue
r git log --format=%s
git reset -q --hard HEAD~3
r git cherry-pick x~3 x
r git cherry-pick --abort
r git log --format=%s
r git cherry-pick -X theirs x
r git cherry-pick x
r git cherry-pick --skip
r git revert HEAD --no-edit
r git log -1 --format=%B
r git revert HEAD --no-edit
r git log -1 --format=%s
r git revert -n HEAD
r git status --short
r git revert --abort
r git revert HEAD~2 HEAD~1 --no-edit
r git status --short
r git revert --abort
git merge -q -m merged x -X ours
r git revert HEAD
r git revert -m 1 HEAD --no-edit
r git log -1 --format=%B
echo dirty >>a.txt
r git cherry-pick x
r git revert --no-edit HEAD
git add a.txt
r git cherry-pick x~3
