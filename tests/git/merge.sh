r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 20 >a.txt; echo b >b.txt; git add .; git commit -qm base
git branch x; git branch y; git branch z; git branch ren
r git merge x
git checkout -q x; sed -i 's/^3$/three/' a.txt; echo n >n.txt; git add .; git commit -qm 'x change'
git checkout -q y; sed -i 's/^18$/eighteen/' a.txt; git commit -qam 'y change'
git checkout -q ren; git mv b.txt c.txt; git commit -qm 'rename b'
git checkout -q main
r git merge nope
r git merge --abort
r git merge --continue
r git merge x
r git log --oneline -1
r git merge x
r git merge --ff-only y
r git merge y
r git log -1 --format=%B%P
r cat .git/ORIG_HEAD
r git merge --no-ff -m 'take the rename' ren
r git ls-files
r git log -1 --format=%s
r git merge-base main y
r git merge-base --is-ancestor y main
r git merge-base --is-ancestor main y
r git merge-base nope main
git checkout -q z; echo z >z.txt; git add z.txt; git commit -qm 'z file'
r git merge --no-commit main
r git status --short
r cat .git/MERGE_HEAD .git/MERGE_MSG
r git merge main
r git merge --abort
r git status --short
r git merge --squash main
r git status --short
git reset -q --hard
r git merge --quiet main
r git log -1 --format=%s
git checkout -q -b dirty main~1; echo local >>a.txt
r git merge x
r git merge z
git checkout -q .; echo staged >>a.txt; git add a.txt
r git merge z
git reset -q --hard; echo untracked >z.txt
r git merge z
rm z.txt
r git merge --no-ff --no-edit z
r git log -1 --format=%s
git checkout -q main; git tag -a v1 -m 'version one' z; git checkout -q -b other main~1
r git merge v1
r git log -1 --format=%B
git checkout -q --orphan alone; git rm -rqf .; echo q >q; git add q; git commit -qm alone
r git merge main
r git merge --allow-unrelated-histories -m joined main
r git log --oneline -1
git checkout -q main; git checkout -q -b s; 
r git merge -s ours -m 'only ours' alone
r git ls-files
git checkout -q -b o1 main; echo 1 >o1; git add .; git commit -qm o1; git checkout -q -b o2 main; echo 2 >o2; git add .; git commit -qm o2; git checkout -q main
r git merge o1 o2
r git log -1 --format=%B%P
