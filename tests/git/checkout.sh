git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git checkout -b early
git checkout -q -b main
echo 1 > a; mkdir d; echo b > d/b
git add .; git commit -qm one
git tag v1
git branch side
echo 2 > a; git commit -qam two
git checkout side
git checkout side
git checkout main
git checkout -
git checkout -b new
git checkout -b new
git checkout -b 'bad name'
git checkout -b x nosuch
git checkout -b from-main main
git checkout nosuch
git checkout v1
git checkout -q main
git checkout HEAD~1
git checkout -
git checkout -q --detach
echo 3 > c; git add c; git commit -qm 'on detached'
git checkout main
echo local > a
git checkout side
git checkout -f side
git checkout main
echo local > d/b
git checkout side
git checkout -q main
git status -s
git checkout -- d/b
git checkout d/b
rm a; git checkout a
git checkout nosuchfile
git checkout v1 -- a
git status -s
git checkout v1 -- nosuch
git checkout nosuch -- a
git checkout HEAD a
git checkout -- .
git checkout -B side main
git checkout -B side v1
git checkout -B main
echo u > u; git branch -q with-u; git checkout -q with-u; git add u; git commit -qm u
git checkout -q main
echo other > u
git checkout with-u
rm u
git switch with-u
git switch -
git switch -c created
git switch -c created
git switch nosuch
git switch v1
git switch HEAD
git switch --detach v1
git switch main
git switch
git switch -C created v1
git switch -
git checkout --orphan lonely
git status -s
git checkout -f main
git switch --orphan lonely2
ls
git switch main
git reflog
mkdir side2; echo x > side2/f; git checkout side2
git checkout -b q --track main
git branch -vv
