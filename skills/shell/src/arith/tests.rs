use super::*;
use crate::expand::tests::Shell;

/// The value and then `n`, or the message.
type Outcome<'a> = Result<(i64, &'a str), &'a str>;

/// The result of bash 5.2 for each expression after `n=5 list=(10 20 30) expr='n + 1'` and
/// `declare -A map=([one]=1)`.
#[test]
fn values() {
    let cases: &[(&str, Outcome)] = &[
        ("1+2 * 3", Ok((7, "5"))),
        ("(1+2)*3", Ok((9, "5"))),
        ("7/2", Ok((3, "5"))),
        ("-7/2", Ok((-3, "5"))),
        ("-7%3", Ok((-1, "5"))),
        ("2**3**2", Ok((512, "5"))),
        ("-2**2", Ok((4, "5"))),
        ("2**0", Ok((1, "5"))),
        ("1<<3", Ok((8, "5"))),
        ("-16>>2", Ok((-4, "5"))),
        ("5&3|4^1", Ok((5, "5"))),
        ("1<2==1", Ok((1, "5"))),
        ("3>2>1", Ok((0, "5"))),
        ("1?2:3", Ok((2, "5"))),
        ("0?2:3", Ok((3, "5"))),
        ("1?0?1:2:3", Ok((2, "5"))),
        ("n>3?n<10?1:2:3", Ok((1, "5"))),
        ("1,2,3", Ok((3, "5"))),
        ("~1", Ok((-2, "5"))),
        ("!5", Ok((0, "5"))),
        ("!!5", Ok((1, "5"))),
        ("- - 5", Ok((5, "5"))),
        ("5--3", Ok((8, "5"))),
        ("5- -n", Ok((10, "5"))),
        ("1++2", Ok((3, "5"))),
        ("0x1F", Ok((31, "5"))),
        ("010", Ok((8, "5"))),
        ("2#101", Ok((5, "5"))),
        ("16#fF", Ok((255, "5"))),
        ("36#z", Ok((35, "5"))),
        ("64#_", Ok((63, "5"))),
        ("9223372036854775807+1", Ok((-9223372036854775808, "5"))),
        ("-9223372036854775807-1", Ok((-9223372036854775808, "5"))),
        ("-9223372036854775808/-1", Ok((-9223372036854775808, "5"))),
        ("-9223372036854775808%-1", Ok((0, "5"))),
        ("9223372036854775808", Ok((-9223372036854775808, "5"))),
        ("1&&0||1", Ok((1, "5"))),
        ("0||0", Ok((0, "5"))),
        ("2&&3", Ok((1, "5"))),
        ("n", Ok((5, "5"))),
        ("unset", Ok((0, "5"))),
        ("n=7", Ok((7, "7"))),
        ("n+=2", Ok((7, "7"))),
        ("n*=3", Ok((15, "15"))),
        ("n-=1", Ok((4, "4"))),
        ("n/=2", Ok((2, "2"))),
        ("n%=3", Ok((2, "2"))),
        ("n<<=2", Ok((20, "20"))),
        ("n>>=1", Ok((2, "2"))),
        ("n&=4", Ok((4, "4"))),
        ("n|=3", Ok((7, "7"))),
        ("n^=1", Ok((4, "4"))),
        ("n++", Ok((5, "6"))),
        ("n--", Ok((5, "4"))),
        ("++n", Ok((6, "6"))),
        ("--n", Ok((4, "4"))),
        ("n++ + ++n", Ok((12, "7"))),
        ("k=j=4", Ok((4, "5"))),
        ("n==5&&n!=4", Ok((1, "5"))),
        ("list[1]", Ok((20, "5"))),
        ("list[n-4]", Ok((20, "5"))),
        ("list[-1]", Ok((30, "5"))),
        ("list[0]=9", Ok((9, "5"))),
        ("list[1]++", Ok((20, "5"))),
        ("map[one]", Ok((1, "5"))),
        ("map[one]=5", Ok((5, "5"))),
        ("expr", Ok((6, "5"))),
        ("expr*2", Ok((12, "5"))),
        ("0||(n=1)", Ok((1, "1"))),
        ("1||(n=1)", Ok((1, "5"))),
        ("0&&1/0", Ok((0, "5"))),
        ("n==5?(n=1):(n=2)", Ok((1, "1"))),
        ("1<=1", Ok((1, "5"))),
        ("2>=3", Ok((0, "5"))),
        (" ", Ok((0, "5"))),
        ("n + $n + ${n}", Ok((15, "5"))),
        (r#""1" + 1"#, Ok((2, "5"))),
        ("1/0", Err(r#"1/0: division by 0 (error token is "0")"#)),
        ("1%0", Err(r#"1%0: division by 0 (error token is "0")"#)),
        ("n/=0", Err(r#"n/=0: division by 0 (error token is "0")"#)),
        ("2**-1", Err(r#"2**-1: exponent less than 0 (error token is "1")"#)),
        ("08", Err(r#"08: value too great for base (error token is "08")"#)),
        ("1+", Err(r#"1+: syntax error: operand expected (error token is "+")"#)),
        ("1 2", Err(r#"1 2: syntax error in expression (error token is "2")"#)),
        ("1=2", Err(r#"1=2: attempted assignment to non-variable (error token is "=2")"#)),
        ("2#3", Err(r#"2#3: value too great for base (error token is "2#3")"#)),
        ("1#1", Err(r#"1#1: invalid arithmetic base (error token is "1#1")"#)),
        ("65#1", Err(r#"65#1: invalid arithmetic base (error token is "65#1")"#)),
        ("x y", Err(r#"x y: syntax error in expression (error token is "y")"#)),
        ("1?2", Err(r#"1?2: `:' expected for conditional expression (error token is "2")"#)),
        ("(1", Err(r#"(1: missing `)' (error token is "1")"#)),
        ("1)", Err(r#"1): syntax error in expression (error token is ")")"#)),
        ("@", Err(r#"@: syntax error: operand expected (error token is "@")"#)),
        ("n=", Err(r#"n=: syntax error: operand expected (error token is "=")"#)),
        ("++5", Ok((5, "5"))),
        ("12abc", Err(r#"12abc: value too great for base (error token is "12abc")"#)),
        ("list[", Err(r#"list[: bad array subscript (error token is "list[")"#)),
    ];
    for (source, expected) in cases {
        let mut shell = Shell::new()
            .var("n", "5")
            .array("list", &["10", "20", "30"])
            .keyed("map", &[("one", "1")])
            .var("expr", "n + 1");
        let value = arithmetic(&mut shell, source);
        let n = shell.get("n").and_then(scalar).unwrap_or_default();
        let value = value.map(|value| (value, n.as_str())).map_err(|stop| stop.message);
        assert_eq!(value, expected.map_err(str::to_owned), "{source}");
    }
}

#[test]
fn variables_that_name_each_other_end() {
    let mut shell = Shell::new().var("loop", "pool").var("pool", "loop");
    let message = arithmetic(&mut shell, "loop").expect_err("it never becomes a number").message;
    assert!(message.contains("expression recursion level exceeded"), "{message}");
}

#[test]
fn a_readonly_variable_stays() {
    let mut shell = Shell::new().var("n", "5");
    shell.readonly.insert("n".into());
    assert_eq!(arithmetic(&mut shell, "n++").map_err(|stop| stop.message), Err("n: readonly variable".into()));
    assert_eq!(arithmetic(&mut shell, "1 || n++").map_err(|stop| stop.message), Ok(1));
}

/// Deep recursion in the evaluator must end with an error instead of a stack overflow.
#[test]
fn nesting_is_limited() {
    let deep = ["(", "-", "!", "~", "1?", "2**", "x=", "a[", "++", "x["].map(|part| part.repeat(100_000) + "1");
    for source in deep {
        let message = arithmetic(&mut Shell::new(), &source).map_err(|stop| stop.message).expect_err(&source[..9]);
        assert!(message.len() < 600, "a message of {} bytes", message.len());
    }
    let parentheses = "(".repeat(90) + "1" + &")".repeat(90);
    assert_eq!(arithmetic(&mut Shell::new(), &parentheses), Ok(1));
    let long = "1+".repeat(10_000) + "1";
    assert_eq!(arithmetic(&mut Shell::new(), &long), Ok(10_001));
}
