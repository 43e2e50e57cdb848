git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
n=1700000000
commit() { n=$((n+3600)); GIT_AUTHOR_DATE="$n +0100" GIT_COMMITTER_DATE="$n +0100" git commit -q -m "$1" ; }
printf 'name = "a"\nport = 80\n' > a.ini; git add .; commit "begin"
printf 'name = "a"\nport = 80\nAPI_TOKEN = "x1"\n' > a.ini; git add .; commit "a key in capitals"
git checkout -q -b other
printf 'Password: two words\n' > b.txt; git add .; commit "a password"
git checkout -q main
printf 'name = "a"\nport = 80\n' > a.ini; git add .; commit "the key is gone"
printf 'name = "tokenizer"\nport = 8080\n' > a.ini; git add .; commit "a word in it"
for o in "-G(token|passw|secret)" "-i -G(token|passw|secret)" "--regexp-ignore-case -GTOKEN" "-i -Gtoken[[:space:]]" "-G[[:digit:]]{4}" "-E -i -G^(NAME|port)" "-i -G\<TOKEN\>" "-i -Snot-there" "-S TOKEN" "-i -S token" "-i -S api_token -p" \
  "-i --pickaxe-regex -S tok.n" "--pickaxe-regex -S [Tt]ok.n" "-i -Ga.c"; do
  echo "=== log $o"; git log --all --oneline $o; echo "code $?"
done
echo "=== patches"; git log --all -i -G'(token|passw|secret|bearer)' -p -U0
echo "=== one file"; git log --all -i -G'(TOKEN|PASSW)' --format=%s -- b.txt
git diff -GTOKEN HEAD~3 HEAD~2 --stat; git diff -Gtoken HEAD~3 HEAD~2 --stat; echo "code $?"
