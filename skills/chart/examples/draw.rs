//! Draws files of this machine, without a sandbox: `cargo run --example draw -- '{"file": "weather.csv"}' OUT`
//! leaves OUT.svg and OUT.png.

use table::Table;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [args, out] = args.as_slice() else { return Err("two arguments: the request as JSON, and a name".into()) };
    let request: chart::Request = serde_json::from_str(args)?;
    let table = Table::parse(&request.file, std::fs::read(&request.file)?, chart::BUDGET)?;
    let drawn = chart::draw(&table, &request)?;
    std::fs::write(format!("{out}.svg"), &drawn.svg)?;
    std::fs::write(format!("{out}.png"), &drawn.png)?;
    println!("{}\n{} → {}", drawn.text, drawn.title, drawn.out);
    Ok(())
}
