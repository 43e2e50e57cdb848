r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
mkdir up; cd up; git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
echo a >a; git add .; git commit -qm one; git branch side; git tag v1; git tag -a v2 -m two; cd ..
git config --global user.name Ada; git config --global user.email ada@example.com
r git clone up one
r git clone up one
r git clone nope
r git clone -q up quiet
r git clone --bare up hub.git
r git clone hub.git
r git clone -b side hub.git sideclone
r git clone -b nope hub.git x
r git clone -b v1 -q hub.git tagclone
r git -C tagclone status
grep -v filemode one/.git/config; grep -v filemode hub.git/config
r git -C one branch -a -vv
r git -C one remote -v
r git -C hub.git branch
cd hub; r git remote show origin
r git push
echo b >>a; git commit -qam two
r git status
r git push
r git push
git checkout -q -b feat; echo f >f; git add .; git commit -qm feat
r git push
r git push origin feat
r git push -u origin feat
r git push --set-upstream origin feat:other
r git branch -vv
cd ../sideclone; r git fetch
r git branch -a
r cat .git/FETCH_HEAD
r git pull
git checkout -q main; r git pull
git checkout -q -b m origin/main; echo c >c; git add .; git commit -qm c; r git push origin m:main
r git push origin HEAD
cd ../hub; git checkout -q main; echo d >d; git add .; git commit -qm d
r git push
r git pull
r git pull --ff-only
r git pull --no-rebase
r git log -1 --format=%s
git commit -q --amend -m merged
r git push
cd ../sideclone; git checkout -q main; r git pull origin main
r git pull
echo e >e; git add .; git commit -qm e; git push -q; git reset -q --hard HEAD~1; echo e2 >e2; git add .; git commit -qm e2
r git push
r git push --force-with-lease
cd ../hub; echo g >g; git add .; git commit -qm g
r git pull --rebase
r git log --format=%s -3
r git fetch -v
r git push --force
git tag t1; r git push --tags
r git push origin t1
r git push origin :refs/tags/t1
r git push --delete origin other
r git push origin --delete nope
r git push origin nope
r git push origin HEAD:refs/heads/new
r git push -n origin main:dry
r git push --all
r git ls-remote
r git ls-remote --heads origin
r git ls-remote ../nope
r git ls-remote --tags ../up
cd ../sideclone; r git fetch --prune
r git fetch origin main
r git fetch ../hub feat:local
r git fetch nope
r git branch -a
r git remote prune origin
r git push ../up main
cd ../up; r git status --short; r git branch -v
r git submodule status
r git gc -q
r git fsck 2>/dev/null >/dev/null
r git pull
r git push
git checkout -q --detach; r git push
