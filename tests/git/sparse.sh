git init -q -b main a; cd a
git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
mkdir -p d/e f 'g h'; for p in top d/x d/e/y f/z 'g h/w'; do echo $p > "$p"; done
git add .; git commit -qm one
echo "-- set"
git sparse-checkout set d/e
find . -path ./.git -prune -o -type f -print | sort
cat .git/info/sparse-checkout
git status
git sparse-checkout list
echo "-- add"
git sparse-checkout add f 'g h'
git sparse-checkout list
git ls-files -t
git status -s
cd d; git sparse-checkout set e; cd ..
git sparse-checkout list
echo "-- commits and branches"
git switch -qc more; echo more >> top; echo more > d/new; git add .; git commit -qam two; git ls-tree -r --name-only HEAD
git switch -q main; git switch -q more; git ls-files -t; git diff main --stat
git reset -q --hard main; git ls-files -t; git status -s
echo "-- local changes"
echo changed > d/e/y; git sparse-checkout set f; git status -s; git sparse-checkout list
git checkout -q -- d/e/y; git sparse-checkout reapply; find . -path ./.git -prune -o -type f -print | sort
echo "-- errors"
git sparse-checkout set top; git sparse-checkout list
git sparse-checkout disable; find . -path ./.git -prune -o -type f -print | sort; git status
git sparse-checkout list; git sparse-checkout add f; git sparse-checkout reapply
echo "-- clone"
cd ..; git clone -q --sparse a b; cd b; ls; git sparse-checkout set d; find . -path ./.git -prune -o -type f -print | sort
git sparse-checkout init; git sparse-checkout list; git status
