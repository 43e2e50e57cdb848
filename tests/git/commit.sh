git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git commit -m x
echo 1 > a
git commit -m x
git add a
git commit -m 'first commit' -m 'with a body' -m 'and more'
git log
git commit -m nothing
echo 2 >> a
git commit -m 'not staged'
git commit -a -m second
git commit -am third
echo 3 >> a
git commit -am third --author='Bob <bob@example.com>'
git commit --allow-empty -m empty
git commit --allow-empty --allow-empty-message -m ''
git commit --allow-empty -m ''
git commit --allow-empty
git log --format=%s%n%b
echo 'from file

body # not a comment
# comment' > msg
echo 4 >> a
git commit -q -a -F msg
git log -1 --format=%B
echo 5 >> a
echo 'from stdin' | git commit -a -F -
git commit -F nofile
echo b > b; echo c > c; mkdir d; echo d > d/d
git add .
git commit -m 'only b' b
git status -s
git commit -m 'only nothing' nosuch
echo more >> a
git commit a -m 'only a'
git status -s
git commit -m 'the rest'
echo x >> a
git commit -am 'dated' --date='2020-01-02 03:04:05 +0100'
git log -1 --format='%ad %cd'
echo y >> a
git commit -am signed -s
git log -1 --format=%B
echo y >> a
git commit -am 'trailer' --trailer 'Reviewed-by: X <x@y>' -s
git log -1 --format=%B
echo y >> a
git commit -a --fixup HEAD~1
git log -1 --format=%B
echo z >> a
git commit -a -C HEAD~1
git commit -m a -F b
git commit -a -m x a
git commit --author=nobody --allow-empty -m x
git commit --author=bob --allow-empty -m byname
git mv a a2
git rm -q b
git commit -m 'rename and delete'
echo q > q
git add q
git commit --dry-run
git commit -m x --short
GIT_EDITOR='printf "edited\n\n# hidden\nbody\n" >' git commit
git log -1 --format=%B
echo q2 > q
GIT_EDITOR='cat >&2' git commit -a
GIT_EDITOR=false git commit -a
GIT_EDITOR=: git commit -a
git commit -a -m 'no quiet' -q
git commit -e -m 'x'
git checkout -q --detach
git commit --allow-empty -m 'on detached'
git reflog
git commit --amend -m 'first' --cleanup=frob
git commit --allow-empty -m '  spaces  


lots   

' --cleanup=verbatim
git cat-file -p HEAD
git commit --allow-empty -m '  spaces  


lots   

'
git cat-file -p HEAD
