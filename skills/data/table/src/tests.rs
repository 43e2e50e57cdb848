use crate::{Kind, Table, Value};

fn parse(file: &str, text: &str) -> Table {
    Table::parse(file, text.as_bytes().to_vec(), 64 << 20).unwrap()
}

fn fails(file: &str, text: &str) -> String {
    let failure = Table::parse(file, text.as_bytes().to_vec(), 64 << 20).unwrap_err();
    assert_eq!(failure.code, "not-a-table");
    failure.message
}

fn kinds(table: &Table) -> Vec<(&str, Kind)> {
    table.columns.iter().map(|c| (c.name.as_str(), c.kind())).collect()
}

fn plain(table: &Table, column: usize) -> Vec<String> {
    (0..table.rows).map(|r| table.columns[column].value(r).plain()).collect()
}

#[test]
fn kinds_are_inferred() {
    let table = parse("w.csv", "date,city,temp,code\n2024-01-01,Oslo,-3.5,007\n2024-01-02,,NaN,010\n");
    assert_eq!(
        kinds(&table),
        [("date", Kind::Date), ("city", Kind::Text), ("temp", Kind::Number), ("code", Kind::Text)]
    );
    assert_eq!(table.columns[1].value(1), Value::Missing);
    assert_eq!(table.columns[2].value(1), Value::Missing);
    assert_eq!(plain(&table, 0), ["2024-01-01", "2024-01-02"]);
    assert_eq!(plain(&table, 3), ["007", "010"]);
}

#[test]
fn mark_crlf_quotes_and_unicode() {
    let table = parse("a.csv", "\u{feff}name,said\r\n\"Ærø, DK\",\"he said \"\"hi\"\"\r\ntwice\"\r\n東京,x\r\n");
    assert_eq!(table.columns[0].name, "name");
    assert_eq!(plain(&table, 0), ["Ærø, DK", "東京"]);
    assert_eq!(plain(&table, 1), ["he said \"hi\"\r\ntwice", "x"]);
}

#[test]
fn delimiters_and_decimal_commas() {
    let table = parse("a.csv", "ort;temp\nKöln;3,5\nBonn;-1.204,25\n");
    assert_eq!(kinds(&table)[1].1, Kind::Number);
    assert_eq!(plain(&table, 1), ["3.5", "-1204.25"]);
    let table = parse("a.tsv", "a\tb, c\n1\tx, y\n");
    assert_eq!(table.columns[1].name, "b, c");
    let table = parse("a.txt", "# a note\n# more\na|b\n1|2\n");
    assert_eq!(kinds(&table), [("a", Kind::Number), ("b", Kind::Number)]);
    let table = parse("a.csv", "n\n\"1,234\"\n\"12,500.5\"\n");
    assert_eq!(plain(&table, 0), ["1234", "12500.5"]);
}

#[test]
fn ragged_rows() {
    let table = parse("a.csv", "a,b,c\n1,2\n1,2,3,,\n\n4,5,6\n");
    assert_eq!(table.rows, 3);
    assert_eq!(plain(&table, 2), ["", "3", "6"]);
    assert_eq!(table.notes, ["1 row has fewer values than the header (first on line 2); the rest counts as missing"]);
    let message = fails("a.csv", "# note\na,b\n1,2\n1,2,3\n");
    assert!(message.starts_with("a.csv line 4 column 3: the line has 3 values, but there are 2 columns"), "{message}");
}

#[test]
fn an_open_quote_is_named() {
    let message = fails("a.csv", "a,b\n1,2\n3,\"4\n5,6\n7,8\n");
    assert!(message.starts_with("a.csv line 3: a double quote is opened"), "{message}");
}

#[test]
fn headers() {
    let table = parse("a.csv", "temp,temp,,temp\n1,2,3,4\n");
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["temp", "temp_2", "column_3", "temp_3"]);
    assert_eq!(parse("a.csv", "a,b\n").rows, 0);
    let table = parse("a.csv", "1,2.5\n2,3.5\n3,1.5\n");
    assert_eq!((table.rows, table.columns[1].name.as_str()), (3, "column_2"));
    assert!(fails("a.csv", "").contains("empty"));
    assert!(fails("a.csv", "\n\n").contains("empty"));
}

#[test]
fn huge_integers_keep_their_digits() {
    let table = parse("a.csv", "id,n\n12345678901234567890,9007199254740992\n2,1\n");
    assert_eq!(kinds(&table), [("id", Kind::Integer), ("n", Kind::Number)]);
    assert_eq!(plain(&table, 0), ["12345678901234567890", "2"]);
    assert!(table.notes.is_empty());
    let json = r#"[{"id": 12345678901234567890, "n": 1, "q": "-7 \" 123456789012345678901"}, {"id": 5, "n": 2.5}, {"id": -123456789012345678901234567890}]"#;
    let table = parse("a.json", json);
    assert_eq!(kinds(&table)[0].1, Kind::Integer);
    assert_eq!(plain(&table, 0), ["12345678901234567890", "5", "-123456789012345678901234567890"]);
    assert_eq!(plain(&table, 2)[0], "-7 \" 123456789012345678901");
    let table = parse("a.jsonl", "{\"id\":123456789012345678901,\"n\":[1,123456789012345678901]}\n{\"id\":null}\n");
    assert_eq!((plain(&table, 0)[0].as_str(), table.columns[0].value(1)), ("123456789012345678901", Value::Missing));
    let table = parse("a.csv", "id\n12345678901234567890\n1.5\n");
    assert_eq!(kinds(&table), [("id", Kind::Text)]);
    assert!(table.notes[0].starts_with("id: holds integers above 2^53"));
}

#[test]
fn telephone_numbers_keep_their_plus() {
    let table = parse("a.csv", "phone,delta,fax,post\n+491234567,+3,+4930123456,00491234\n+491234568,-2.5,12,01067\n");
    assert_eq!(
        kinds(&table).into_iter().map(|k| k.1).collect::<Vec<_>>(),
        [Kind::Text, Kind::Number, Kind::Text, Kind::Text]
    );
    assert_eq!(plain(&table, 0), ["+491234567", "+491234568"]);
    assert_eq!(plain(&table, 2), ["+4930123456", "12"]);
}

#[test]
fn headers_behind_a_mark() {
    for (text, names, rows) in [
        ("#id,v\n1,2\n3,4\n", ["#id", "v"], 2),
        ("# made by x\n#id,v\n1,2\n", ["#id", "v"], 1),
        ("##format=1\n#CHROM\tPOS\n1\t200\n", ["#CHROM", "POS"], 1),
        ("#name,city\nAda,Oslo\nBob,Rome\n", ["#name", "city"], 2),
        ("#id,v\n", ["#id", "v"], 0),
        ("# id,v\na,b\n1,2\n", ["a", "b"], 1),
        ("#weather,oslo\nday,temp\n2024-01-01,3\n", ["day", "temp"], 1),
        ("#a,b,c\nid,v\n1,2\n", ["id", "v"], 1),
        ("#1,2\nid,v\n1,2\n", ["id", "v"], 1),
    ] {
        let table = parse("a.csv", text);
        assert_eq!(
            (table.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), table.rows),
            (names.to_vec(), rows),
            "{text}"
        );
    }
    assert_eq!(parse("a.csv", "#id,v\n1,2\n").find("id").unwrap(), 0);
}

#[test]
fn times_with_several_offsets_are_compared_in_utc() {
    let table = parse("a.csv", "at\n2026-01-01T10:00:00+02:00\n2026-01-01T09:00:00Z\n2026-01-01T03:00:00-05:30\n");
    assert_eq!(plain(&table, 0), ["2026-01-01T08:00:00", "2026-01-01T09:00:00", "2026-01-01T08:30:00"]);
    assert!(table.notes[0].starts_with("at: has times with several offsets"), "{:?}", table.notes);
    let table = parse("a.csv", "at\n2026-01-01T10:00:00+02:00\n2026-01-02T10:00:00+02:00\n");
    assert_eq!(plain(&table, 0)[0], "2026-01-01T10:00:00");
    assert!(table.notes.is_empty());
}

#[test]
fn days_and_months() {
    assert_eq!(plain(&parse("a.csv", "d\n13/02/2024\n01/03/2024\n"), 0), ["2024-02-13", "2024-03-01"]);
    let table = parse("a.csv", "d,n\n02/01/2024,1\n02/03/2024,2\n");
    assert_eq!(plain(&table, 0), ["2024-02-01", "2024-02-03"]);
    assert_eq!(table.notes, ["d: dates such as 3/4/2024 were read as month/day/year"]);
    assert!(parse("a.csv", "d\n2024-01-02\n").notes.is_empty());
}

#[test]
fn json_in_its_shapes() {
    let rows = r#"[{"day": "2024-01-01", "temp": 1.5, "wind": {"speed": 3}}, {"temp": null, "day": "2024-01-02", "tags": ["a", "b"], "ok": true}]"#;
    let wrapped = format!(r#"{{"count": 2, "units": ["mm", "C"], "results": {rows}, "next": null}}"#);
    for text in [rows, wrapped.as_str()] {
        let table = parse("a.json", text);
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["day", "temp", "wind.speed", "tags", "ok"]);
        assert_eq!(kinds(&table)[0].1, Kind::Date);
        assert_eq!(plain(&table, 1), ["1.5", ""]);
        assert_eq!(plain(&table, 2), ["3", ""]);
        assert_eq!(plain(&table, 3), ["", r#"["a","b"]"#]);
        assert_eq!(plain(&table, 4), ["", "true"]);
    }
    let table = parse("a.json", r#"{"columns": ["a", "b"], "rows": [[1, "x"], [2]], "truncated": false}"#);
    assert_eq!(kinds(&table), [("a", Kind::Number), ("b", Kind::Text)]);
    assert_eq!(plain(&table, 1), ["x", ""]);
    let table = parse("a.jsonl", "{\"a\": 1}\n\n{\"a\": 2, \"a\": 3}\r\n");
    assert_eq!(plain(&table, 0), ["1", "3"]);
    let table = parse("a.json", r#"[{"a": 1, "a": 2}, {"a": "x", "a": null}, {"b": "y", "b": "zz", "a": 5}]"#);
    assert_eq!(
        (plain(&table, 0), plain(&table, 1)),
        (["2", "", "5"].map(String::from).to_vec(), ["", "", "zz"].map(String::from).to_vec())
    );
    assert_eq!(parse("a.txt", "{\"a\": 1}\n{\"a\": 2}\n").rows, 2);
}

#[test]
fn broken_json_is_located() {
    assert!(fails("a.json", "[{\"a\": 1},\n {\"a\": }]").starts_with("a.json line 2 column 8: expected value"));
    assert!(fails("a.jsonl", "{\"a\": 1}\n{\"a\": 1\n").starts_with("a.jsonl line 2 column 7: EOF"));
    assert!(fails("a.json", "{\"a\": 1, \"b\": [1, 2]}").contains("has no rows"));
    assert!(fails("a.json", "[1, 2]").starts_with("a.json line 1 column 2: invalid type: integer `1`, expected a row"));
    assert!(fails("a.json", "").contains("line 1 column 0"));
}

#[test]
fn other_encodings() {
    let read = |bytes: &[u8]| Table::parse("a.csv", bytes.to_vec(), 1 << 20);
    let table = read(b"ort,n\nK\xf6ln \x80,1\n").unwrap();
    assert_eq!(plain(&table, 0), ["Köln €"]);
    assert_eq!(table.notes, ["a.csv is not UTF-8 and was read as Windows-1252"]);
    let bad = |text: &str| text.as_bytes().iter().map(|&b| if b == b'!' { 0xE9 } else { b }).collect::<Vec<u8>>();
    let table = read(&bad("a,b\nx,1\ncaf!,2\nété,3\n")).unwrap();
    assert_eq!(plain(&table, 0), ["x", "café", "été"]);
    assert_eq!(table.notes, ["a.csv line 3: the byte E9 is not UTF-8; it was read as Windows-1252"]);
    let table = read(&bad("a\nété à ç\n!!\n!\n")).unwrap();
    assert_eq!(plain(&table, 0), ["été à ç", "éé", "é"]);
    assert_eq!(table.notes, ["a.csv line 3: the byte E9 is not UTF-8; 3 such bytes were read as Windows-1252"]);
    let wide: Vec<u8> = "\u{feff}a,b\nß,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(plain(&read(&wide).unwrap(), 0), ["ß"]);
    assert_eq!(read(b"\x89PNG\r\n\x1a\n\0\0").unwrap_err().code, "not-a-table");
}

#[test]
fn sizes_are_bounded() {
    let text = "a,b\n".to_owned() + &"1,2\n".repeat(100_000);
    let failure = Table::parse("a.csv", text.into_bytes(), 1 << 20).unwrap_err();
    assert_eq!(failure.code, "too-large");
    assert!(failure.message.contains("a.csv") && failure.message.contains("1 MiB"));
    let wide = (0..3_000).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    assert_eq!(Table::parse("a.csv", wide.into_bytes(), 1 << 20).unwrap_err().code, "too-large");
}

#[test]
fn columns_are_found_as_people_write_them() {
    let table = parse("a.csv", "Max Temp,rain\n1,2\n");
    assert_eq!(table.find("max_temp").unwrap(), 0);
    assert_eq!(table.find("`RAIN`").unwrap(), 1);
    let failure = table.find("rian").unwrap_err();
    assert_eq!(failure.message, "a.csv has no column rian; did you mean rain? Its columns: Max Temp, rain");
}
