//! Writes the function that starts the runtime around the function the user wrote.

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

use crate::attribute::Attribute;
use crate::function::AsyncFunction;
use crate::options::{Flavor, Options};

/// The user's `async fn` is nested unchanged, so that type errors point into it as they would
/// without the attribute, and its return type may be anything, `impl Trait` and `!` included:
///
/// ```text
/// #[..] pub fn name() -> R {
///     async fn name() -> R { .. }
///     ::runtime::Builder::new().worker_threads(4).build().expect("..").block_on(name())
/// }
/// ```
pub(crate) fn expand(
    function: AsyncFunction,
    options: &Options,
    attribute: Attribute,
) -> TokenStream {
    let mut output = TokenStream::new();
    if attribute == Attribute::Test {
        output.extend(generated("#[::core::prelude::v1::test]"));
    }
    output.extend(function.attributes);
    output.extend(function.visibility);
    output.extend([function.fn_keyword, function.name.clone()]);
    output.extend(generated("()"));
    output.extend(function.tail);

    let mut body = TokenStream::from_iter(function.whole);
    body.extend(builder(options, attribute));
    body.extend(generated(
        r#".build().expect("the runtime could not be started")"#,
    ));
    body.extend(generated(".block_on"));
    let mut call = TokenStream::from(function.name);
    call.extend(generated("()"));
    body.extend([parenthesized(call)]);
    output.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    output
}

/// `::runtime::Builder::new()` and the calls for each option.
fn builder(options: &Options, attribute: Attribute) -> TokenStream {
    let mut chain = options
        .crate_path
        .clone()
        .unwrap_or_else(|| generated("::runtime"));
    chain.extend(generated(match options.flavor {
        Some(Flavor::CurrentThread) => "::Builder::new_current_thread()",
        Some(Flavor::MultiThread) => "::Builder::new_multi_thread()",
        None => "::Builder::new()",
    }));

    // Tests run side by side already: one worker each, unless the test asks for more.
    let one_worker = attribute == Attribute::Test && options.flavor.is_none();
    let default_workers = one_worker.then(|| TokenTree::Literal(Literal::usize_unsuffixed(1)));
    let calls = [
        (
            ".worker_threads",
            options.worker_threads.clone().or(default_workers),
        ),
        (".background_threads", options.background_threads.clone()),
        (".rng_seed", options.rng_seed.clone()),
    ];
    for (method, value) in calls {
        if let Some(value) = value {
            chain.extend(generated(method));
            chain.extend([parenthesized(TokenStream::from(value))]);
        }
    }
    chain
}

fn parenthesized(tokens: TokenStream) -> TokenTree {
    let mut group = Group::new(Delimiter::Parenthesis, tokens);
    group.set_span(Span::mixed_site());
    TokenTree::Group(group)
}

/// Tokens of our own. `mixed_site` keeps lints about the user's style away from them.
fn generated(source: &str) -> TokenStream {
    fn respan(tokens: TokenStream) -> TokenStream {
        tokens
            .into_iter()
            .map(|token| {
                let mut token = match token {
                    TokenTree::Group(group) => {
                        TokenTree::Group(Group::new(group.delimiter(), respan(group.stream())))
                    }
                    other => other,
                };
                token.set_span(Span::mixed_site());
                token
            })
            .collect()
    }
    respan(source.parse().expect("a fragment of our own is valid Rust"))
}
