import string
import textwrap

text = "The quick brown fox jumps over the lazy dog. " * 3
print(textwrap.fill(text, 40))
print(textwrap.dedent("""
    indented
      more
"""))
print("a,b,,c".split(","), "  x ".strip(), "x".center(7, "*"), "title case".title(), "%05.2f|%-5s|%x" % (3.14159, "ab", 255))
print(string.Template("$who likes ${what}").substitute(who="tim", what="kung pao"), "abc".translate(str.maketrans("ab", "xy")))
print("{:,} {:>10} {:.1%} {!r}".format(1234567, "right", 0.256, "q"), "a\tb".expandtabs(4), "x=1;y=2".partition(";"))
