# Perl on WASI knows neither where it was started nor how to start another program. This makes up for both, and is loaded before every
# program.
package _kiso;

# The C library begins at "/" whatever the directory; the host says in PWD which one it is.
shift @INC;
chdir $ENV{PWD} if defined $ENV{PWD};

# The host starts commands for a program that asks in a file, as `_kiso_host.py` of the package `python` says.
my ($control, $writer);

sub ask {
    my ($request) = @_;
    if (!$control) {
        require IO::Handle;
        open my $file, "<", "/usr/local/lib/kiso-perl/kiso-commands" or return;
        # Perl writes to no file that was opened to be read, and the host takes what is written to this one: nothing of it is kept.
        open $writer, ">&=", fileno $file or return;
        $control = $file;
    }
    defined syswrite $writer, pack("VV", length $request, 0) . $request or return;
    $control->sync or return;
    my ($head, $bytes) = unpack "VV", take(8) // return;
    return (take($head), take($bytes));
}

sub take {
    my ($size) = @_;
    my $data = "";
    while (length $data < $size) {
        sysread $control, $data, $size - length $data, length $data or return undef;
    }
    return $data;
}

sub quoted {
    my ($text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    $text =~ s/(["\\])/\\$1/g;
    $text =~ s/([\x00-\x1f])/sprintf "\\u%04x", ord $1/ge;
    return qq("$text");
}

# Starts a command: one text for the shell, or the words of one. Returns its number, and that of the pipe to its output.
sub start {
    my ($output, @words) = @_;
    @words = ("sh", "-c", @words) if @words == 1;
    require Cwd;
    require IO::Handle;
    *STDOUT->flush;
    my $environment = join ",", map { "[" . quoted($_) . "," . quoted($ENV{$_}) . "]" } grep { defined $ENV{$_} } keys %ENV;
    my ($answer) = ask(sprintf '{"op":"start","argv":[%s],"env":[%s],"cwd":%s,"streams":[{"own":0},%s,{"own":2}]}',
        join(",", map { quoted($_) } @words), $environment, quoted(Cwd::getcwd()), $output);
    if (!defined $answer || $answer !~ /"child":(\d+)/) {
        # Without a file in the place of an answer, the number of an error that means "not supported".
        $! = defined $answer && $answer =~ /ENOENT/ ? 44 : 58;
        return;
    }
    my $child = $1;
    return ($child, $answer =~ /"pipes":\[null,(\d+)/);
}

# Waits until it has ended.
sub finish {
    my ($child) = @_;
    my ($answer) = ask(qq({"op":"move","read":[],"child":$child}));
    return $? = defined $answer && $answer =~ /"code":(\d+)/ ? $1 << 8 : -1;
}

*CORE::GLOBAL::system = sub {
    my ($child) = start('{"own":1}', @_);
    return defined $child ? finish($child) : ($? = -1);
};

*CORE::GLOBAL::exec = sub {
    my ($child) = start('{"own":1}', @_);
    exit(finish($child) >> 8) if defined $child;
    return !1;
};

*CORE::GLOBAL::readpipe = sub {
    my ($child, $pipe) = start('"pipe"', @_);
    if (!defined $child) {
        $? = -1;
        return;
    }
    my $text = "";
    while (1) {
        my (undef, $bytes) = ask(qq({"op":"move","read":[$pipe]}));
        last unless defined $bytes && length $bytes;
        $text .= $bytes;
    }
    ask(qq({"op":"close","pipe":$pipe}));
    finish($child);
    return $text unless wantarray;
    return $text unless defined $/;
    return $text =~ /\G(.*?\Q$\/\E|.+)/gs;
};

1;
