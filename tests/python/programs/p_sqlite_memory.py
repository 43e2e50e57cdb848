import sqlite3

db = sqlite3.connect(":memory:")
db.row_factory = sqlite3.Row
db.create_function("shout", 1, lambda s: s.upper() + "!")
db.executescript("create table t (id integer primary key, name text); insert into t (name) values ('ada'), ('bob');")
for row in db.execute("select id, shout(name) as loud from t"):
    print(dict(row))
print(db.execute("select json_extract('{\"a\": [1, 2]}', '$.a[1]')").fetchone()[0])
