# Ruby's build for WASI starts its interpreter and runs no program. It is started with this file in the place of a program, and with the
# words of the command as arguments. This reads them as `ruby` does, runs the program, and ends with its exit code.
lambda do
  here = __FILE__
  gems = "/usr/local/lib/ruby/gems/4.0.0/gems"
  # The gems that come with Ruby and are not part of its library.
  %w[
    abbrev-0.1.2 base64-0.3.0 benchmark-0.5.0 csv-3.3.5 drb-2.2.3 getoptlong-0.2.1 logger-1.7.0 matrix-0.4.3 minitest-6.0.0
    mutex_m-0.3.0 observer-0.1.2 ostruct-0.6.3 power_assert-3.0.1 prime-0.1.4 pstore-0.2.0 rexml-3.4.4 rinda-0.2.0 rss-0.3.2
    test-unit-3.7.5
  ].each { |gem| $LOAD_PATH << "#{gems}/#{gem}/lib" }

  # The interpreter never ends by itself, so blocks for its end are kept here. A block of `END` is registered once.
  at_end, registered = [], {}
  at_exit_of = lambda do |once, block|
    raise ArgumentError, "called without block" unless block
    at_end << block unless once && registered.key?(once)
    registered[once] = true if once
    block
  end
  Kernel.define_method(:at_exit) { |once = nil, &block| at_exit_of.(once, block) }
  Kernel.send(:private, :at_exit)
  Kernel.define_singleton_method(:at_exit) { |once = nil, &block| at_exit_of.(once, block) }

  # The C library has no processes, and `system` would do nothing and say that it succeeded.
  refuse = lambda do |owner, name|
    message = "Ruby cannot start commands here (#{name}); use the command line around it, as in `ls | ruby -ne ...`"
    refused = lambda { |*| raise NotImplementedError, message }
    owner.define_method(name) { |*, **, &_| refused.() }
  end
  %i[system ` spawn exec fork].each do |name|
    refuse.(Kernel, name)
    Kernel.send(:private, name)
    refuse.(Kernel.singleton_class, name)
    refuse.(Process.singleton_class, name) unless %i[system `].include?(name)
  end
  refuse.(IO.singleton_class, :popen)

  # Frames of this file and below it are not the program's.
  own_frames = lambda do |error|
    seen = {}
    while error && !seen.key?(error.object_id)
      seen[error.object_id] = true
      is_own = ->(frame) { frame.start_with?(here) }
      frames = (error.backtrace || []).drop_while(&is_own).take_while { |frame| !is_own.(frame) }
      frames = frames.map { |frame| frame.gsub("<compiled>", "<main>") }
      begin
        error.set_backtrace(frames)
      rescue FrozenError
        nil
      end
      error = error.cause
    end
  end
  report = lambda do |error|
    own_frames.(error)
    $stdout.flush rescue nil
    if error.is_a?(SyntaxError) && error.backtrace.to_a.empty?
      first, rest = error.message.split("\n", 2)
      STDERR.write("#{$0}: #{first} (SyntaxError)\n#{rest}")
    else
      STDERR.write(error.full_message(highlight: false, order: :top))
    end
  end

  finish = lambda do |error|
    # Blocks see in `$!` how the program ended, and an exception of a block is the end from there on.
    begin
      raise error if error
      at_end.pop.call until at_end.empty?
    rescue SystemExit, Exception => ended
      begin
        at_end.pop.call until at_end.empty?
      rescue Exception => other
        report.(ended) unless ended.is_a?(SystemExit) || other.is_a?(SystemExit)
        ended = other
        retry unless at_end.empty?
      end
      error = ended
    end
    last = Signal.trap("EXIT", "DEFAULT") rescue nil
    last.call(0) if last.is_a?(Proc)
    code = 0
    case error
    when nil then nil
    when SystemExit then code = error.status
    else
      report.(error)
      code = 1
    end
    ObjectSpace.each_object(IO) do |io|
      io.flush unless io.closed?
    rescue IOError, SystemCallError
      nil
    end
    Process.exit!(code)
  end

  fail_with = lambda do |message|
    STDERR.puts(message)
    Process.exit!(1)
  end

  words = ARGV.dup
  begin
    Dir.chdir(ENV["PWD"]) if ENV["PWD"]
  rescue SystemCallError
    nil
  end

  texts, libraries, flags, separator, backup, verbose, shows = [], [], {}, nil, nil, nil, nil
  option = lambda do |name, rest|
    value = rest.empty? ? words.shift : rest
    value || fail_with.("ruby: no argument for -#{name} (RuntimeError)")
  end
  until words.empty?
    word = words.first
    break unless word.start_with?("-") && word != "-"
    words.shift
    break if word == "--"
    case word
    when "--version" then shows = :version
    when "--help" then shows = :help
    when "--copyright" then shows = :copyright
    when "--verbose" then verbose = true
    when "--debug" then $DEBUG = true
    when /\A--(?:enable|disable|yjit|zjit|jit|parser|encoding|external-encoding|internal-encoding|backtrace-limit|dump)(?:[-=]|\z)/
      words.shift if word =~ /\A--(?:enable|disable|encoding|external-encoding|internal-encoding)\z/
    when /\A--/ then fail_with.("ruby: invalid option #{word}  (-h will show valid options) (RuntimeError)")
    else
      rest = word[1..]
      until rest.empty?
        name, rest = rest[0], rest[1..]
        case name
        when "e"
          texts << (rest.empty? ? words.shift || fail_with.("ruby: no code specified for -e (RuntimeError)") : rest)
          rest = ""
        when "r" then libraries << option.("r", rest); rest = ""
        when "I" then $LOAD_PATH.unshift(*option.("I", rest).split(":").map { |dir| File.expand_path(dir) }); rest = ""
        when "C", "X"
          begin
            Dir.chdir(option.(name, rest))
          rescue SystemCallError => error
            fail_with.("ruby: Can't chdir to #{rest} (fatal)")
          end
          rest = ""
        when "F" then separator = option.("F", rest); rest = ""
        when "E" then Encoding.default_external = option.("E", rest).split(":").first; rest = ""
        when "K" then rest = rest[1..] || ""
        when "U" then Encoding.default_internal = "UTF-8"
        when "i" then backup, rest = rest, ""
        when "x"
          flags["x"] = true
          Dir.chdir(rest) unless rest.empty?
          rest = ""
        when "0"
          digits = rest[/\A[0-7]{0,3}/]
          rest = rest[digits.size..]
          code = digits.oct
          $/ = digits.empty? ? "\0" : code.zero? ? "" : code > 255 ? nil : code.chr
        when "W"
          level = rest[/\A(?::.*|[0-2])/]
          if level&.start_with?(":")
            category = level.delete_prefix(":")
            Warning[category.delete_prefix("no-").to_sym] = !category.start_with?("no-")
            rest = ""
          else
            verbose = { "0" => nil, "1" => false }.fetch(level, true)
            $VERBOSE = verbose if level == "0"
            rest = rest[(level || "").size..]
          end
        when "v" then flags["v"] = verbose = true
        when "w" then verbose = true
        when "d" then $DEBUG = true
        when "n", "p", "a", "l", "s", "c", "S" then flags[name] = true
        when "h" then shows = :help
        when "y", "T" then rest = ""
        else fail_with.("ruby: invalid option -#{name}  (-h will show valid options) (RuntimeError)")
        end
      end
    end
  end
  $VERBOSE = true if verbose
  puts RUBY_DESCRIPTION if shows == :version || flags["v"]
  puts RUBY_COPYRIGHT if shows == :copyright
  if shows == :help
    puts "Usage: ruby [options] [--] [filepath] [arguments]"
    puts "  -e, -n, -p, -i, -l, -a, -F, -0, -r, -I, -C, -E, -s, -S, -x, -c, -w, -W, -v, --version as in Ruby"
  end
  finish.(nil) if shows || (flags["v"] && texts.empty? && words.empty?)

  data = nil
  text, name, path =
    if !texts.empty?
      [texts.join("\n") << "\n", "-e", nil]
    elsif words.empty? || words.first == "-"
      words.shift
      [STDIN.read, "-", nil]
    else
      script = words.shift
      begin
        raise Errno::EISDIR if File.directory?(script)
        [File.binread(script), script, File.expand_path(script)]
      rescue SystemCallError => error
        fail_with.("ruby: #{error.message[/\A[^@]*/].strip} -- #{script} (LoadError)")
      end
    end
  text = text.dup.force_encoding(Encoding::UTF_8)
  if flags["x"]
    from = text =~ /^#!.*ruby/ or fail_with.("ruby: no Ruby script found in input (LoadError)")
    text = text[from..]
  end
  if (ends = text.match(/^__END__\r?\n/)) && name != "-e"
    if path
      data = File.open(path)
      data.pos = ends.byteoffset(0)[1]
    else
      require "stringio"
      data = StringIO.new(ends.post_match)
    end
    Object.const_set(:DATA, data)
  end

  ARGV.replace(words)
  if flags["s"]
    while ARGV.first&.start_with?("-") && ARGV.first != "-"
      word = ARGV.shift
      break if word == "--"
      key, value = word[1..].split("=", 2)
      eval("$#{key.tr("-", "_")} = value || true")
    end
  end
  $0 = name
  ARGF.inplace_mode = backup if backup
  $; = Regexp.new(separator) if separator
  $\ = $/ if flags["l"]

  loops = flags["n"] || flags["p"]
  # `BEGIN` stands only at the top of a program, which is in a loop here; and `END` would be forgotten.
  if text.match?(/\b(?:BEGIN|END)\s*\{/)
    require "prism"
    changes, first = [], []
    visit = lambda do |node|
      case node
      when Prism::PreExecutionNode
        if loops
          first << (node.statements&.slice || "")
          range = node.location.start_offset...node.location.end_offset
          changes << [range, node.slice.gsub(/[^\n]/, " ")]
          next
        end
      when Prism::PostExecutionNode
        keyword = node.keyword_loc
        changes << [keyword.start_offset...keyword.end_offset, "at_exit(:\"END #{keyword.start_offset}\")"]
      end
      node.compact_child_nodes.each(&visit)
    end
    visit.(Prism.parse(text, command_line: loops ? "n" : "").value)
    bytes = text.b
    changes.sort_by { |range, _| -range.begin }.each { |range, new| bytes[range] = new.b }
    text = bytes.force_encoding(Encoding::UTF_8)
    first = first.join("; ")
  end

  line = 1
  if loops
    split = flags["a"] ? "$F = $_.split;" : ""
    text = "#{first}; while gets#{"(chomp: true)" if flags["l"]};#{split}\n#{text}\n#{";print $_" if flags["p"]}\nend\n"
    line = 0
  end

  error, level = nil, $VERBOSE
  begin
    libraries.each { |library| require library }
    # As where the program is given with `-e`, a regular expression in a condition is about the line.
    $VERBOSE, level = (verbose || name != "-e" ? $VERBOSE : nil), $VERBOSE
    program = RubyVM::InstructionSequence.compile(text, name, path || name, line)
    $VERBOSE = level
    if flags["c"]
      puts "Syntax OK"
    else
      program.eval
    end
  rescue Exception => ended
    $VERBOSE, error = level, ended
  end
  finish.(error)
end.call
