mkdir r; cd r; git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
echo 1 > a; mkdir d; echo 1 > d/b; git add .; git commit -qm one
git worktree list
git worktree add ../x
git worktree add ../y -b why
git worktree add -b why ../z
git worktree add ../y
git worktree add ../z main
git worktree add ../z nosuch
git worktree add --detach ../z
git worktree list | sed 's/ .*//'
git worktree list --porcelain | grep -v worktree
cat ../x/.git | grep -c gitdir
cat .git/worktrees/x/HEAD .git/worktrees/x/commondir .git/worktrees/z/HEAD
cd ../y
git status
echo 2 > a
git status -s
git commit -qam 'in y'
git log --oneline
git branch
git rev-parse --abbrev-ref HEAD
git checkout main
git checkout -q -b third
cd d
git status -sb
git add ..
cd ../../r
git log --oneline --all
git checkout why
git checkout third
git branch -d why
git worktree remove ../x
git branch
echo u > ../y/u
git worktree remove ../y
git worktree remove -f ../y
git worktree lock ../z
git worktree lock ../z
git worktree remove ../z
git worktree unlock ../z
git worktree unlock ../z
git worktree lock --reason 'in use' ../z
git worktree remove -f ../z
git worktree unlock ../z
git worktree move ../z ../moved
ls ..
git worktree add ../why why
rm -r ../moved
git worktree prune -n
git worktree prune -v
git worktree list | wc -l
git worktree remove nosuch
git worktree remove .
git worktree frob 2>&1 | head -1
git worktree add -B why ../again HEAD
git worktree remove ../why
git worktree add -B why ../again HEAD
cat ../again/a
git worktree add ../n/deep/er -b deep
cd ../n/deep/er
git log --oneline -1
cd ../../../r
git worktree list --porcelain
ls .git/worktrees
