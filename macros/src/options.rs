//! The arguments of the attributes: `name = literal`, separated by commas.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::error::{Mistake, Result};

const KNOWN: &str = "`worker_threads`, `background_threads`, `rng_seed`, `flavor`, `crate`";

/// What the user asked for; `None` leaves the builder's own default.
#[derive(Default)]
pub(crate) struct Options {
    /// Kept as written, so that the literal's own span meets a type error.
    pub(crate) worker_threads: Option<TokenTree>,
    pub(crate) background_threads: Option<TokenTree>,
    pub(crate) rng_seed: Option<TokenTree>,
    pub(crate) flavor: Option<Flavor>,
    /// The path under which the user's crate knows `runtime`.
    pub(crate) crate_path: Option<TokenStream>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    CurrentThread,
    MultiThread,
}

impl Options {
    pub(crate) fn parse(arguments: TokenStream) -> Result<Self> {
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        let mut options = Options::default();
        let mut seen = Vec::new();
        let mut written = tokens
            .split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
            .peekable();
        while let Some(option) = written.next() {
            if option.is_empty() && written.peek().is_none() {
                break; // no arguments, or a trailing comma
            }
            let (name, span, value) = name_and_value(option)?;
            if seen.contains(&name) {
                return Err(Mistake::at(span, format!("`{name}` is set twice")));
            }
            options.set(&name, span, value)?;
            seen.push(name);
        }

        if options.flavor == Some(Flavor::CurrentThread)
            && let Some(workers) = &options.worker_threads
        {
            return Err(Mistake::at(
                workers.span(),
                "the `current_thread` flavor has one worker, the calling thread: \
                 drop `worker_threads` or the flavor",
            ));
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, span: Span, value: &[TokenTree]) -> Result<()> {
        match name {
            "worker_threads" => {
                let (number, literal) = integer(name, span, value)?;
                if number == 0 {
                    return Err(Mistake::at(
                        literal.span(),
                        "a runtime needs at least one worker: `worker_threads` starts at 1",
                    ));
                }
                self.worker_threads = Some(literal);
            }
            "rng_seed" => self.rng_seed = Some(integer(name, span, value)?.1),
            "background_threads" => self.background_threads = Some(boolean(name, span, value)?),
            "flavor" => self.flavor = Some(flavor(name, span, value)?),
            "crate" => self.crate_path = Some(path(name, span, value)?),
            unknown => {
                return Err(Mistake::at(
                    span,
                    format!("no option is called `{unknown}`: the options are {KNOWN}"),
                ));
            }
        }
        Ok(())
    }
}

fn name_and_value(option: &[TokenTree]) -> Result<(String, Span, &[TokenTree])> {
    match option {
        [TokenTree::Ident(name), TokenTree::Punct(equals), value @ ..]
            if equals.as_char() == '=' =>
        {
            Ok((name.to_string(), name.span(), value))
        }
        [TokenTree::Ident(name), ..] => Err(Mistake::over(
            option,
            name.span(),
            format!("an option is written `name = value`; the options are {KNOWN}"),
        )),
        _ => Err(Mistake::over(
            option,
            Span::call_site(),
            format!("expected an option; the options are {KNOWN}"),
        )),
    }
}

fn integer(name: &str, span: Span, value: &[TokenTree]) -> Result<(u64, TokenTree)> {
    let wrong = || Mistake::over(value, span, format!("`{name}` takes a whole number"));
    let literal = single(value)
        .filter(|token| matches!(token, TokenTree::Literal(_)))
        .ok_or_else(wrong)?;
    let number = read_integer(&literal.to_string()).ok_or_else(wrong)?;
    Ok((number, literal))
}

/// The value of an unsuffixed integer literal; the suffix is left to the builder's types.
fn read_integer(literal: &str) -> Option<u64> {
    let digits = literal.replace('_', "");
    let (digits, radix) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0o") => (&digits[2..], 8),
        Some("0b") => (&digits[2..], 2),
        _ => (digits.as_str(), 10),
    };
    let digits = digits
        .strip_suffix("usize")
        .or_else(|| digits.strip_suffix("u64"))
        .unwrap_or(digits);
    u64::from_str_radix(digits, radix).ok()
}

fn boolean(name: &str, span: Span, value: &[TokenTree]) -> Result<TokenTree> {
    single(value)
        .filter(|token| matches!(token.to_string().as_str(), "true" | "false"))
        .ok_or_else(|| Mistake::over(value, span, format!("`{name}` takes `true` or `false`")))
}

fn flavor(name: &str, span: Span, value: &[TokenTree]) -> Result<Flavor> {
    match string(value).as_deref() {
        Some("current_thread") => Ok(Flavor::CurrentThread),
        Some("multi_thread") => Ok(Flavor::MultiThread),
        _ => Err(Mistake::over(
            value,
            span,
            format!("`{name}` takes \"current_thread\" or \"multi_thread\""),
        )),
    }
}

fn path(name: &str, span: Span, value: &[TokenTree]) -> Result<TokenStream> {
    let wrong = || {
        Mistake::over(
            value,
            span,
            format!(
                "`{name}` takes the path of the `runtime` crate as a string, such as \"my_runtime\""
            ),
        )
    };
    let written = string(value).ok_or_else(wrong)?;
    let names = written.strip_prefix("::").unwrap_or(&written);
    if !names.split("::").all(is_name) {
        return Err(wrong());
    }
    let tokens: TokenStream = written.parse().map_err(|_| wrong())?;
    let at = value.first().map_or(span, TokenTree::span);
    Ok(tokens
        .into_iter()
        .map(|mut token| {
            token.set_span(at);
            token
        })
        .collect())
}

fn is_name(text: &str) -> bool {
    let mut characters = text.strip_prefix("r#").unwrap_or(text).chars();
    characters
        .next()
        .is_some_and(|first| first == '_' || first.is_alphabetic())
        && characters.all(|c| c == '_' || c.is_alphanumeric())
}

/// The text of a plain or raw string literal without escapes.
fn string(value: &[TokenTree]) -> Option<String> {
    let TokenTree::Literal(literal) = single(value)? else {
        return None;
    };
    let written = literal.to_string();
    let text = written
        .strip_prefix('r')
        .unwrap_or(&written)
        .trim_matches('#');
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains('\\')).then(|| text.to_owned())
}

/// The one token of a value; a `macro_rules!` fragment wraps it in an invisible group.
fn single(value: &[TokenTree]) -> Option<TokenTree> {
    match value {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            single(&group.stream().into_iter().collect::<Vec<_>>())
        }
        [token] => Some(token.clone()),
        _ => None,
    }
}
