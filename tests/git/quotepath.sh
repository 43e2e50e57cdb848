r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
mkdir -p 'd ü'; echo 1 >é.txt; echo 2 >'d ü/a b'; printf 3 >"$(printf 'tab\tü')"; echo 4 >'q"é'; git add é.txt; git commit -qm one; echo 5 >>é.txt
for set in true false; do
  git config core.quotePath $set
  r git status --short
  r git status --porcelain=v2
  r git ls-files -o
  r git ls-files
  r git diff
  r git diff --stat
  r git diff --name-status
  r git diff --raw
  r git ls-tree HEAD
  r git show --stat --format= HEAD
  r git grep -n 5
  r git check-ignore -v é.txt
done
r git -c core.quotepath=true ls-files
r git -c core.quotePath=false -c core.quotepath=yes ls-files
r git -c core.quotepath=maybe ls-files
git -c core.quotepath ls-files -o
git config --unset core.quotepath
r git -c core.quotepath=off clean -n -d
git -c core.quotepath=off mv é.txt ñ.txt
r git -c core.quotepath=off status --short
r git -c core.quotepath=off diff --cached -M --summary
r git -c core.quotepath=off diff --cached -M
r git -c core.quotepath=off format-patch -1 --stdout --no-signature
