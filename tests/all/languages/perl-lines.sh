# Programs in Perl that print the same as in Debian's Perl and end with the same exit code. Each `## name` starts in an empty
# directory.
## a line
perl -e 'print "Hello, World!\n"'
## say
perl -E 'say for map { $_ ** 2 } grep { $_ % 2 } 1 .. 9'
## numbers of lines
printf 'a\nb\nc\n' | perl -ne 'print "$.: $_"'
## replace in a stream
printf 'foo bar\nfoo baz\n' | perl -pe 's/foo/qux/g'
## replace in a file, with a copy
printf 'port=80\nhost=a\n' > app.conf; perl -i.bak -pe 's/^port=\K\d+/8080/' app.conf; cat app.conf app.conf.bak
## replace in files
printf 'x 1\n' > a; printf 'x 2\n' > b; perl -pi -e 's/x/y/' a b; cat a b
## columns
printf 'a 1\nb 2\n' | perl -lane 'print $F[1]; $s += $F[1]; END { print "sum $s" }'
## columns at colons
printf 'root:x:0\nuser:x:1000\n' | perl -F: -lane 'print "$F[0] $F[2]"'
## a whole file
printf 'a\nb\n\nc\n' | perl -0777 -ne 'print scalar(split /\n\n/), "\n"'
## paragraphs
printf 'a\nb\n\nc\n' | perl -00 -ne 'print "<$_>"'
## a script with arguments
printf '#!/usr/bin/perl\nuse strict; use warnings;\nprint "$0: @ARGV\\n"; exit 3;\n' > s.pl; perl s.pl a 'b c'
## a program on standard input
printf 'print "from stdin\\n"; print <DATA>;\n__END__\nthe data\n' | perl
## warnings
perl -we 'my $x; my $y = "a" . $x; print "done\n"' 2>&1
## die
perl -e 'print "before\n"; die "failed\n"' 2>&1; perl -e 'exit 7'; echo $?
## errors with their place
printf 'use strict;\nmy %%h;\ndie "no key" unless $h{a};\n' > e.pl; perl e.pl 2>&1
## eval
perl -e 'eval { die { code => 42 } }; print "code $@->{code}\n"; eval { 1 / 0 }; print $@'
## environment
NAME=value perl -e 'print "$ENV{NAME}\n"; $ENV{NAME} = 2; print exists $ENV{NOTHING} ? 1 : 0, "\n"'
## sort by value
perl -e 'my %h = (a => 3, b => 1, c => 2); print join(",", map { "$_=$h{$_}" } sort { $h{$a} <=> $h{$b} } keys %h), "\n"'
## words of a text
printf 'the cat the dog the end\n' | perl -lne '$c{$_}++ for split; END { print "$_ $c{$_}" for sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c }'
## JSON out
perl -MJSON::PP -e 'print JSON::PP->new->canonical->pretty->encode({ list => [1, "two", undef], ok => JSON::PP::true })'
## JSON in
printf '{"users":[{"name":"Ada","age":36},{"name":"Bob","age":7}]}' | perl -MJSON::PP -0777 -ne 'print "$_->{name}: $_->{age}\n" for @{ decode_json($_)->{users} }'
## Data::Dumper
perl -MData::Dumper -e '$Data::Dumper::Sortkeys = 1; $Data::Dumper::Indent = 1; print Dumper({ a => [1, { b => undef }], c => \"x" })'
## formatted numbers
perl -e 'printf "%05.2f|%-6s|%+d|%x|%o|%b|%e|%3d%%|%s\n", 3.14159, "ab", 5, 255, 8, 5, 12345.678, 50, join ",", 1 .. 3'
## regular expressions
perl -e '$_ = "2024-05-01 err: disk full (code 28)"; print "$1/$2/$3 $+{code}\n" if /(\d+)-(\d+)-(\d+).*code (?<code>\d+)/; (my $t = $_) =~ tr/a-z/A-Z/; print "$t\n"; print join("|", "a1b22c" =~ /\d+/g), "\n"'
## substitution with code
perl -pe 's/(\d+)/$1 * 2/ge; s/\b(\w)/\u$1/g' <<< 'width 10 height 25'
## heredocs
printf 'my $n = "Ada";\nprint <<"A", <<'"'"'B'"'"', <<~C;\nDear $n,\nA\nno $n\nB\n    indented\n      more\n    C\n' > h.pl; perl h.pl
## pack and unpack
perl -e 'print unpack("H*", pack("nNa4", 258, 16909060, "ab")), "\n"; print join(",", unpack("(A3)*", "abcdefgh")), "\n"; print length(pack("w", 300)), "\n"'
## CSV
printf 'name,qty\n"Smith, J",3\nAda,4\n' | perl -ne 'chomp; my @f; push @f, defined $1 ? $1 : $2 while /\G(?:"([^"]*)"|([^,]*))(?:,|$)/g; print join("|", @f[0, 1]), "\n"'
## times
TZ=UTC perl -e 'my @t = gmtime(86400 * 365); printf "%04d-%02d-%02d %s\n", $t[5] + 1900, $t[4] + 1, $t[3], scalar gmtime(0); print scalar(localtime(0)), "\n"'
## Time::Piece and Time::Local
TZ=UTC perl -MTime::Piece -MTime::Local -e 'print gmtime(0)->strftime("%Y-%m-%d %H:%M"), " ", timegm(0, 0, 0, 1, 0, 100), " ", Time::Piece->strptime("2024-02-29", "%Y-%m-%d")->yday, "\n"'
## files
perl -e 'open my $f, ">", "a.txt" or die; print $f "line $_\n" for 1 .. 3; close $f; open $f, "<", "a.txt"; my @l = <$f>; print scalar(@l), " ", -s "a.txt", "\n"; rename "a.txt", "b.txt"; print join(",", glob "*"), "\n"; unlink "b.txt"; print -e "b.txt" ? 1 : 0, "\n"; open $f, "<", "none" or print "$!\n"'
## directories
perl -MFile::Path=make_path -MFile::Find -MFile::Basename -e 'make_path("a/b"); open my $f, ">", "a/b/c.txt"; find(sub { print "$File::Find::name\n" if -f }, "a"); print basename("a/b/c.txt", ".txt"), " ", dirname("a/b/c.txt"), "\n"'
## list functions
perl -MList::Util=sum,max,first,reduce,uniq,shuffle -e 'print sum(1 .. 10), " ", max(3, 9, 2), " ", first { $_ > 3 } (1 .. 9); print " ", reduce { $a * $b } 1 .. 5; print " ", join("", uniq qw(a b a)), " ", scalar(shuffle(1 .. 4)), "\n"'
## objects
perl -e 'package Animal; sub new { my ($c, %a) = @_; bless {%a}, $c } sub name { $_[0]{name} } sub speak { my $s = shift; $s->name . " says " . $s->sound } package Dog; our @ISA = ("Animal"); sub sound { "Woof" } package main; my $d = Dog->new(name => "Rex"); print $d->speak, " ", ref $d, " ", $d->isa("Animal"), "\n"'
## signatures and closures
perl -E 'use feature "signatures"; no warnings; sub add($x, $y = 10) { $x + $y } my @f = map { my $n = $_; sub { $n++ } } 1 .. 2; $f[0]->(); say add(1), " ", add(1, 2), " ", $f[0]->(), $f[1]->()'
## local and wantarray
perl -e 'our $g = 1; sub s1 { $g } sub s2 { local $g = 2; s1() } print s2(), s1(), " "; sub w { wantarray ? "list" : defined(wantarray) ? "scalar" : "void" } my @l = w(); my $s = w(); print "@l $s\n"'
## unicode
perl -CS -Mutf8 -e 'my $s = "naïve café"; print length($s), " ", uc $s, " ", scalar reverse($s), "\n"; printf "%vd\n", "é"'
## big numbers
perl -Mbigint -e 'print 2 ** 100, "\n"'; perl -e 'print 10 / 3, " ", 2 ** 53, " ", 1e21, " ", 0.1 + 0.2, " ", int(-3.7), " ", 7 % -3, " ", "10" + "20", "\n"'
## digests and base64
perl -MDigest::MD5=md5_hex -MDigest::SHA=sha256_hex -MMIME::Base64 -e 'print md5_hex("a"), "\n", sha256_hex("a"), "\n", encode_base64("Hello, World!")'
## options
perl -MGetopt::Long -e 'GetOptions("n=i" => \my $n, "v!" => \my $v, "name=s" => \my @names) or exit 2; print "$n ", $v // 0, " @names | @ARGV\n"' -- --n 5 --no-v --name a --name=b rest
## syntax
printf 'print "ok\n"\n' > ok.pl; perl -c ok.pl 2>&1; printf 'if (\n' > bad.pl; perl -c bad.pl >/dev/null 2>&1 || echo bad
## blocks at the end
perl -e 'BEGIN { print "begin\n" } END { print "end $?\n" } print "run\n"; exit 4'
## sorting files
printf '10 b\n9 a\n100 c\n' > n.txt; perl -e 'print sort { ($a =~ /(\d+)/)[0] <=> ($b =~ /(\d+)/)[0] } <>' n.txt
## lines between patterns
printf 'a\nBEGIN\nb\nc\nEND\nd\n' | perl -ne 'print if /BEGIN/ .. /END/'; seq 10 | perl -ne 'print if 3 .. 5; last if $. == 6'
## POSIX
perl -MPOSIX=floor,ceil,strftime -e 'print floor(3.7), ceil(3.2), strftime("%Y", gmtime 0), "\n"'
## Encode
perl -MEncode -e 'print length(encode("UTF-8", "\x{e9}")), "\n"'
## Storable
perl -MStorable=dclone -e 'print dclone([1, [2]])->[1][0], "\n"'
## Test::More
perl -MTest::More=no_plan -e 'is(1 + 1, 2, "sum")'
## commands
perl -e '$| = 1; print "first\n"; print `echo out`; my @l = `printf "a\\nb\\n"`; print scalar(@l), $l[1]; print system("echo", "a  b"), " ", system("exit 3;") >> 8, " $?\n"; $ENV{N} = "é\""; chdir "/tmp"; print `echo \$N; cat`; exec "echo last; exit 4"' < /dev/null
## pipes to commands
perl -e 'open my $p, "-|", "echo piped" or exit 3; print <$p>' 2>/dev/null
## objects that live until the end
perl -e 'package A; sub DESTROY { print "destroyed\n" } package main; our $x = bless []; bless $x, "A"'
## a time zone
TZ=America/New_York perl -e 'print scalar localtime(0), "\n"'
## an error while it compiles
perl -e 'print "a" "b"' 2>/dev/null
## its version
perl -v > v.txt; echo $?
## processes
perl -e 'my $pid = fork; exit 0 if defined $pid && $pid == 0; wait; print "parent\n"' 2>/dev/null
## signals
perl -e 'local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 3; 1 } or print $@' 2>&1
