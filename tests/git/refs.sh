r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
r git show-ref
r git symbolic-ref HEAD
r git symbolic-ref --short HEAD
echo a >a; git add a; git commit -qm one; echo b >>a; GIT_COMMITTER_DATE='1700000100 +0100' git commit -qam 'two words
'
git branch x HEAD~1; git tag -a v1 -m 'tag one'; git tag l
r git show-ref
r git show-ref main
r git show-ref --heads
r git show-ref --tags -d
r git show-ref --head
r git show-ref -s main
r git show-ref --abbrev
r git show-ref --verify refs/heads/main
r git show-ref --verify main
r git show-ref --verify -q refs/heads/nope
r git show-ref nope
r git symbolic-ref HEAD refs/heads/x
r git symbolic-ref HEAD
r git symbolic-ref HEAD refs/heads/main
r git symbolic-ref HEAD nope
r git symbolic-ref refs/heads/main
r git update-ref refs/heads/new HEAD
r git update-ref refs/heads/new HEAD~1 HEAD
r git update-ref refs/heads/new HEAD HEAD
r git update-ref refs/heads/new nope
r git update-ref -d refs/heads/new
r git update-ref -d refs/heads/new
r git update-ref -m 'by hand' refs/heads/x HEAD
r git reflog show x
r git for-each-ref
r git for-each-ref refs/heads
r git for-each-ref --format='%(refname:short) %(objectname:short) %(objecttype) %(subject)'
r git for-each-ref --format='%(refname) %(authorname) %(committerdate)' refs/heads
r git for-each-ref --format='%(committerdate:iso) %(committerdate:short) %(committerdate:unix) %(committerdate:iso-strict)' refs/heads/main
r git for-each-ref --format='%(creatordate:raw) %(taggername) %(*objectname)' refs/tags
r git for-each-ref --sort=-committerdate --count=1 --format='%(refname:short)' refs/heads/
r git for-each-ref --format='%(if)%(HEAD)%(then)* %(else)  %(end)%(refname:short)' refs/heads
r git for-each-ref --format='%(upstream:short)|%(HEAD)|%(refname:lstrip=2)' refs/heads
r git for-each-ref 'refs/heads/m*'
r git for-each-ref --format='%(nope)'
r git for-each-ref --points-at HEAD --format='%(refname)'
r git remote
r git remote add origin ../o.git
r git remote add origin x
r git remote -v
r git remote get-url origin
r git remote set-url origin /some/where
r git remote set-url --push origin /push
r git remote -v
r git remote rename origin up
r git remote
r git remote get-url nope
r git remote remove up
r git remote rm up
r git remote -v
cat .git/config | grep -v filemode
