Command lines with curl and wget for which kiso and Debian's programs must give the same result: the same bytes on standard
output, the same exit code, the same files. Each runs in an empty directory; $U is a server on loopback
(`skills/curl/src/server.rs`), and $P its port. `### ` starts a named line. No line may depend on time, on the name of the
program, or on standard error.

## Answers

### a body
curl -s $U/a.json

### a body through a pipe
curl -s $U/a.json | tr a-z A-Z

### several URLs
curl -s $U/a.json $U/nothing $U/chunked

### a set and a range
curl -s "$U/{a.json,500}?x=[1-2]"

### without patterns
curl -s -g "$U/echo?a={b}&c=[d]"

### a file
curl -s -o out.txt $U/a.json; cat out.txt

### a file by its name
curl -s -O $U/big; wc -c big

### two files by their names
curl -s -O $U/a.json -O $U/big; ls

### all by their names
curl -s --remote-name-all $U/a.json $U/big; ls

### names with parts of the pattern
curl -s "$U/echo?n=[1-2]" -o 'e_#1.txt'; head -n 1 e_1.txt e_2.txt

### directories are made
curl -s --create-dirs -o a/b/c $U/a.json; cat a/b/c

### a directory for all
mkdir d; curl -s --output-dir d -O $U/a.json; ls d

### a missing directory
curl -s -o none/x $U/a.json; echo $?

### a URL without a name
curl -s -O $U/; echo $?

### a name from the server
curl -s -OJ $U/named; ls; cat given.txt

### a name from the server that is taken
echo old > given.txt; curl -s -OJ $U/named; echo $?; cat given.txt

### nothing is clobbered
echo old > f; curl -s --no-clobber -o f $U/a.json; ls; cat f

### an empty body
curl -s -o f $U/nothing; echo $?; ls -s f | tr -d 0-9; curl -s $U/204; echo $?

### the time of the server
curl -s -R -o f $U/a.json; date -u -r f +%Y-%m-%d

### status and sizes
curl -s -o /dev/null -w '%{http_code} %{size_download} %{url_effective} %{content_type} %{num_redirects}\n' $U/a.json

### variables of the request
curl -s -o out -w '%{method} %{exitcode} %{errormsg} %{filename_effective} %{urlnum} %{response_code}\n' $U/500

### a redirect that is not followed
curl -s -w '%{http_code} %{redirect_url}\n' -o /dev/null $U/redirect

### one value as JSON
curl -s -o /dev/null -w '%{json}' "$U/echo?x" | jq -c '[.http_code, .method, .size_download, .url_effective, .num_redirects, .exitcode, .urlnum, .content_type]'

### the format is a file
printf '%%{http_code}\\n100%%%%' > format; curl -s -o /dev/null -w @format $U/500

### the streams of the format
curl -s -o /dev/null -w 'a%{stderr}b%{stdout}c\n' $U/a.json 2> err; cat err

### a header in the format
curl -s -o /dev/null -w '%header{content-type}\n' $U/a.json

### an error in the format
curl -s -o /dev/null -w '%{exitcode} %{http_code} %{onerror}failed\n' http://127.0.0.1:1/

## Requests

### a header
curl -s -H 'X-A: 1' -H 'X-B: two words' -H 'Accept: text/plain' $U/echo

### headers that are removed and empty
curl -s -H 'Accept:' -H 'X-Empty;' $U/echo

### headers from a file
printf 'X-A: 1\nX-B: 2\n' > h; curl -s -H @h $U/echo

### data
curl -s -d a=1 -d b=2 $U/echo

### data with a method and a type
curl -sS -X POST -H 'Content-Type: application/json' -d '{"a":1}' $U/echo

### data from a file
printf 'one\ntwo\r\n' > body; curl -s -d @body $U/echo; curl -s --data-binary @body $U/echo

### data from standard input
printf 'a=b\n' | curl -s -d @- $U/echo

### raw data
curl -s --data-raw @body $U/echo

### encoded data
curl -s --data-urlencode 'q=a b&c' --data-urlencode '=x=y' --data-urlencode plain $U/echo

### data in the query
printf 'n=1\n' > body; curl -s -d @body --data-urlencode 'q=a b&c' -G "$U/search?z=0"

### a query
curl -s --url-query 'q=a b' --url-query '+r=1' $U/echo

### JSON
curl -s --json '{"a":1}' $U/echo

### JSON in two parts
curl -s --json '{"a":' --json '1}' $U/echo

### a form
printf PNG > a.png; curl -s -F file=@a.png -F 'name=x;type=text/plain' $U/form

### a form with names and contents of files
echo content > t.txt; curl -s -F 'a=@t.txt;filename=b"c' -F 'd=<t.txt' -F 'e=@t.txt;type=x/y' --form-string 'f=@x;y' $U/form

### a form from standard input
echo in | curl -s -F 'f=@-;filename=x.txt' $U/form

### an upload
echo up > file; curl -s -T file $U/put

### an upload into a directory
echo up > file; curl -s -T file "$U/put/" -o /dev/null -w '%{url_effective} %{http_code}\n'

### an upload of standard input
echo piped | curl -s -T - $U/put

### methods
curl -s -X DELETE $U/x; curl -s -X PATCH -d a $U/x; curl -s -X POST $U/x

### a login
curl -s -u user:pass $U/basic; curl -s "http://user:pass@127.0.0.1:$P/basic"; curl -s -o /dev/null -w '%{http_code}\n' $U/basic

### a token
curl -s --oauth2-bearer T $U/bearer; curl -s -H 'Authorization: Bearer T' $U/bearer

### a referer
curl -s -e http://from/ $U/echo; curl -sL -e 'http://from/;auto' $U/moved

### a date
curl -s -z 'Sun, 06 Nov 2005 08:49:37 GMT' $U/echo; curl -s -z "6 Nov 2005" $U/a.json

### a tag
curl -s --etag-save t -o f $U/etag; cat t f; curl -s --etag-compare t -w '%{http_code}\n' $U/etag

### a configuration
printf 'url = "%s/echo"\n# comment\nheader = "X-A: 1"\nsilent\n-d "a b"\n' $U > c; curl -K c

### a configuration from standard input
printf -- '--url %s/a.json\n-s\n' $U | curl -K -

### next
curl -s -d a $U/echo --next -s -X PUT $U/echo

### the last code counts
curl -s -f $U/404 $U/a.json; echo $?; curl -s -f --fail-early $U/404 $U/a.json; echo $?

## Redirects

### followed
curl -fsSL $U/redirect -o out.txt; cat out.txt

### many
curl -sL $U/hops/3 -w '%{num_redirects} %{url_effective}\n'

### too many
curl -sL --max-redirs 2 $U/hops/3; echo $?; curl -sL $U/loop; echo $?

### a post becomes a get
curl -sL -d a=1 $U/moved; curl -sL -d a=1 $U/see

### a post stays one
curl -sL -d a=1 $U/keep; curl -sL --post301 -d a=1 $U/moved

### a method that was named stays
curl -sL -X POST -d a=1 $U/moved

### to another host without secrets
curl -sL -u user:pass -H 'X-A: 1' -b s=1 $U/elsewhere

### to another host with a header that was given
curl -sL -H 'Authorization: Bearer T' -H 'Cookie: s=1' $U/elsewhere

### to another host that is trusted
curl -sL --location-trusted -u user:pass $U/elsewhere

### to another protocol
curl -sL $U/other; echo $?

### with heads
curl -sL -o /dev/null -D heads $U/redirect; sed -i '/^Connection/d' heads

## Cookies

### a cookie that was given
curl -s -b 'a=1; b=2' $U/cookie

### a jar
curl -s -c jar $U/cookie; curl -s -b jar $U/cookie; grep -v '^# ' jar

### cookies within one line
curl -s -b '' $U/cookie $U/cookie

### a jar without those of a session
curl -s -c jar $U/cookie; curl -s -j -b jar $U/cookie

## Parts and failures

### a range
curl -s -r 0-19 $U/big; curl -s -r -10 $U/big; curl -s -r 9990- $U/big

### going on where the file ends
curl -s -r 0-99 $U/big -o big; curl -s -C - -O $U/big; cksum big

### going on from an offset
curl -s -C 9990 $U/big

### going on where nothing is left
curl -s -O $U/big; curl -s -C - -O $U/big; echo $?; cksum big

### going on without ranges
printf 01234 > unranged; curl -s -C - -O $U/unranged; echo $?; cat unranged

### compression
curl -s --compressed $U/gz; curl -s -H 'Accept-Encoding: gzip' $U/gz | cksum

### an unknown compression
curl -s --compressed $U/br; echo $?

### failures of a server
curl -s -f $U/404; echo $?; curl -s --fail-with-body $U/404; echo $?; curl -s $U/404; echo $?

### a failure leaves no file
curl -sf -o f $U/404; ls

### no connection and no host
curl -s http://127.0.0.1:1/; echo $?; curl -s http://nothing.invalid/; echo $?

### no answer
curl -s $U/empty; echo $?

### half an answer
curl -s $U/short; echo $?

### too late
curl -s -m 0.3 $U/slow; echo $?

### too large
curl -s --max-filesize 5 $U/a.json; echo $?

### no URL, and none that there can be
curl -s; echo $?; curl -s 'http://'; echo $?; curl -s http://h:99999/; echo $?; curl -s "$U/[1-"; echo $?

### other protocols
curl -s --proto =https $U/; echo $?; curl -s nonsense://x/; echo $?

### options that there are not
curl -s --nonsense $U/; echo $?; curl -s -o; echo $?; curl -m x $U/; echo $?

### files that there are not
curl -s -F a=@none $U/form; echo $?; curl -s -T none $U/put; echo $?

### retries
curl -s --retry 3 --retry-delay 1 $U/flaky?c; curl -s --retry 3 --retry-all-errors --max-time 5 --connect-timeout 2 -o f $U/flaky?d; cat f

### heads alone
curl -s -I $U/a.json | grep -v ^Connection; curl -s -I -X GET $U/echo -o /dev/null -w '%{method}\n'

### heads before bodies
curl -s -i $U/nothing | head -n 1; curl -s -i -f $U/404 | head -n 1

## wget

### a file by wget
wget -q $U/a.json; ls; cat a.json

### wget to standard output
wget -qO- $U/a.json

### wget to a name
wget -q -O x $U/a.json; cat x

### wget of several into one
wget -q -O x $U/a.json $U/chunked; cat x

### wget beside a file that is there
wget -q $U/a.json; wget -q $U/a.json; ls

### wget that does not clobber
echo old > a.json; wget -q -nc $U/a.json; cat a.json

### wget into a directory
wget -q -P d/e $U/a.json; cat d/e/a.json

### wget with a query
wget -q "$U/echo?a=1&b"; ls

### wget of an index
wget -q $U/; ls

### wget with a header and data
wget -q -O - --header='X-A: b' --post-data='a=1' $U/echo | sed 's/, /,/g'

### wget with a body
printf body > b; wget -q -O - --method=PUT --body-file=b $U/echo; wget -q -O - --method=DELETE $U/echo

### wget of the rest
head -c 100 /dev/null > big; curl -s -r 0-99 $U/big -o big; wget -q -c $U/big; cksum big

### wget of the rest of all
wget -q $U/big; wget -q -c $U/big; echo $?; cksum big

### wget of a redirect
wget -q $U/redirect; ls; wget -q --trust-server-names $U/redirect; ls

### wget of a name from the server
wget -q --content-disposition $U/named; ls

### wget of what is not there
wget -q $U/none; echo $?; ls

### wget into a name of what is not there
wget -q -O f $U/none; echo $?; ls

### wget without a connection
wget -q -t 1 http://127.0.0.1:1/; echo $?; wget -q -t 1 http://nothing.invalid/; echo $?

### wget with a login
wget -q -O - --user=user --password=pass --auth-no-challenge $U/basic; wget -q -O - $U/basic; echo $?

### wget of a spider
wget -q --spider $U/a.json; echo $?; wget -q --spider $U/none; echo $?

### wget of too many redirects
wget -q --max-redirect=2 $U/loop; echo $?

### wget keeps the time
wget -q $U/a.json; date -u -r a.json +%Y-%m-%d; wget -q -N $U/a.json; ls

### wget of a list
printf '%s/a.json\n%s/chunked\n' $U $U > list; wget -q -i list; ls

### wget of a site
wget -q -r $U/site/; find . -type f | sort | sed "s/$P/P/"

### wget of a site below
wget -q -r -np -nH -l 1 $U/site/; find . -type f | sort

### wget of pictures
wget -q -r -nd -A png,css $U/site/; find . -type f | sort

### wget of a page and what it needs
wget -q -p -nH $U/site/sub/two.html; find . -type f | sort

### wget with its links converted
wget -q -r -np -nH -k $U/site/; cat site/index.html site/sub/two.html | sed "s/$P/P/"

### wget without a URL
wget -q; echo $?; wget --nonsense $U/; echo $?
