r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q --bare -b main up.git; git init -q -b main r; cd r; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
git remote add origin ../up.git; echo 1 >a; git add a; git commit -qm one
hook() { cat >../up.git/hooks/$1; chmod +x ../up.git/hooks/$1; }
hook pre-receive <<'H'
#!/bin/sh
echo "pre-receive"; while read old new ref; do echo "$old $new $ref"; git cat-file -t $new; done
H
hook update <<'H'
#!/bin/sh
echo "update $*" >&2
case $1 in */bad*) exit 1;; esac
H
hook post-receive <<'H'
#!/bin/sh
while read old new ref; do echo "post $ref"; done; git rev-parse main; echo; echo end
H
hook post-update <<'H'
#!/bin/sh
echo "post-update $*"
exit 3
H
r git push -u origin main
r git push
git switch -q -c bad; echo 2 >>a; git commit -qam two
r git push origin bad
r git push origin bad main
git branch good
r git push origin bad good
r git push --atomic origin bad good:other
git -C ../up.git for-each-ref --format='%(refname)'
git for-each-ref --format='%(refname)' refs/remotes
r git push -n origin bad
r git push origin :good
hook pre-receive <<'H'
echo "no, thanks"; exit 1
H
git switch -q main; echo 3 >>a; git commit -qam three
r git push
git rev-parse origin/main; git -C ../up.git rev-parse main
r git push -q
rm ../up.git/hooks/*
git -C ../up.git config core.hooksPath other; mkdir ../up.git/other; printf '#!/bin/sh\ncat; exit 1\n' >../up.git/other/pre-receive; chmod +x ../up.git/other/pre-receive
r git push
rm ../up.git/other/pre-receive
r git push
