//! Asynchronous functions, and streams and futures in results, as in a component that was written without kiso in mind.

wit_bindgen::generate!({ path: "wit", world: "flow" });

use wit_bindgen::{FutureReader, StreamReader, spawn_local, yield_async};

struct Flow;

impl Guest for Flow {
    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }

    async fn later(text: String) -> String {
        yield_async().await;
        format!("{text}, later")
    }

    async fn divide(a: f64, b: f64) -> Result<f64, String> {
        yield_async().await;
        if b == 0.0 { Err(format!("{a} cannot be divided by zero")) } else { Ok(a / b) }
    }

    async fn spell(text: String, times: u32) -> StreamReader<u8> {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move {
            for _ in 0..times {
                writer.write_all(text.clone().into_bytes()).await;
            }
        });
        reader
    }

    async fn rows(count: u32) -> StreamReader<String> {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move {
            for row in 0..count {
                writer.write_one(format!("row {row}")).await;
            }
        });
        reader
    }

    async fn value(text: String) -> FutureReader<String> {
        let (writer, reader) = wit_future::new(String::new);
        spawn_local(async move {
            let _ = writer.write(text).await;
        });
        reader
    }

    async fn ended(fails: bool) -> (StreamReader<String>, FutureReader<Result<(), String>>) {
        let (mut writer, reader) = wit_stream::new();
        let (end, ended) = wit_future::new(|| Ok(()));
        spawn_local(async move {
            writer.write_one("the only row".to_owned()).await;
            drop(writer);
            let _ = end.write(if fails { Err("the source dried up".to_owned()) } else { Ok(()) }).await;
        });
        (reader, ended)
    }

    async fn endless() -> StreamReader<u8> {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move {
            loop {
                writer.write_all(vec![b'.'; 64 << 10]).await;
            }
        });
        reader
    }
}

export!(Flow);
