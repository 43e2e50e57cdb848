import csv
import io

text = "a;b;c\n1;'x;y';3\n4;'it''s';6\n"
print(csv.Sniffer().sniff("a;b\n1;2\n3;4\n").delimiter)
for row in csv.reader(io.StringIO(text), delimiter=";", quotechar="'"):
    print(row)
out = io.StringIO()
w = csv.DictWriter(out, ["id", "note"], quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
w.writeheader()
w.writerow({"id": 1, "note": 'says "hi"'})
print(out.getvalue(), end="")
