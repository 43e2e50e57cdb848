r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
r git branch
r git branch --show-current
r git branch x
echo a >a; git add a; git commit -qm one; echo b >>a; git commit -qam two
r git branch
r git branch x
r git branch x
r git branch -f x HEAD~1
r git branch feature/one HEAD~1
r git branch feature
r git branch bad..name
r git branch y nope
r git branch -v
r git branch -vv
r git branch --list 'f*'
r git branch --list 'x' 'm*'
r git branch --merged
r git branch --no-merged
r git branch --contains HEAD
r git branch --contains HEAD~1
r git branch --no-contains HEAD
r git branch -d x
r git branch -d main
r git branch -d nope
git branch u; git checkout -q u; echo c >c; git add c; GIT_COMMITTER_DATE='1700000100 +0000' git commit -qm 'on u'; git checkout -q main
r git branch -d u
r git branch --no-merged main
r git branch --merged u
r git branch --sort=-committerdate
r git branch --format='%(refname:short) %(objectname:short) %(HEAD)'
r git branch -m u v
r git branch -m nope z
r git branch -m v main
r git branch -m trunk
r git branch --show-current
r git branch -M v feature/one
r git branch -c trunk copy
r git branch
r git branch -D copy feature/one
r git branch -u nope
r git branch w; r git branch -u w; r git branch -vv
r git config --get-regexp branch
r git branch --unset-upstream
r git branch --unset-upstream
r git branch -t tracked w
r git branch --track=direct t2 trunk
r git branch -vv
r git branch -d tracked t2
r git branch -r
r git branch -a
git checkout -q HEAD~1
r git branch
r git branch --show-current
r git branch -d
r git branch -q q1
r git branch -D q1 -q
git worktree add -q ../wt w 2>/dev/null; r git branch; r git branch -d w; rm -rf ../wt
