//! Plain exported functions, as in a component that was written without kiso in mind.

wit_bindgen::generate!({ path: "wit", world: "calc" });

use exports::test::calc::measures::{Days, Guest as Measures, Scale, Shape, Span};

struct Calc;

impl Guest for Calc {
    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }

    fn mean(values: Vec<f64>) -> Option<f64> {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn greet(person: Person) -> String {
        match person.age {
            Some(age) => format!("Hello {}, {age} years old", person.name),
            None => format!("Hello {}", person.name),
        }
    }

    fn divide(a: f64, b: f64) -> Result<f64, String> {
        if b == 0.0 { Err(format!("{a} cannot be divided by zero")) } else { Ok(a / b) }
    }

    fn swap((name, number): (String, u64)) -> (u64, String) {
        (number, name)
    }

    fn initial(name: String) -> Option<char> {
        name.chars().next()
    }

    fn bytes(text: String) -> Vec<u8> {
        text.into_bytes()
    }

    fn negate(value: bool) -> bool {
        !value
    }

    fn check(fail: bool) -> Result<(), ()> {
        if fail { Err(()) } else { Ok(()) }
    }

    fn ping() {}
}

impl Measures for Calc {
    fn convert(degrees: f64, from: Scale, to: Scale) -> Result<f64, String> {
        let kelvin = match from {
            Scale::Celsius => degrees + 273.15,
            Scale::Fahrenheit => (degrees - 32.0) / 1.8 + 273.15,
            Scale::Kelvin => degrees,
        };
        if kelvin < 0.0 {
            return Err(format!("{degrees} is below absolute zero"));
        }
        Ok(match to {
            Scale::Celsius => kelvin - 273.15,
            Scale::Fahrenheit => (kelvin - 273.15) * 1.8 + 32.0,
            Scale::Kelvin => kelvin,
        })
    }

    fn open_on(on: Days) -> (u32, Vec<String>) {
        let names: Vec<String> = on.iter_names().map(|(name, _)| name.to_lowercase()).collect();
        (names.len() as u32, names)
    }

    fn area(of: Shape) -> f64 {
        match of {
            Shape::Circle(radius) => std::f64::consts::PI * radius * radius,
            Shape::Rectangle((width, height)) => width * height,
            Shape::Point => 0.0,
        }
    }

    fn cover(spans: Vec<Span>) -> Option<Span> {
        let start = spans.iter().map(|s| s.start).min()?;
        let end = spans.iter().map(|s| s.end).max()?;
        let label = spans.into_iter().find_map(|s| s.label);
        Some(Span { start, end, label })
    }
}

export!(Calc);
