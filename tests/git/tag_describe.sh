r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
r git describe
r git tag v0
echo a >a; git add a; git commit -qm one
r git describe
r git describe --always
r git tag
r git tag light
r git describe
r git describe --tags
r git tag -a v1.0 -m 'version one' -m 'more text'
r git describe
echo b >>a; GIT_COMMITTER_DATE='1700000100 +0000' git commit -qam two
r git describe
r git describe --long
r git describe --abbrev=0
r git describe --abbrev=12
r git describe --tags --dirty
echo c >>a
r git describe --dirty
r git describe --dirty=-mod
git checkout -q a
r git describe --exact-match
r git describe v1.0
r git describe --long v1.0
r git describe --all
r git describe --match 'x*'
r git describe --match 'v*' HEAD
r git describe nope
r git tag v1.0
r git tag -f light
r git tag v1.10 HEAD; git tag v1.9; git tag -am 'rc' v2.0-rc1
r git tag
r git tag -l 'v1*'
r git tag -n
r git tag -n2 v1.0
r git tag --sort=-v:refname
r git tag --sort=version:refname
r git tag --sort=-creatordate
r git tag --points-at HEAD
r git tag --contains HEAD~1
r git tag --contains HEAD
r git tag --merged HEAD~1
r git tag -d light nope
r git tag -d v1.9
r git tag bad..name
r git tag x nope
r git cat-file -p v1.0
r git tag --format='%(refname:short) %(objecttype) %(subject)'
r git show-ref --tags -d
echo 'from file' >msg; r git tag -F msg filetag
r git tag -l -n3 filetag
r git tag -a nested -m n v1.0
