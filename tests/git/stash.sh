git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git stash
git stash list
git stash pop
echo 1 > a; echo 1 > b; git add .; git commit -qm one
git stash
echo 2 > a
git stash
git status -s
git stash list
git stash show
git stash show -p
git cat-file -p stash
git cat-file -p stash^2
git stash pop
echo 3 > b; git add b
git stash push -m 'my message'
git stash list
git stash apply
git stash apply
git reset -q --hard
git stash apply --index
git reset -q --hard
echo u > u
git stash
git stash -u
ls
git stash list
git stash show stash@{0}
git stash show -u
git stash pop
git stash drop
git stash drop
git stash drop stash@{7}
echo 5 > a; git add a; echo 6 > a
git stash -k
git status -s
git stash clear
git reset -q --hard
echo 1 >> a; echo 1 >> b
git stash push a
git status -s
git stash push -m named -- b
git stash list
git stash pop 1
git stash pop stash@{1}
git stash drop -q
git reset -q --hard
echo changed > a; git stash -q; echo other > a; git commit -qam other
git stash pop
cat a
git status
git checkout -q --theirs a
git reset -q --hard
git stash branch st
git log --oneline --all
git stash list
git reset -q --hard
echo n > new; git add new; rm b
git stash save 'old style'
git status -s
git stash pop
git stash nosuch
git stash push nosuch
git stash apply HEAD
git stash apply nosuch
git stash show nosuch
git stash -q
git stash list
echo mine > a
git stash
git stash apply -q
git stash list
git stash drop stash@{1}
git checkout -q --detach
git stash pop -q
git checkout -q .
echo t > a
git stash
git stash --staged
git add -A; echo z > a; git add a
git stash --staged -m onlystaged
git stash list
