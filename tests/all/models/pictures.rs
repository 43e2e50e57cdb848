//! Pictures in both wire formats, and models that do not support them.

use super::*;
use kiso_llm::{Image, Turn};
use kiso_plan::call::ToolCall;
use kiso_plan::picture::Picture;

fn image(name: &str) -> Image {
    let (name, media_type) = (name.to_owned(), "image/png".to_owned());
    let picture = Picture { name, digest: String::new(), media_type, width: 300, height: 200 };
    Image { content: Some("QUJD".into()), ..Image::from_picture(&picture) }
}

/// A picture after the question, and one after the result of a call.
fn with_pictures() -> Request {
    let call = ToolCall::new("1", "exec", "{}");
    let turns = vec![
        Turn::Pictures(vec![image("a.png")]),
        Turn::Assistant { text: String::new(), calls: vec![call] },
        Turn::Tool { id: "1".to_owned(), name: "exec".to_owned(), text: "seen".to_owned() },
        Turn::Pictures(vec![image("b.png")]),
        Turn::Note("and now?".to_owned()),
    ];
    Request { turns, ..with_tools() }
}

/// The kinds of parts of each message, or "text".
fn parts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    let kind = |part: &Value| part["type"].as_str().unwrap_or("?").to_owned();
    let content = |message: &Value| match message["content"].as_array() {
        Some(parts) => parts.iter().map(kind).collect::<Vec<_>>().join(" "),
        None => "text".to_owned(),
    };
    messages.map(|message| format!("{}: {}", message["role"].as_str().unwrap(), content(message))).collect()
}

#[tokio::test]
async fn pictures_are_parts_of_a_message_of_the_user() {
    let scene = Scene::new(Format::Anthropic, "[[reply]]\ntext = \"ok\"");
    assert!(!scene.ask(&with_pictures()).await.unwrap().blind);
    let body = scene.bodies().remove(0);
    assert_eq!(parts(&body), ["user: text text image", "assistant: tool_use", "user: tool_result text image text"]);
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
    assert_eq!(body["messages"][0]["content"][2]["source"], source);
    assert_eq!(body["messages"][0]["content"][1]["text"], "[picture: a.png (300x200 pixels)]");
    assert_eq!(scene.model.sees(), Some(true), "it answered to one");

    let scene = Scene::new(Format::OpenAi, "[[reply]]\ntext = \"ok\"");
    assert_eq!(scene.model.sees(), None);
    scene.ask(&with_pictures()).await.unwrap();
    let body = scene.bodies().remove(0);
    let (first, user) = ("user: text text image_url", "user: text image_url text");
    assert_eq!(parts(&body), [first, "assistant: text", "tool: text", user]);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][1]["image_url"]["url"], "data:image/png;base64,QUJD");
    assert_eq!(scene.model.sees(), Some(true));
}

/// Error texts of OpenAI, OpenRouter, llama.cpp, vLLM, DeepSeek and Anthropic.
#[tokio::test]
async fn a_model_without_eyes_is_found_out_once() {
    for (status, said) in [
        (400, "Invalid content type. image_url is only supported by certain models."),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (400, "model-1 is not a multimodal model"),
        (422, "messages[1]: unknown variant `image_url`, expected `text`"),
        (400, "messages.0.content.1: this model does not support image blocks"),
    ] {
        for format in BOTH {
            let refusal = json!({ "error": { "message": said } }).to_string();
            let replies =
                json!({ "reply": [{ "status": status, "raw": refusal }, { "text": "ok" }, { "text": "ok" }] });
            let scene = Scene::new(format, &toml::to_string(&replies).unwrap());
            assert!(scene.ask(&with_pictures()).await.unwrap().blind, "{said}");
            assert_eq!(scene.model.sees(), Some(false));
            scene.ask(&with_pictures()).await.unwrap();
            let shown: Vec<_> = scene.bodies().iter().map(|body| body.to_string().contains("QUJD")).collect();
            assert_eq!(shown, [true, false, false], "{format:?}: {said}");
            let told = scene.bodies()[1].to_string();
            assert!(told.contains("a.png (300x200 pixels). You cannot see pictures"), "{told}");
        }
    }
}

/// One refused picture does not affect others; the administrator's setting is not tested against the server.
#[tokio::test]
async fn one_picture_that_is_refused_and_what_the_administrator_says() {
    for format in BOTH {
        let refusal = json!({ "error": { "message": "messages.0: Could not process image" } }).to_string();
        let replies = json!({ "reply": [{ "text": "ok" }, { "status": 400, "raw": refusal }, { "text": "ok" }] });
        let scene = Scene::new(format, &toml::to_string(&replies).unwrap());
        scene.ask(&with_pictures()).await.unwrap();
        scene.ask(&with_pictures()).await.unwrap();
        assert_eq!(scene.model.sees(), Some(true));
        assert!(scene.bodies()[2].to_string().contains("which your provider refused"), "{:?}", scene.bodies()[2]);

        let scene = Scene::with(format, "[[reply]]\ntext = \"ok\"", |endpoint| endpoint.vision = Support::No);
        assert_eq!(scene.model.sees(), Some(false));
        let mut described = with_pictures();
        for turn in &mut described.turns {
            let Turn::Pictures(images) = turn else { continue };
            images.iter_mut().for_each(|image| image.described = Some("a cat".to_owned()));
        }
        assert!(!scene.ask(&described).await.unwrap().blind, "it knows what is on them");
        let told = scene.bodies()[0].to_string();
        assert!(told.contains("another model describes it:]\\na cat") && !told.contains("QUJD"), "{told}");
    }
}

/// Mistral requires an assistant message between a tool result and the user, and a server without tools gets results as text.
#[tokio::test]
async fn pictures_of_results_find_their_place_everywhere() {
    let refusal = json!({ "message": "Unexpected role 'user' after role 'tool'" }).to_string();
    let replies = json!({ "reply": [{ "status": 400, "raw": refusal }, { "text": "ok" }] });
    let scene = Scene::new(Format::OpenAi, &toml::to_string(&replies).unwrap());
    scene.ask(&with_pictures()).await.unwrap();
    let roles =
        ["user: text text image_url", "assistant: text", "tool: text", "assistant: text", "user: text image_url text"];
    assert_eq!(parts(&scene.bodies()[1]), roles);

    let reply = "[[reply]]\ntext = '{\"say\": \"ok\", \"calls\": []}'";
    let scene = Scene::with(Format::OpenAi, reply, |endpoint| endpoint.tools = Support::No);
    let mut heard = Heard::default();
    scene.model.complete(&with_pictures(), &mut heard).await.unwrap();
    let user = "user: text text image_url";
    assert_eq!(parts(&scene.bodies()[0]), [user, "assistant: text", &format!("{user} text")]);
}
