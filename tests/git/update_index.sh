r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
mkdir d; echo 1 >a; echo 2 >d/b; git add .; git commit -qm one
echo new >n; echo 3 >>a
r git update-index n
r git update-index --add n
r git update-index a
r git ls-files -s
r git status --short
rm d/b
r git update-index d/b
r git update-index --remove d/b
r git status --short
r git update-index --force-remove n
r git status --short
r git update-index nosuch
r git update-index --ignore-missing nosuch
r git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,empty
r git update-index --add --cacheinfo 100755 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 run
r git update-index --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,other
r git update-index --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
r git ls-files -s
r git update-index --chmod=+x a
r git ls-files -s a
r git update-index --chmod=-x a
r git ls-files -s a
r git update-index --chmod=+x --add --verbose n a
r git reset -q --hard
r git update-index --refresh
echo 5 >>a; touch d/b
r git update-index --refresh
r git update-index -q --refresh
r git update-index --assume-unchanged a
r git status --short
r git update-index --refresh
r git update-index --really-refresh
r git update-index --no-assume-unchanged a
r git status --short
r git update-index --skip-worktree a
r git status --short
r git ls-files -t
r git diff
git commit -qam skip; r git show --stat --format=%s
r git update-index --no-skip-worktree a
r git status --short
printf 'a\nd/b\n' | git update-index --stdin; echo $?
r git status --short
git ls-files -s >list; git update-index --force-remove a d/b; git update-index --index-info <list; r git ls-files -s
printf '0 0000000000000000000000000000000000000000\ta\n100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 1\tc\n100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 3\tc\n' | git update-index --index-info; echo $?
r git ls-files -s
r git update-index --refresh
r git update-index --unmerged --refresh
echo x >c; r git update-index c; r git ls-files -s
r git update-index --again
cd d; echo 9 >b; r git update-index b; r git update-index --add ../n; cd ..
r git ls-files -s
rm -r d; echo file >d; r git update-index --add d; r git update-index --add --replace d
r git ls-files
git update-index --frob 2>&1 | head -1
git update-index -X 2>&1 | head -1
r git update-index .git/config
r git update-index d/
