//! A mistake in what the user wrote, shown at the token where it stands.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

pub(crate) type Result<T> = std::result::Result<T, Mistake>;

/// What is wrong and the tokens it is about, from the first to the last.
pub(crate) struct Mistake {
    message: String,
    first: Span,
    last: Span,
}

impl Mistake {
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        Mistake {
            message: message.into(),
            first: span,
            last: span,
        }
    }

    /// Underlines all of `tokens`, or `otherwise` where there are none.
    pub(crate) fn over(
        tokens: &[TokenTree],
        otherwise: Span,
        message: impl Into<String>,
    ) -> Mistake {
        Mistake {
            message: message.into(),
            first: tokens.first().map_or(otherwise, TokenTree::span),
            last: tokens.last().map_or(otherwise, TokenTree::span),
        }
    }

    /// `::core::compile_error! { "message" }`. The compiler underlines from the first token of a
    /// macro call to its last, so these carry the spans of the faulty code.
    pub(crate) fn into_compile_error(self) -> TokenStream {
        let mut text = Literal::string(&self.message);
        text.set_span(self.last);
        let mut braces = Group::new(
            Delimiter::Brace,
            TokenStream::from(TokenTree::Literal(text)),
        );
        braces.set_span(self.last);

        let punct = |symbol, spacing| {
            let mut punct = Punct::new(symbol, spacing);
            punct.set_span(self.first);
            TokenTree::Punct(punct)
        };
        let ident = |name| TokenTree::Ident(Ident::new(name, self.first));
        TokenStream::from_iter([
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            ident("core"),
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            ident("compile_error"),
            punct('!', Spacing::Alone),
            TokenTree::Group(braces),
        ])
    }
}
