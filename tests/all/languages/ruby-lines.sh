# Programs in Ruby that print the same as in Debian's Ruby and end with the same exit code. Each `## name` starts in an empty
# directory.
## a line
ruby -e 'puts "Hello, World!"'
## ranges and blocks
ruby -e 'puts (1..9).select(&:odd?).map { |x| x ** 2 }.join(",")'
## numbers of lines
printf 'a\nb\nc\n' | ruby -ne 'puts "#{$.}: #{$_}"'
## replace in a stream
printf 'foo bar\nfoo baz\n' | ruby -pe '$_.gsub!(/foo/, "qux")'
## replace in a file, with a copy
printf 'port=80\nhost=a\n' > app.conf; ruby -i.bak -pe '$_.sub!(/^port=\d+/, "port=8080")' app.conf; cat app.conf app.conf.bak
## columns
printf 'a 1\nb 2\n' | ruby -lane 'BEGIN { s = 0 }; puts $F[1]; s += $F[1].to_i; END { puts "sum #{s}" }'
## columns at colons
printf 'root:x:0\nuser:x:1000\n' | ruby -F: -lane 'puts "#{$F[0]} #{$F[2]}"'
## a condition about the line
printf 'error 1\nok\nerror 2\n' | ruby -ne 'print if /error/'
## a whole file
printf 'a\nb\n\nc\n' | ruby -e 'puts ARGF.read.split("\n\n").size; puts $<.class'
## next and last
seq 9 | ruby -ne 'next if $_.to_i.odd?; break if $_.to_i > 6; print'; seq 3 | ruby -pe 'next if $_ =~ /2/'
## a script with arguments
printf '#!/usr/bin/env ruby\nputs "#{$0}: #{ARGV.inspect} #{__FILE__ == $PROGRAM_NAME} #{__dir__ == Dir.pwd}"\nexit 3\n' > s.rb; ruby s.rb a 'b c'
## a script and its library
printf 'require_relative "lib/a"\nputs A.hello\nputs DATA.read\n__END__\nthe data\n' > s.rb; mkdir lib; printf 'module A\n  def self.hello = "hello from a"\nend\n' > lib/a.rb; ruby s.rb; ruby -I lib -r a -e 'puts A.hello'
## a program on standard input
printf 'puts "from stdin"; p ARGV\n' | ruby - a b
## exit codes
ruby -e 'exit 7'; echo $?; ruby -e 'exit false'; echo $?; ruby -e 'abort "bye"' 2>&1; echo $?; ruby -e 'raise "x"' 2> /dev/null; echo $?; ruby -e 'exit! 5'
## blocks at the end
ruby -e 'at_exit { puts "second #{$!.inspect}" }; at_exit { puts "first" }; END { puts "END" }; puts "run"; exit 4'
## rescue, ensure, retry
ruby -e 'n = 0; begin; n += 1; raise ArgumentError, "bad" if n < 3; puts "tried #{n}"; rescue ArgumentError => e; puts e.message; retry; ensure; puts "done"; end'
## own exceptions
ruby -e 'class Oops < StandardError; def initialize(x) = super("oops #{x}"); end; begin; raise Oops.new(3); rescue Oops => e; puts "#{e.class}: #{e.message}"; end; puts (Integer("x") rescue "not a number")'
## catch and throw
ruby -e 'puts catch(:found) { (1..9).each { |x| throw :found, x if x * x > 20 }; nil }'
## environment
NAME=value ruby -e 'puts ENV["NAME"], ENV.fetch("NOTHING", "none"), ENV.key?("HOME")'
## sort by value
ruby -e 'h = { "a" => 3, "b" => 1, "c" => 2 }; puts h.sort_by { |k, v| -v }.map { |k, v| "#{k}=#{v}" }.join(","); puts h.min_by { |_, v| v }.first, h.sum { |_, v| v }'
## words of a text
printf 'the cat the dog the end\n' | ruby -e 'STDIN.read.split.tally.sort_by { |w, n| [-n, w] }.each { |w, n| puts "#{w} #{n}" }'
## JSON out
ruby -rjson -e 'puts JSON.pretty_generate(list: [1, "two", nil], ok: true); puts({ "a" => 1.5 }.to_json)'
## JSON in
printf '{"users":[{"name":"Ada","age":36},{"name":"Bob","age":7}]}' | ruby -rjson -e 'JSON.parse(STDIN.read, symbolize_names: true)[:users].each { |u| puts "#{u[:name]}: #{u[:age]}" }; begin; JSON.parse("{"); rescue JSON::ParserError; puts "not JSON"; end'
## YAML
ruby -ryaml -e 'puts({ "a" => [1, { "b" => nil }], "c" => "x: y" }.to_yaml); p YAML.load("- 1\n- two\n- [3, 4]\n")'
## CSV
printf 'name,qty\n"Smith, J",3\nAda,4\n' > a.csv; ruby -rcsv -e 'CSV.foreach("a.csv", headers: true) { |r| puts "#{r["name"]}|#{r["qty"].to_i * 2}" }; puts CSV.generate { |c| c << ["a,b", 1] }'
## ERB
ruby -rerb -e 'puts ERB.new("<% 3.times do |i| %><%= i %>;<% end %> <%= name %>", trim_mode: "-").result_with_hash(name: "Ada")'
## format
ruby -e 'printf("%05.2f|%-6s|%+d|%x|%o|%b|%e|%3d%%\n", 3.14159, "ab", 5, 255, 8, 5, 12345.678, 50); puts "%s and %p" % ["a", nil], "ab".rjust(5, "."), 1234567.to_s.reverse.scan(/\d{1,3}/).join(",").reverse'
## regular expressions
ruby -e 's = "2024-05-01 err: disk full (code 28)"; m = s.match(/(?<y>\d+)-(?<m>\d+)/); puts m[:y], $~[:m], s[/code (\d+)/, 1], s.scan(/\d+/).inspect, s.gsub(/\d+/) { |d| (d.to_i * 2).to_s }, s =~ /disk/, s.tr("a-z", "A-Z")'
## heredocs
printf 'n = "Ada"\nputs <<~A, <<-'"'"'B'"'"'\n  Dear #{n},\n    indented\nA\n  no #{n}\n  B\n' > h.rb; ruby h.rb
## strings
ruby -e 's = "Hello, World"; puts s.upcase, s.reverse, s[0, 5], s[-5..], s.sub("World", "Ruby"), s.index("o"), s.count("l"), s.center(20, "*"), s.chars.first(3).inspect, s.start_with?("Hell"), s.each_char.to_a.uniq.size, s.succ, s.unpack("C3").inspect, [1, 2].pack("nN").bytes.inspect, s.hash == s.dup.hash, "a-b_c".split(/[-_]/).inspect'
## unicode
ruby -e 's = "naïve café"; puts s.length, s.bytesize, s.upcase, s.reverse, s.encoding, s.encode("ISO-8859-1").bytes.size, "\u00e9".ord, s.unicode_normalize(:nfd).length'
## numbers
ruby -e 'puts 2 ** 100, 10 / 3, -7 / 2, -7 % 3, 10.fdiv(4), 3.7.floor, 3.2.ceil, 3.14159.round(2), 1e21, 0.1 + 0.2, 255.to_s(2), "ff".hex, 10.gcd(4), Rational(1, 3) + Rational(1, 6), Complex(1, 2) * 2, Integer.sqrt(99), 12345.digits.sum'
## arrays
ruby -e 'a = [5, 3, 8, 1]; p a.sort, a.max, a.sum, a.each_slice(2).to_a, a.partition(&:even?), a.zip([1, 2, 3, 4]), a.inject(:*), a.each_with_index.map { |x, i| x * i }, a.combination(2).count, a.flat_map { |x| [x, x] }, a.group_by(&:odd?).keys, a.take_while { |x| x > 2 }, [1, [2, [3]]].flatten, [nil, 1].compact, a.rotate, a.minmax, [3, 1] <=> [3, 2]'
## classes and modules
ruby -e 'module Loud; def speak = super.upcase; end; class Animal; attr_accessor :name; def initialize(name:) = @name = name; def speak = "#{name} speaks"; def <=>(o) = name <=> o.name; include Comparable; def to_s = "<#{name}>"; end; class Dog < Animal; prepend Loud; end; d = Dog.new(name: "rex"); puts d.speak, d, d > Animal.new(name: "a"), Dog.ancestors.first(3).inspect, d.respond_to?(:name), d.is_a?(Animal)'
## Struct and pattern matching
ruby -e 'P = Struct.new(:x, :y); case { name: "Ada", at: [1, 2] } in { name: String => n, at: [x, *] }; puts n, x; end; case P.new(1, 2) in [a, b]; puts a + b; end; r = (in_range = 5 in 1..9); puts r; puts P.new(3, 4).to_a.inspect'
## metaprogramming
ruby -e 'class A; define_method(:hi) { |x = 1| x + 1 }; def method_missing(n, *a) = n.to_s.start_with?("x") ? [n, a].inspect : super; def respond_to_missing?(*) = true; end; a = A.new; puts a.hi, a.xyz(1), a.send(:hi, 5), A.instance_methods(false).sort.inspect; begin; a.other; rescue NoMethodError; puts "none"; end; puts eval("1 + 2"), binding.local_variables.include?(:a)'
## lazy and enumerators
ruby -e 'p (1..Float::INFINITY).lazy.select(&:even?).map { |x| x * x }.first(3); e = Enumerator.new { |y| a, b = 0, 1; loop { y << a; a, b = b, a + b } }; p e.take(10), e.next, e.next, e.peek; f = Fiber.new { Fiber.yield 1; 2 }; p f.resume, f.resume'
## procs
ruby -e 'add = ->(x, y = 10) { x + y }; double = proc { |x| x * 2 }; puts add.(1), add[1, 2], (add.curry[1]).class, (double >> double).call(3), method(:puts).arity, [1, 2].map(&double).inspect; def y; yield 1, 2; end; y { |a, (b, c)| p a, b, c }'
## files
ruby -e 'File.write("a.txt", "one\ntwo\n"); File.open("a.txt", "a") { |f| f.puts "three" }; puts File.readlines("a.txt", chomp: true).inspect, File.size("a.txt"), File.exist?("b"), File.extname("a.txt"), File.basename("x/a.txt", ".txt"), File.join("a", "b"); File.rename("a.txt", "b.txt"); puts Dir.glob("*").inspect; File.delete("b.txt"); begin; File.read("none"); rescue Errno::ENOENT => e; puts e.message; end'
## directories
ruby -rfileutils -rfind -rtmpdir -e 'FileUtils.mkdir_p("a/b"); FileUtils.touch("a/b/c.txt"); FileUtils.cp("a/b/c.txt", "a/d.txt"); puts Find.find("a").sort; puts Dir.children("a").sort.inspect; FileUtils.rm_rf("a"); puts Dir.exist?("a"); Dir.mktmpdir { |d| puts File.directory?(d) }; puts File.expand_path("x") == Dir.pwd + "/x"'
## times
TZ=UTC ruby -rtime -rdate -e 'puts Time.at(0).utc.iso8601, Time.at(86400).strftime("%Y-%m-%d %H:%M:%S %z"), Time.utc(2024, 2, 29).yday, Date.new(2024, 1, 31) >> 1, Date.parse("2024-05-01").strftime("%a %j"), (Date.new(2024, 3, 1) - Date.new(2024, 2, 1)).to_i, Time.parse("2024-05-01T12:00:00Z").to_i, DateTime.new(2024, 1, 2, 3).to_s'
## Set, OpenStruct, SecureRandom, Digest, Base64
ruby -rset -rostruct -rsecurerandom -rdigest -rbase64 -e 'puts Set.new([1, 2, 2]).size, (Set[1, 2] & Set[2, 3]).to_a.inspect, OpenStruct.new(a: 1).a, SecureRandom.hex(4).size, Digest::SHA256.hexdigest("a"), Digest::MD5.hexdigest("a"), Base64.strict_encode64("Hello")'
## StringIO, Shellwords, Logger, URI, Zlib
ruby -rstringio -rshellwords -rlogger -ruri -rzlib -e 'io = StringIO.new; Logger.new(io, formatter: ->(s, _, _, m) { "#{s}: #{m}\n" }).info("x"); puts io.string, "a \"b c\"".shellsplit.inspect, URI("http://h:8/p?q=1").port, URI.encode_www_form(a: "b c"), Zlib::Inflate.inflate(Zlib::Deflate.deflate("zip"))'
## options
ruby -roptparse -e 'o = {}; OptionParser.new { |x| x.on("-n N", Integer) { |v| o["n"] = v }; x.on("--[no-]verbose") { |v| o["v"] = v } }.parse!; puts o["n"], o["v"], ARGV.inspect' -- -n 5 --no-verbose rest
## tests
printf 'require "minitest/autorun"\nclass T < Minitest::Test\n  def test_sum = assert_equal(2, 1 + 1)\nend\n' > t.rb; ruby t.rb | grep runs,
## syntax
printf 'puts 1\n' > ok.rb; ruby -c ok.rb; printf 'if (\n' > bad.rb; ruby -c bad.rb > /dev/null 2>&1 || echo bad
## switches for the script
printf 'p $name, $v\n' > s.rb; ruby -s s.rb -name=Ada -v; printf 'mail\n#!/usr/bin/ruby\np 1\n__END__\n' > x; ruby -x x
## warnings
ruby -W0 -e 'warn "hidden"'; ruby -e 'warn "shown"; $stderr.puts "too"' 2>&1
## an error with its place
printf 'def f\n  raise "boom"\nend\nf\n' > e.rb; ruby e.rb 2>&1
## how a hash is printed
ruby -e 'p({ a: 1, "b" => 2 })'
## commands
ruby -e 'print `echo out`; system("exit 3"); puts $?.exitstatus' 2> /dev/null
## threads
ruby -e 'puts [1, 2].map { |x| Thread.new { x * 2 } }.map(&:value).sum' 2> /dev/null
## a time zone
TZ=America/New_York ruby -e 'puts Time.at(0).to_s'
## big decimals
ruby -rbigdecimal -e 'puts (BigDecimal("0.1") + BigDecimal("0.2")).to_s' 2> /dev/null
## sockets
ruby -rsocket -e 'puts Socket.name' 2> /dev/null
## a gem
ruby -e 'require "rubygems"; puts Gem::Version.new("1.10") > Gem::Version.new("1.9"); gem "json"' 2> /dev/null
