//! The attribute that makes an asynchronous `main` a recorded program.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser as _;
use syn::{Error, LitInt, LitStr, Path, Result};

/// The arguments of the attribute.
struct Arguments {
    is_multi_thread: bool,
    worker_threads: Option<LitInt>,
    name: LitStr,
    home: Path,
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let mut arguments = Self {
            is_multi_thread: true,
            worker_threads: None,
            name: LitStr::new("main", Span::call_site()),
            home: syn::parse_str("::borehole_tokio")?,
        };
        syn::meta::parser(|meta| arguments.set(&meta)).parse2(tokens)?;
        match &arguments.worker_threads {
            Some(number) if !arguments.is_multi_thread => {
                Err(Error::new(number.span(), "worker_threads needs the flavor multi_thread"))
            }
            _ => Ok(arguments),
        }
    }

    fn set(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("flavor") {
            let flavor: LitStr = meta.value()?.parse()?;
            self.is_multi_thread = match flavor.value().as_str() {
                "multi_thread" => true,
                "current_thread" => false,
                found => {
                    let message = format!("expected one of multi_thread, current_thread, found \"{found}\"");
                    return Err(Error::new(flavor.span(), message));
                }
            };
        } else if meta.path.is_ident("worker_threads") {
            let number: LitInt = meta.value()?.parse()?;
            if number.base10_parse::<usize>()? == 0 {
                return Err(Error::new(number.span(), "expected at least one worker thread"));
            }
            self.worker_threads = Some(number);
        } else if meta.path.is_ident("name") {
            self.name = meta.value()?.parse()?;
        } else if meta.path.is_ident("crate") {
            self.home = meta.value()?.parse::<LitStr>()?.parse()?;
        } else {
            return Err(meta.error("unknown argument: expected flavor, worker_threads, name or crate"));
        }
        Ok(())
    }

    fn builder(&self) -> TokenStream {
        let tokio = self.tokio();
        if !self.is_multi_thread {
            return quote! { #tokio::runtime::Builder::new_current_thread() };
        }
        let threads = self.worker_threads.as_ref().map(|number| quote! { .worker_threads(#number) });
        quote! { #tokio::runtime::Builder::new_multi_thread() #threads }
    }

    fn tokio(&self) -> TokenStream {
        let home = &self.home;
        quote! { #home::__private::tokio }
    }
}

/// Rewrites `async fn main() { … }` to a function that runs the body in a recorded runtime.
pub(crate) fn main(arguments: TokenStream, function: TokenStream) -> TokenStream {
    rewrite(arguments, function.clone()).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        // The function stays, so that the compiler does not say that there is none as well.
        quote! { #error #function }
    })
}

fn rewrite(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let (head, body) = split(function)?;
    let (home, name, builder) = (&arguments.home, &arguments.name, arguments.builder());
    Ok(quote! {
        #(#head)* {
            #home::__private::main(#name, #builder.enable_all(), async #body)
        }
    })
}

/// The tokens of a function before its body, without `async`, and the body.
fn split(function: TokenStream) -> Result<(Vec<TokenTree>, Group)> {
    let mut head: Vec<_> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = head.pop().filter(is_body) else {
        return Err(Error::new(Span::call_site(), "expected a function with a body"));
    };
    let is_async = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == "async");
    let Some(place) = head.iter().position(is_async) else {
        return Err(Error::new(function_name(&head), "expected an async function"));
    };
    head.remove(place);
    let has_arguments = head.iter().any(|token| {
        matches!(token, TokenTree::Group(group)
            if group.delimiter() == Delimiter::Parenthesis && !group.stream().is_empty())
    });
    if has_arguments {
        return Err(Error::new(function_name(&head), "expected a function without arguments"));
    }
    Ok((head, body))
}

fn is_body(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// The place of the function's name; that of the attribute if there is none.
fn function_name(head: &[TokenTree]) -> Span {
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if *ident == Ident::new("fn", Span::call_site()));
    let name = head.iter().skip_while(|token| !is_fn(token)).nth(1);
    name.map_or_else(Span::call_site, TokenTree::span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(arguments: TokenStream) -> String {
        let function = quote! { #[allow(x)] pub async fn main() -> Result<(), E> { f().await } };
        main(arguments, function).to_string()
    }

    #[test]
    fn a_main_keeps_its_attributes_and_its_result() {
        let expected = quote! {
            #[allow(x)] pub fn main() -> Result<(), E> {
                ::borehole_tokio::__private::main(
                    "main",
                    ::borehole_tokio::__private::tokio::runtime::Builder::new_multi_thread().enable_all(),
                    async { f().await }
                )
            }
        };
        assert_eq!(rewritten(quote! {}), expected.to_string());
        let arguments =
            quote! { flavor = "multi_thread", worker_threads = 3, name = "web", crate = "::renamed" };
        let found = rewritten(arguments);
        assert!(found.contains("worker_threads (3)") && found.contains("\"web\""), "{found}");
        assert!(
            found.contains(":: renamed :: __private :: main") && !found.contains("borehole_tokio"),
            "{found}"
        );
        assert!(rewritten(quote! { flavor = "current_thread" }).contains("new_current_thread"));
    }

    #[test]
    fn what_cannot_be_run_is_refused_and_kept() {
        let refused = |arguments, function| {
            let found = main(arguments, function).to_string();
            assert!(found.contains("compile_error"), "{found}");
            found
        };
        let function = || quote! { async fn main() {} };
        assert!(refused(quote! { flavour = "x" }, function()).contains("unknown argument"));
        assert!(refused(quote! { flavor = "x" }, function()).contains("expected one of multi_thread"));
        assert!(refused(quote! { worker_threads = 0 }, function()).contains("at least one"));
        let single = quote! { flavor = "current_thread", worker_threads = 2 };
        assert!(refused(single, function()).contains("needs the flavor"));
        assert!(refused(quote! {}, quote! { fn main() {} }).contains("expected an async function"));
        assert!(refused(quote! {}, quote! { async fn main(x: u8) {} }).contains("without arguments"));
        assert!(refused(quote! {}, quote! { struct S; }).contains("with a body"));
    }
}
