r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 20 >a.txt; echo del >del.txt; echo del2 >del2.txt; seq 50 70 >r.txt; printf 'a\0b' >bin; git add .; git commit -qm base
git checkout -q -b x
sed -i 's/^3$/three/;s/^10$/ten/;s/^11$/same/;s/^12$/x12/' a.txt; echo more >>del.txt; git rm -q del2.txt; echo x >add.txt; git mv r.txt moved.txt; printf 'a\0x' >bin; git add .; git commit -qm 'x side'
git checkout -q main
sed -i 's/^3$/drei/;s/^10$/zehn/;s/^11$/same/;s/^13$/y13/' a.txt; git rm -q del.txt; echo more >>del2.txt; echo y >add.txt; sed -i 's/^60$/sixty/' r.txt; printf 'a\0y' >bin; git add .; git commit -qm 'main side'
r git merge x
r cat a.txt
r cat add.txt
r git ls-files -s
r cat .git/MERGE_MSG .git/MERGE_MODE
r git status
r git diff --name-only --diff-filter=U
r git merge x
r git merge --continue
r git commit -m no
r cat moved.txt
r git merge --abort
r git status --short
r git merge -X ours x
r cat a.txt
r git merge --abort
r git merge -X theirs x
r cat a.txt
git checkout -q --theirs bin; git add -A; 
GIT_EDITOR=true r git merge --continue
r git log -1 --format=%s%n%P
git reset -q --hard HEAD~1
r git -c merge.conflictStyle=diff3 merge x
r cat a.txt
git merge --abort
r git merge --squash x
r git status --short
git reset -q --hard
# rename on both sides, rename and delete
git checkout -q -b rr1 main; git mv r.txt r1.txt; git commit -qm r1
git checkout -q -b rr2 main; git mv r.txt r2.txt; git commit -qm r2
r git merge rr1
r git ls-files -s
git merge --abort
git checkout -q -b rd main; git rm -q r.txt; git commit -qm gone
r git merge rr1
r git ls-files -s
git merge --abort
# criss-cross
git checkout -q -b c1 main; sed -i 's/^5$/c1/' a.txt; GIT_COMMITTER_DATE='1700000100 +0000' git commit -qam c1
git checkout -q -b c2 main; sed -i 's/^18$/c2/' a.txt; git commit -qam c2
git checkout -q c1; git merge -q c2 -m m1; git checkout -q c2; git merge -q c1~1 -m m2
sed -i 's/^5$/later/;s/^c1$/later/' a.txt; git commit -qam later; git checkout -q c1; sed -i 's/^c2$/mine/' a.txt; git commit -qam mine
r git merge c2
r cat a.txt
# file and directory
git checkout -q -b f1 main; echo f >thing; git add .; git commit -qm f1; git checkout -q -b f2 main; mkdir thing; echo g >thing/g; git add .; git commit -qm f2
r git merge f1
r git status --short
