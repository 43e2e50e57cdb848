r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main r; cd r; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
echo 1 >a; git add a; git commit -qm one; git branch topic; git worktree add -q ../w topic; git worktree add -q -b third ../v
r git branch -m topic renamed
cat .git/worktrees/w/HEAD; r git -C ../w status -sb; r git -C ../w log --oneline; r git branch
cd ../w; echo 2 >>a; git commit -qam two; r git log --oneline
r git branch -m again
cat ../r/.git/worktrees/w/HEAD; r git log --oneline; r git reflog; r git branch
r git branch -m main trunk
cat ../r/.git/HEAD; r git -C ../r log --oneline; r git -C ../r status -sb
r git branch -M third
r git branch -M again third
r git branch -f third
r git branch -c again copy
cd ../v; r git branch -m x/y; r git status -sb; r git log --oneline --all; r git branch
r git branch -d again
cd ../r; r git branch -m nosuch other; r git worktree list --porcelain | grep branch
