r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
r git fsck
mkdir d; echo 1 >a; echo 2 >d/b; git add .; git commit -qm one; git tag -a v1 -m t
r git fsck
r git fsck --full --strict
echo lost | git hash-object -w --stdin
r git fsck
r git fsck --no-dangling
r git fsck --unreachable
echo 3 >>a; git commit -qam two; git reset -q --hard HEAD~
r git fsck
r git fsck --no-reflogs
git fsck --no-reflogs --unreachable | sort; echo $?
r git fsck --root --tags
r git fsck --lost-found
find .git/lost-found -type f | sort; cat .git/lost-found/other/*
r git fsck v1
r git fsck nosuch
r git fsck HEAD v1 nosuch
git worktree add -q ../wt; echo w >../wt/w; git -C ../wt add w; r git fsck
echo 4 >a; git add a; r git fsck
b=$(git rev-parse HEAD:d/b); git init -q -b main ../x; cd ../x; git config user.name Ada; git config user.email ada@example.com
mkdir d; echo 1 >a; echo 2 >d/b; git add .; git commit -qm one
rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); r git fsck; rm -f .git/index; r git fsck
t=$(git rev-parse HEAD:d); rm -f .git/objects/$(echo $t | cut -c1-2)/$(echo $t | cut -c3-); r git fsck
git fsck --frob 2>&1 | head -1
cd ..; mkdir no; cd no; GIT_CEILING_DIRECTORIES=$PWD/.. r git fsck | sed 's/fatal: not a git.*/not a repository/'
