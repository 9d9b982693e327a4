//! The changes that can be made to a source: one walk over its syntax tree.

use std::ops::Range;

use anyhow::{Result, anyhow};
use proc_macro2::{Literal, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprMatch, ExprMethodCall, ImplItem, ImplItemFn, Item,
    ItemFn, ItemImpl, ItemTrait, Lit, LitInt, LitStr, Macro, Pat, Path, Signature, Stmt, Token, TraitItem,
    TraitItemFn, Type, UnOp,
};

use super::change::{Change, Kind, SWITCH};
use super::values;

/// Macros whose arguments are expressions, one of which may be a text with places for the others.
const EXPRESSION_MACROS: &[&str] = &[
    "anyhow", "bail", "ensure", "eprint", "eprintln", "format", "print", "println", "vec", "write", "writeln",
];

/// Methods, and those that a slip of the pen puts in their place.
const TWINS: &[(&str, &str)] = &[
    ("is_some", "is_none"),
    ("is_ok", "is_err"),
    ("any", "all"),
    ("min", "max"),
    ("first", "last"),
    ("starts_with", "ends_with"),
    ("min_by_key", "max_by_key"),
];

/// The beginnings of methods that say yes or no.
const QUESTIONS: &[&str] = &["is_", "has_", "contains"];

/// The changes to one source, and the modules that it declares for tests only.
#[derive(Default)]
pub(super) struct Found {
    pub(super) changes: Vec<Change>,
    pub(super) test_modules: Vec<String>,
}

/// All changes to `text`, in order of their place. Tests, constants, patterns and types stay as they are.
///
/// # Errors
/// When `text` is not Rust.
pub(super) fn changes(text: &str) -> Result<Found> {
    let file = syn::parse_file(text).map_err(|error| anyhow!("{error}"))?;
    let mut finder = Finder { text, owner: String::new(), function: String::new(), found: Found::default() };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'t> {
    text: &'t str,
    /// The type whose methods are walked over, or nothing.
    owner: String,
    function: String,
    found: Found,
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn add(&mut self, kind: Kind, range: Range<usize>, before: String, after: &'static str, about: String) {
        let line = 1 + self.text[..range.start].matches('\n').count();
        let function = self.function.clone();
        self.found.changes.push(Change { kind, function, line, about, range, before, after });
    }

    /// The value of `node` becomes that of `changed`.
    fn replace(&mut self, kind: Kind, node: &impl Spanned, changed: &str, about: String) {
        let before = format!("(if {SWITCH} {{{changed}}} else {{");
        self.add(kind, node.span().byte_range(), before, "})", about);
    }

    /// [`Finder::replace`] where the words for people are the code on both sides.
    fn exchange(&mut self, kind: Kind, node: &impl Spanned, changed: &str) {
        let about = format!("`{}` -> `{}`", brief(self.source(node)), brief(changed));
        self.replace(kind, node, changed, about);
    }

    fn binary(&mut self, binary: &ExprBinary) {
        if has_let(&binary.left) || has_let(&binary.right) {
            return;
        }
        let (kind, others) = operators(&binary.op);
        let (left, right) = (self.source(&binary.left).to_owned(), self.source(&binary.right).to_owned());
        let about = format!("`{}` with", brief(self.source(binary)));
        for other in others {
            let changed = if other.ends_with('=') && kind == Kind::Arithmetic {
                format!("{left} {other} ({right})")
            } else {
                format!("({left}) {other} ({right})")
            };
            self.replace(kind, binary, &changed, format!("{about} {other}"));
        }
    }

    fn literal(&mut self, literal: &Lit) {
        match literal {
            Lit::Bool(flag) => self.exchange(Kind::Flag, flag, if flag.value { "false" } else { "true" }),
            Lit::Int(number) => {
                if let Some(next) = next(number) {
                    self.exchange(Kind::Integer, number, &next);
                }
            }
            Lit::Str(_) | Lit::ByteStr(_) => {
                if let Some(other) = other_text(self.source(literal)) {
                    self.exchange(Kind::Text, literal, &other);
                }
            }
            _ => {}
        }
    }

    fn method(&mut self, call: &ExprMethodCall) {
        let name = call.method.to_string();
        let twin = TWINS.iter().find_map(|&(one, other)| match name.as_str() {
            name if name == one => Some(other),
            name if name == other => Some(one),
            _ => None,
        });
        if let Some(twin) = twin {
            let place = call.method.span().byte_range();
            let all = call.span().byte_range();
            let changed = [&self.text[all.start..place.start], twin, &self.text[place.end..all.end]].concat();
            let about = format!("`{}` with {twin}", brief(self.source(call)));
            self.replace(Kind::Method, call, &changed, about);
        } else if QUESTIONS.iter().any(|begin| name.starts_with(begin)) {
            self.negate(call);
        }
    }

    fn negate(&mut self, node: &impl Spanned) {
        let changed = format!("!({})", self.source(node));
        let about = format!("negate `{}`", brief(self.source(node)));
        self.replace(Kind::Method, node, &changed, about);
    }

    /// The condition becomes each of `values`.
    fn condition(&mut self, kind: Kind, condition: &Expr, values: &[&str]) {
        if has_let(condition) {
            return;
        }
        for value in values {
            let about = format!("`{}` always {value}", brief(self.source(condition)));
            self.replace(kind, condition, value, about);
        }
    }

    fn arms(&mut self, matching: &ExprMatch) {
        let catches_all = |arm: &Arm| matches!(&arm.pat, Pat::Wild(_));
        let Some((last, arms)) = matching.arms.split_last() else { return };
        for arm in &matching.arms {
            if let Pat::Guard(guarded) = &arm.pat {
                self.condition(Kind::Arm, &guarded.guard, &["true", "false"]);
            }
        }
        if catches_all(last) {
            for arm in arms.iter().filter(|arm| !matches!(arm.pat, Pat::Guard(_))) {
                let end = arm.pat.span().byte_range().end;
                let about = format!("without the arm `{}`", brief(self.source(&arm.pat)));
                self.add(Kind::Arm, end..end, format!(" if !{SWITCH}"), "", about);
            }
        }
    }

    fn expression_macro(&mut self, one: &Macro) {
        let name = last_name(&one.path);
        if name == "matches" {
            return self.negate(one);
        }
        if !EXPRESSION_MACROS.contains(&name.as_str()) {
            return;
        }
        let text = first_text(&one.tokens);
        if let Some(literal) = &text
            && let Some(other) = other_text(self.source(literal))
        {
            let (place, all) = (literal.span().byte_range(), one.span().byte_range());
            let changed =
                [&self.text[all.start..place.start], &other, &self.text[place.end..all.end]].concat();
            let about = format!("`{}` -> `{}`", brief(self.source(literal)), brief(&other));
            self.replace(Kind::Text, one, &changed, about);
        }
        let arguments = one.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        for argument in arguments.into_iter().flatten() {
            let value = match &argument {
                Expr::Assign(named) => &named.right,
                other => other,
            };
            if text.as_ref().is_none_or(|text| text.span().byte_range() != value.span().byte_range()) {
                self.visit_expr(value);
            }
        }
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() {
            return;
        }
        let outer = self.function.clone();
        let separator = if self.owner.is_empty() { "" } else { "::" };
        self.function = format!("{}{separator}{}", self.owner, signature.ident);
        let body = self.source(block).trim_matches(['{', '}']).trim().to_owned();
        if !body.is_empty() {
            let begin = block.span().byte_range().start + 1;
            for value in values::of(&signature.output).into_iter().filter(|value| *value != body) {
                let about = format!("the function is `{value}`");
                self.add(
                    Kind::Function,
                    begin..begin,
                    format!("if {SWITCH} {{ return {value}; }}"),
                    "",
                    about,
                );
            }
        }
        self.visit_block(block);
        self.function = outer;
    }

    fn statement(&mut self, statement: &Stmt) {
        let Stmt::Expr(expression, Some(_)) = statement else { return };
        let is_done_for_its_effect = matches!(
            expression,
            Expr::Assign(_) | Expr::Binary(_) | Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_)
        );
        if is_done_for_its_effect {
            let about = format!("delete `{}`", brief(self.source(statement)));
            let range = statement.span().byte_range();
            self.add(Kind::Statement, range, format!("if !{SWITCH} {{ "), " }", about);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(module) if is_test(&module.attrs) => {
                self.found.test_modules.push(module.ident.to_string());
            }
            Item::Fn(_) | Item::Impl(_) | Item::Mod(_) | Item::Trait(_) => visit::visit_item(self, item),
            _ => {}
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            let owner = std::mem::take(&mut self.owner);
            self.function(&item.sig, &item.block);
            self.owner = owner;
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test(&item.attrs) {
            let owner = match &*item.self_ty {
                Type::Path(path) => last_name(&path.path),
                _ => String::new(),
            };
            let outer = std::mem::replace(&mut self.owner, owner);
            visit::visit_item_impl(self, item);
            self.owner = outer;
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        let outer = std::mem::replace(&mut self.owner, item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(_) = item {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(_) = item {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.statement(statement);
        match statement {
            Stmt::Macro(one) => self.expression_macro(&one.mac),
            other => visit::visit_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::If(branch) => self.condition(Kind::Condition, &branch.cond, &["true", "false"]),
            Expr::Lit(literal) => self.literal(&literal.lit),
            Expr::Macro(one) => self.expression_macro(&one.mac),
            Expr::Match(matching) => self.arms(matching),
            Expr::MethodCall(call) => self.method(call),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let operand = self.source(&unary.expr).to_owned();
                self.exchange(Kind::Negation, unary, &operand);
            }
            Expr::While(repeated) => self.condition(Kind::Condition, &repeated.cond, &["false"]),
            _ => {}
        }
        match expression {
            // The message can only be seen when a promise of the code is broken.
            Expr::MethodCall(call) if call.method == "expect" => self.visit_expr(&call.receiver),
            Expr::Repeat(repeat) => self.visit_expr(&repeat.expr),
            Expr::Const(_) => {}
            other => visit::visit_expr(self, other),
        }
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Guard(guarded) = pattern {
            self.visit_expr(&guarded.guard);
        }
    }

    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_path(&mut self, _: &'ast Path) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}
}

/// The kind of an operator, and what stands in its place.
fn operators(operator: &BinOp) -> (Kind, &'static [&'static str]) {
    match operator {
        BinOp::Lt(_) => (Kind::Comparison, &["<="]),
        BinOp::Le(_) => (Kind::Comparison, &["<"]),
        BinOp::Gt(_) => (Kind::Comparison, &[">="]),
        BinOp::Ge(_) => (Kind::Comparison, &[">"]),
        BinOp::Eq(_) => (Kind::Comparison, &["!="]),
        BinOp::Ne(_) => (Kind::Comparison, &["=="]),
        BinOp::And(_) => (Kind::Logic, &["||"]),
        BinOp::Or(_) => (Kind::Logic, &["&&"]),
        BinOp::Add(_) => (Kind::Arithmetic, &["-", "*"]),
        BinOp::Sub(_) => (Kind::Arithmetic, &["+"]),
        BinOp::Mul(_) => (Kind::Arithmetic, &["+", "/"]),
        BinOp::Div(_) => (Kind::Arithmetic, &["*"]),
        BinOp::Rem(_) => (Kind::Arithmetic, &["/"]),
        BinOp::BitAnd(_) => (Kind::Arithmetic, &["|"]),
        BinOp::BitOr(_) => (Kind::Arithmetic, &["&"]),
        BinOp::Shl(_) => (Kind::Arithmetic, &[">>"]),
        BinOp::Shr(_) => (Kind::Arithmetic, &["<<"]),
        BinOp::AddAssign(_) => (Kind::Arithmetic, &["-=", "*="]),
        BinOp::SubAssign(_) => (Kind::Arithmetic, &["+="]),
        BinOp::MulAssign(_) => (Kind::Arithmetic, &["+="]),
        BinOp::BitAndAssign(_) => (Kind::Arithmetic, &["|="]),
        BinOp::BitOrAssign(_) => (Kind::Arithmetic, &["&="]),
        _ => (Kind::Arithmetic, &[]),
    }
}

/// Whether a condition binds names, which only `if`, `while` and guards may.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Whether an item is there in tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let conditions =
            attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        let named = |name| attribute.path().is_ident(name);
        named("test") || named("cfg") && (conditions == "test" || conditions.starts_with("all (test"))
    })
}

fn last_name(path: &Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// The first text among the arguments of a macro.
fn first_text(tokens: &TokenStream) -> Option<Literal> {
    tokens.clone().into_iter().find_map(|token| match token {
        TokenTree::Literal(literal) if syn::parse_str::<LitStr>(&literal.to_string()).is_ok() => {
            Some(literal)
        }
        _ => None,
    })
}

/// The literal of the next number.
fn next(number: &LitInt) -> Option<String> {
    let value: u128 = number.base10_parse().ok()?;
    Some(format!("{}{}", value.checked_add(1)?, number.suffix()))
}

/// The literal of another text: bytes of the same length, characters with one more.
fn other_text(literal: &str) -> Option<String> {
    let begin = literal.find('"')? + 1;
    let (start, rest) = literal.split_at(begin);
    if !start.starts_with('b') {
        return Some(format!("{start}¤{rest}"));
    }
    let first = rest.chars().next().filter(char::is_ascii_alphanumeric)?;
    let other = if first == 'x' { 'y' } else { 'x' };
    Some(format!("{start}{other}{}", &rest[1..]))
}

/// So many characters of code are shown.
const SHOWN_CHARS: usize = 70;

/// The beginning of `code` on one line.
fn brief(code: &str) -> String {
    let words: Vec<&str> = code.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
