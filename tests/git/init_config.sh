r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
r git init one
r git init -q -b main two
r git init -b trunk three
r git init three
r git init -b other three
r git init --bare bare.git
cat two/.git/config bare.git/config | grep -v filemode
cat three/.git/HEAD
r git -c init.defaultBranch=dev init four
r git -C four symbolic-ref HEAD
r git config user.name Ada
cd two
r git config user.name Ada
r git config user.email "ada@example.com"
r git config core.fileMode false
r git config user.name
r git config --get user.email
r git config --local --get user.nope
r git config foo
r git config foo.
r git config x.y_z 1
r git config --unset user.nope
cat >>.git/config <<'X'
# a comment
[alias]
	co = checkout  ; check out
	; more
	st = status
[Remote "Up \"x\""]
	URL = a#b
	url2 = "a;b  " # c
[core]
	flag
X
r git config --list
r git config --local -l --show-origin
r git config alias.co switch
r git config alias.new "log --oneline; x"
r git config --unset alias.st
r git config 'remote.Up "x".url' changed
r git config --add multi.key one
r git config --add multi.key two
r git config multi.key
r git config multi.key three
r git config --get-all multi.key
r git config --get-regexp 'multi.*'
r git config --get-regexp '^user\.' ada
r git config --unset multi.key
r git config --unset-all multi.key
r git config --replace-all a.b c
r git config section.Sub.Name v
r git config section.Sub.flag " lead"
cat .git/config
r git config core.flag
r git config --bool core.flag
r git config --type=bool user.name
r git config --type=int core.bare
r git config --int a.size 3k
r git config --type=int a.size
r git config --bool a.yes on
r git config a.yes
r git config get user.name
r git config set user.name Bob
r git config get --all user.name
r git config list --local
r git config unset user.name
r git config unset user.name
r git config get user.name
r git config set only
r git config get --default x no.key
r git config --default x --get no.key
r git config --rename-section section.Sub section.New
r git config --remove-section a
r git config --remove-section nothere
r git config --global user.name Global
r git config --global --list
r git config --get user.name
r git config --show-origin user.name
r git config --show-scope user.name
r git config --name-only --local -l
r git -c user.name=Cmd config user.name
cat .git/config $HOME/.gitconfig
cd ..
r git config --file other.cfg x.y z
cat other.cfg
r git config -f other.cfg -l
r git config -f missing.cfg -l
r git config -f other.cfg --unset x.y
cat other.cfg
r git config --global --unset user.name
cat $HOME/.gitconfig
git var GIT_AUTHOR_IDENT >/dev/null 2>&1; echo $?
cd two
git config user.name Ada
git var GIT_AUTHOR_IDENT >/dev/null 2>&1; echo $?
r git var GIT_COMMITTER_IDENT
GIT_EDITOR=ed r git var GIT_EDITOR
r git var NOPE
r git nosuch 2>/dev/null
r git help 2>&1 | grep -c usage
