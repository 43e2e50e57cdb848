git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git commit --amend -m x
echo 1 > a
git add a
git commit -qm first
git commit --amend -m 'first, better'
git log --oneline
echo 2 > a
git add a
git commit --amend --no-edit
git show --stat --format=fuller
echo 3 > b
git add b
git commit -qm second
git commit --amend --no-edit --author='Eve <eve@example.com>'
git commit --amend --no-edit --date='2021-05-06T07:08:09+0000'
git commit --amend --no-edit --reset-author
git log --format='%an %ad %s'
git rm -q b
git commit --amend --no-edit
git commit --amend --no-edit --allow-empty
git log --oneline
git reset -q --hard HEAD~1
echo 9 > a
git commit --amend -am 'all in one'
git commit --amend -m 'quiet' -q
git commit --amend
GIT_EDITOR='sed -i 1s/quiet/loud/' git commit --amend
git log --format=%B
GIT_EDITOR='cat >&2' git commit --amend
git commit --amend --reset-author -C HEAD
git commit --amend --author='Eve <eve@example.com>' --reset-author
git commit --reset-author -m x
git reflog
git status
