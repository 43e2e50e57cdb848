create table people(id integer primary key autoincrement, name text not null, age int);
create table "odd name"(x, "y z" text default 'a''b');
CREATE TABLE if not exists z_very_long_table_name_number_one(a,b,c,unique(a,b));
create index i_age on people(age);
create view v as select name from people;
create trigger tr after insert on people begin select 1; update people set age = age where 0; end;
insert into people(name,age) values('Ada',36),('Bob',NULL),('Zoë',7);
insert into "odd name" values(0.1,'two
lines'),(1e300,x'00ff'),(-5,'it''s'),(NULL,''),(9223372036854775807, 3.0), (1.5,1e999);
create virtual table ft using fts5(body);
insert into ft values('hello world');
