git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
echo a > a.txt; git add .; GIT_AUTHOR_DATE='1600000000 +0530' git commit -q -m "First: commit (one) & more

Body line 1
Body line 2

Signed-off-by: Ada <ada@example.com>
Reviewed-by: Bob <bob@example.com>"
git tag v1.0; git tag -a -m ann v1.1
echo b >> a.txt; git add .; GIT_COMMITTER_NAME=Cleo GIT_COMMITTER_EMAIL=cleo@example.com git commit -q -m "Second commit with a rather long subject line that goes on and on"
git branch side
echo c >> a.txt; git add .; GIT_AUTHOR_DATE='1690000000 -0800' git commit -q -m "Third

Just a body"
for o in "--pretty=oneline" "--pretty=short" "--pretty=medium" "--pretty=full" "--pretty=fuller" "--pretty=reference" "--pretty=raw" "--format=oneline --abbrev-commit" "--pretty=nonsense" \
  "--format=%H" "--format='%h %s'" "--pretty=format:%h" "--pretty=format:'%h - %an, %ar : %s'" "--pretty=tformat:%h" "--format=%an%x09%ae%x09%ad --date=short" "--format='%T %t %P %p'" "--format='%cn <%ce> %cd %ci %cI %ct %cs'" "--format='%ai|%aI|%at|%as|%aD'" \
  "--format='%f'" "--format='%b'" "--format='%B'" "--format='%s%n%n%b'" "--format='%h%d' " "--format='%h %D'" "--format='%C(yellow)%h%C(reset) %s'" "--format='%Cred%h%Creset %s'" "--format='%C(auto)%h%d %s'" "--format='%h %% %m %e'" "--format='%<(10,trunc)%s|%>(12)%an|%<(20)%s|'" "--format='%<(5)%an|%>(5)%h|%><(11)%an|'" \
  "--format='%(trailers)'" "--format='%(trailers:key=Signed-off-by,valueonly)'" "--format='%(trailers:key=Reviewed-by,separator=%x2C)'" "--format='%aN %aE %al %cN'" "--format=%ad --date=iso" "--format=%ad --date=iso-strict" "--format=%ad --date=rfc" "--format=%ad --date=raw" "--format=%ad --date=unix" "--format=%ad --date=local" "--format=%ad --date=iso-local" "--format=%ad --date=format:%Y/%m/%d_%H:%M" "--format=%ad --date=default" "--format=%ad --date=bogus" "--date=short" "--date=iso -1" "--date=human -1" "--date=relative --format=%cd" \
  "--format= --name-only" "--format=%h --name-only" "--pretty=format:%h --name-only" "--pretty=format:%h --stat" "--pretty=format: --name-only" "--format=%h%n -p -1" "--format=fuller -1 --stat" "-1 --format='%h%n%+b%-b% s'" "--format='[%h]' -z" "--oneline -z" "-z --name-only --format=%h" "--format='%w(30,2,4)%s'" "--format='%G?'" "--format=short -s" "--format='%gd %gs' -g" "--pretty=fuller --date=iso -1" "--format=format:%H -1" "--format=%H -n1" "--format='%x41%x0a'" "--format=%zz" "--format='%an' --reverse" "--pretty=%h:%s" "--pretty='%h %s'" "--abbrev=4 --format=%h" "--format='%(decorate)'" "--pretty --oneline"; do
  echo "=== $o"; eval "git log $o" >"$HOME/out" 2>&1; c=$?
  tr '\0' @ <"$HOME/out" | sed 's/[0-9]* years\{0,1\}\(, [0-9]* months\{0,1\}\)\{0,1\} ago/AGO/'; echo "<< $c"
done
