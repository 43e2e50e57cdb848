git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
echo 1 > a; echo 1 > b; mkdir d; echo 1 > d/c
git reset
git add .
git reset a
git status -s
git reset
git add .; git commit -qm one
echo 2 > a; git commit -qam two
echo 3 > a; git commit -qam three; git tag v3
echo w > b; git add b; echo x > d/c
git restore --staged b
git status -s
git restore b
git status -s
git restore
git restore nosuch
git restore --source=HEAD~1 a
git status -s
git restore -s HEAD~2 -SW a
git status -s
git restore -s nosuch a
git restore .
git restore --staged --worktree .
git status -s
echo n > n; git add n
git restore --staged n
git status -s
rm n
git reset --soft HEAD~1
git status -s
git reset
git reset --hard
git reset --hard v3
git reset HEAD~1
git status -s
git reset -q v3
git reset --mixed HEAD~1 -q
git reset --hard HEAD@{1}
git reset --hard nosuch
git reset nosuch
git reset nosuch -- a
git reset --hard -- a
git reset --soft --hard
echo l > b
git reset HEAD b
git add b
git reset -- b
git reset -q HEAD~1 -- a
git status -s
git reset --keep HEAD~1
git reset -q
git checkout -q .
echo l > b
git reset --keep HEAD~1
git status -s
echo k > a
git reset --keep v3
git reset --merge v3
git reset --hard v3 -q
echo st > b; git add b
git reset --merge HEAD~1
git status -s
git reflog
git log --oneline
cat .git/ORIG_HEAD
rm -r d
git reset --hard
git rm -q a
git reset -q --hard
ls
git reset --mixed a
git checkout -q --detach
git reset --hard HEAD~1
git reflog -3
