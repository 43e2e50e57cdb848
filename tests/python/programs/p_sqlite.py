import sqlite3

db = sqlite3.connect("shop.db")
db.execute("create table if not exists sale (day text, amount real)")
with db:
    db.executemany("insert into sale values (?, ?)", [("mon", 1.5), ("tue", 2.5), ("mon", 4.0)])
for row in db.execute("select day, sum(amount), count(*) from sale group by day order by day"):
    print(row)
try:
    with db:
        db.execute("insert into sale values ('wed', 1)")
        raise ValueError("no")
except ValueError:
    pass
print(db.execute("select count(*) from sale").fetchone())
try:
    db.execute("select * from nothing")
except sqlite3.OperationalError as e:
    print(e)
db.close()
