//! Takes off what only a builder understands, and leaves functions as they are: see `Cargo.toml`.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// An `impl` whose functions may have `#[builder]` and arguments with documentation.
#[proc_macro_attribute]
pub fn bon(_: TokenStream, item: TokenStream) -> TokenStream {
    // The parser names the builder among what it publishes.
    let builder: TokenStream = "/// There is none.\npub enum ParserBuilder {}".parse().expect("it is Rust");
    plain(item).into_iter().chain(builder).collect()
}

fn plain(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        if group.delimiter() == Delimiter::Bracket && is_for_a_builder(&group) {
            kept.pop(); // its `#`
            continue;
        }
        let mut inner = Group::new(group.delimiter(), plain(group.stream()));
        inner.set_span(group.span());
        kept.push(inner.into());
    }
    kept.into_iter().collect()
}

fn is_for_a_builder(attribute: &Group) -> bool {
    let Some(TokenTree::Ident(name)) = attribute.stream().into_iter().next() else { return false };
    ["builder", "doc"].contains(&name.to_string().as_str())
}
