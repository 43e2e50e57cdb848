git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git add
git add nothing
git add .
echo $?
echo 1 > a; echo 2 > b; mkdir d; echo 3 > d/c; echo 4 > d/e.txt
git add -n .
git add -v a b
git add -v d/*.txt
git status -s
git add -A
git status -s
git rm a
git rm --cached a
git status -s
git add a
git commit -qm one
rm a
echo 22 > b
git add a
git status -s
git add -u
git status -s
git commit -qm two
git rm d
git rm -n -r d
echo mod >> b
git rm b
git add b
git rm b
echo mod >> b
git rm b
git rm -f b
git rm nothing
git rm --ignore-unmatch nothing
git rm -r d
git rm
git status -s
git reset -q --hard
git mv b e
git mv nothing x
git mv e d
git status -s
git mv d/e d/c
git mv -f d/e d/c
git mv d new
git status -s
git mv -v new/c top
git mv -n top bottom
git mv top bottom/x
git mv top new/
git mv new new/x
git mv top missing/
echo u > untracked
git mv untracked u2
git mv new/e.txt untracked gone
ls -R
echo '*.log' > .gitignore
echo l > x.log
git add x.log
git add untracked x.log
git status -s
git add -f x.log
git status -s
git add --chmod=+x untracked
git ls-files -s
git add --chmod=-x untracked
git add --chmod=7 untracked
git add '*.txt'
git add -N .gitignore
git status -s
git add ../outside
git add :/
git add -- ':!x.log' .
git status -s
git add -A -u
git add --intent-to-add nosuch
ln -s a link
git add link
git ls-files -s link
mkdir empty
git add empty
git rm -r --cached -q .
git status -s
