//! Takes the annotated function apart, as far as the attributes need it: its attributes and
//! visibility, its name, and the rest, which stays as the user wrote it.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::attribute::Attribute;
use crate::error::{Mistake, Result};

/// An `async fn` without parameters: all that the attributes accept.
pub(crate) struct AsyncFunction {
    /// `#[..]` and doc comments; they stay on the outer function.
    pub(crate) attributes: Vec<TokenTree>,
    pub(crate) visibility: Vec<TokenTree>,
    pub(crate) fn_keyword: TokenTree,
    pub(crate) name: TokenTree,
    /// Everything between the parameters and the body: the return type, a `where` clause.
    pub(crate) tail: Vec<TokenTree>,
    /// From `async` to the end of the body, untouched.
    pub(crate) whole: Vec<TokenTree>,
}

impl AsyncFunction {
    pub(crate) fn parse(item: TokenStream, attribute: Attribute) -> Result<Self> {
        let tokens: Vec<TokenTree> = item.into_iter().collect();
        // A function that passed through a `macro_rules!` fragment arrives in an invisible group.
        if let [TokenTree::Group(group)] = tokens.as_slice()
            && group.delimiter() == Delimiter::None
        {
            return Self::parse(group.stream(), attribute);
        }

        let attributes_end = end_of_attributes(&tokens);
        refuse_second_test(&tokens[..attributes_end], attribute)?;
        let visibility_end = end_of_visibility(&tokens, attributes_end);
        let (before, whole) = tokens.split_at(visibility_end);
        let (attributes, visibility) = before.split_at(attributes_end);

        expect_async_fn(whole, attribute)?;
        let name = name_of(whole, attribute)?;
        if let Some(parameters) = whole.get(3).filter(|token| is_punct(token, '<')) {
            return Err(Mistake::at(
                parameters.span(),
                format!(
                    "`{attribute}` functions take no generic parameters: nothing would choose them"
                ),
            ));
        }
        match whole.get(3) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                refuse_parameters(group, attribute)?;
            }
            _ => {
                return Err(Mistake::at(
                    name.span(),
                    format!("`{attribute}` found no parameter list after this name"),
                ));
            }
        }
        if !whole.last().is_some_and(is_body) {
            return Err(Mistake::at(
                name.span(),
                format!("`{attribute}` needs a function with a body"),
            ));
        }

        Ok(AsyncFunction {
            attributes: attributes.to_vec(),
            visibility: visibility.to_vec(),
            fn_keyword: whole[1].clone(),
            name,
            tail: whole[4..whole.len() - 1].to_vec(),
            whole: whole.to_vec(),
        })
    }
}

fn end_of_attributes(tokens: &[TokenTree]) -> usize {
    let mut end = 0;
    while let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = &tokens[end..]
        && hash.as_char() == '#'
        && group.delimiter() == Delimiter::Bracket
    {
        end += 2;
    }
    end
}

/// `#[test]` below `#[runtime::test]` would register the same function twice.
fn refuse_second_test(attributes: &[TokenTree], attribute: Attribute) -> Result<()> {
    if attribute != Attribute::Test {
        return Ok(());
    }
    for token in attributes {
        if let TokenTree::Group(group) = token
            && group.stream().to_string().trim() == "test"
        {
            return Err(Mistake::at(
                group.span(),
                format!("`{attribute}` adds `#[test]` itself: remove this one"),
            ));
        }
    }
    Ok(())
}

fn end_of_visibility(tokens: &[TokenTree], start: usize) -> usize {
    match &tokens[start..] {
        [public, TokenTree::Group(scope), ..]
            if is_ident(public, "pub") && scope.delimiter() == Delimiter::Parenthesis =>
        {
            start + 2
        }
        [public, ..] if is_ident(public, "pub") => start + 1,
        // `$visibility:vis`: an invisible group, empty for a private function.
        [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::None => start + 1,
        _ => start,
    }
}

fn expect_async_fn(tokens: &[TokenTree], attribute: Attribute) -> Result<()> {
    const QUALIFIERS: [&str; 4] = ["async", "const", "unsafe", "extern"];
    if let [first, second, ..] = tokens
        && is_ident(first, "async")
        && is_ident(second, "fn")
    {
        return Ok(());
    }

    let qualifiers = tokens
        .iter()
        .take_while(|token| {
            QUALIFIERS.iter().any(|name| is_ident(token, name))
                || matches!(token, TokenTree::Literal(_))
        })
        .count();
    let (qualifiers, rest) = tokens.split_at(qualifiers);
    let Some(fn_keyword) = rest.first().filter(|token| is_ident(token, "fn")) else {
        let found = qualifiers.first().or(rest.first());
        return Err(Mistake::at(
            found.map_or_else(Span::call_site, TokenTree::span),
            format!("`{attribute}` goes on an `async fn`"),
        ));
    };
    match qualifiers
        .iter()
        .find(|token| !is_ident(token, "async") && QUALIFIERS.iter().any(|q| is_ident(token, q)))
    {
        Some(qualifier) => Err(Mistake::at(
            qualifier.span(),
            format!("`{attribute}` goes on a plain `async fn`, without `{qualifier}`"),
        )),
        None => Err(Mistake::at(
            fn_keyword.span(),
            format!(
                "`{attribute}` needs an async function: write `async fn` (or drop the attribute)"
            ),
        )),
    }
}

fn name_of(tokens: &[TokenTree], attribute: Attribute) -> Result<TokenTree> {
    match tokens.get(2) {
        Some(TokenTree::Ident(name)) => Ok(TokenTree::Ident(name.clone())),
        other => Err(Mistake::at(
            other.map_or(tokens[1].span(), TokenTree::span),
            format!("`{attribute}` found no function name here"),
        )),
    }
}

fn refuse_parameters(parameters: &Group, attribute: Attribute) -> Result<()> {
    let tokens: Vec<TokenTree> = parameters.stream().into_iter().collect();
    let first = tokens
        .split(|token| is_punct(token, ','))
        .next()
        .unwrap_or_default();
    // `self` before any type is a receiver; after a colon it is the start of a path.
    let is_method = first
        .iter()
        .take_while(|token| !is_punct(token, ':'))
        .any(|token| is_ident(token, "self"));
    if is_method {
        return Err(Mistake::over(
            first,
            parameters.span(),
            format!(
                "`{attribute}` cannot go on a method: there is no `self` when the runtime starts"
            ),
        ));
    }
    if tokens.is_empty() {
        return Ok(());
    }
    let advice = match attribute {
        Attribute::Main => "read `std::env::args()` inside instead",
        Attribute::Test => "nobody would pass them",
    };
    Err(Mistake::over(
        &tokens,
        parameters.span(),
        format!("`{attribute}` functions take no parameters: {advice}"),
    ))
}

/// A block, bare or (as `$body:block`) in an invisible group.
fn is_body(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => true,
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            matches!(inner.as_slice(), [only] if is_body(only))
        }
        _ => false,
    }
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == name)
}

fn is_punct(token: &TokenTree, symbol: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == symbol)
}
