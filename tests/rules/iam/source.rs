//! The store's source as a tree: its methods, the functions that make keys, and the meanings of expressions.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Block, Expr, FnArg, Item, Lit, Pat, Signature, Token, Visibility};

use super::meaning::Meaning;

/// A function or a method.
pub(super) struct Function {
    pub(super) is_public: bool,
    pub(super) body: Block,
    /// The file that it is in.
    file: usize,
    /// The arguments without `self`.
    arguments: Vec<String>,
    /// The values of its variables, by name, in the order of the text.
    variables: Vec<(String, Expr)>,
}

/// All of the store's files.
#[derive(Default)]
pub(super) struct Sources {
    /// The methods of `Store`.
    pub(super) methods: BTreeMap<String, Function>,
    functions: BTreeMap<(usize, String), Function>,
    constants: BTreeMap<(usize, String), Expr>,
}

impl Sources {
    pub(super) fn parse(files: &[syn::File]) -> Self {
        let mut sources = Self::default();
        for (number, file) in files.iter().enumerate() {
            for item in &file.items {
                sources.enter(number, item);
            }
        }
        sources
    }

    fn enter(&mut self, file: usize, item: &Item) {
        match item {
            Item::Fn(item) => {
                let function = Function::new(file, &item.vis, &item.sig, &item.block);
                self.functions.insert((file, item.sig.ident.to_string()), function);
            }
            Item::Const(item) => {
                self.constants.insert((file, item.ident.to_string()), (*item.expr).clone());
            }
            Item::Impl(item) if is_of_store(item) => {
                for member in &item.items {
                    if let syn::ImplItem::Fn(member) = member {
                        let method = Function::new(file, &member.vis, &member.sig, &member.block);
                        self.methods.insert(member.sig.ident.to_string(), method);
                    }
                }
            }
            _ => {}
        }
    }

    /// The name of the index that `CONSTANT.name` means.
    pub(super) fn index(&self, expression: &Expr) -> Result<String> {
        let constant = match expression {
            Expr::Field(field) => last_name(&field.base),
            _ => None,
        };
        let constant = constant.context("an index that is not a constant of the schema")?;
        let (_, index) = self.constants.iter().find(|((_, name), _)| *name == constant).context(constant)?;
        let Expr::Struct(index) = index else { anyhow::bail!("not an index") };
        let is_name = |member: &syn::Member| matches!(member, syn::Member::Named(name) if name == "name");
        let name = index.fields.iter().find(|field| is_name(&field.member)).context("an index without a name")?;
        text_of(&name.expr).context("a name that is not a literal")
    }

    /// The meaning of an expression in a function: all that it mentions, with its variables and functions of keys.
    pub(super) fn meaning(&self, function: &Function, expression: &Expr) -> Meaning {
        let seen = RefCell::default();
        let mut mentions = Mentions { sources: self, function, seen: &seen, found: Meaning::default() };
        mentions.visit_expr(expression);
        mentions.found
    }

    /// The function of this name in a file: its own before another's.
    fn function(&self, file: usize, name: &str) -> Option<&Function> {
        let own = self.functions.get(&(file, name.to_owned()));
        own.or_else(|| self.functions.iter().find(|((_, known), _)| known == name).map(|(_, function)| function))
    }

    /// The text of a file's constant.
    fn constant(&self, file: usize, expression: &Expr) -> Option<String> {
        text_of(self.constants.get(&(file, last_name(expression)?))?)
    }
}

impl Function {
    fn new(file: usize, visibility: &Visibility, signature: &Signature, body: &Block) -> Self {
        let arguments = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(argument) => Some(names_in(&argument.pat).into_iter().next().unwrap_or_default()),
            FnArg::Receiver(_) => None,
        });
        let mut variables = Variables::default();
        variables.visit_block(body);
        let is_public = matches!(visibility, Visibility::Public(_));
        Self { is_public, body: body.clone(), file, arguments: arguments.collect(), variables: variables.0 }
    }
}

/// Collects what variables are set to.
#[derive(Default)]
struct Variables(Vec<(String, Expr)>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init {
            self.0.extend(names_in(&local.pat).into_iter().map(|name| (name, (*init.expr).clone())));
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_for_loop(&mut self, each: &'ast syn::ExprForLoop) {
        self.0.extend(names_in(&each.pat).into_iter().map(|name| (name, (*each.expr).clone())));
        visit::visit_expr_for_loop(self, each);
    }
}

/// Collects all that an expression mentions.
struct Mentions<'s> {
    sources: &'s Sources,
    function: &'s Function,
    /// The functions and variables that were visited already.
    seen: &'s RefCell<BTreeSet<String>>,
    found: Meaning,
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let (Expr::Field(base), syn::Member::Named(table)) = (&*field.base, &field.member)
            && matches!(&base.member, syn::Member::Named(name) if name == "tables")
        {
            self.found.tables.insert(table.to_string());
        }
        visit::visit_expr_field(self, field);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let function = last_name(&call.func).and_then(|name| self.sources.function(self.function.file, &name));
        if let Some(pattern) = function.and_then(partition_pattern) {
            let given = call.args.first().and_then(|argument| self.sources.constant(self.function.file, argument));
            let known = given.and_then(|given| Some(format!("{}{given}", pattern.strip_suffix('*')?)));
            self.found.keys.insert(known.unwrap_or(pattern));
        } else {
            self.visit_expr(&call.func);
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let Some(name) = path.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        if path.path.segments.len() == 1 {
            self.visit_variable(&name);
        }
        if let Some(function) = self.sources.function(self.function.file, &name) {
            if let Some(pattern) = partition_pattern(function) {
                self.found.keys.insert(pattern);
            } else if self.seen.borrow_mut().insert(format!("{}::{name}", function.file)) {
                let mut inside =
                    Mentions { sources: self.sources, function, seen: self.seen, found: Meaning::default() };
                inside.visit_block(&function.body);
                // The function's arguments are in the call.
                self.found.add(Meaning { arguments: BTreeSet::new(), ..inside.found });
            }
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        for argument in arguments_of(called).into_iter().flatten() {
            Mentions::visit_expr(self, &argument);
        }
    }
}

impl Mentions<'_> {
    fn visit_variable(&mut self, name: &str) {
        let (function, sources) = (self.function, self.sources);
        self.found.arguments.extend(function.arguments.iter().position(|argument| argument == name));
        let in_function = std::ptr::from_ref(function).addr();
        if self.seen.borrow_mut().insert(format!("{in_function}.{name}")) {
            for (_, set_to) in function.variables.iter().filter(|(variable, _)| variable == name) {
                let mut inside = Mentions { sources, function, seen: self.seen, found: Meaning::default() };
                inside.visit_expr(set_to);
                self.found.add(inside.found);
            }
        }
    }
}

/// The pattern of the partition keys that a function makes: its format text up to the first placeholder, or one key.
fn partition_pattern(function: &Function) -> Option<String> {
    if let [syn::Stmt::Expr(Expr::MethodCall(call), None)] = &function.body.stmts[..] {
        return text_of(&call.receiver).filter(|key| key.bytes().all(|byte| byte.is_ascii_uppercase()));
    }
    let [syn::Stmt::Macro(syn::StmtMacro { mac, .. })] = &function.body.stmts[..] else {
        let [syn::Stmt::Expr(Expr::Macro(expression), None)] = &function.body.stmts[..] else { return None };
        return pattern_of(&expression.mac);
    };
    pattern_of(mac)
}

fn pattern_of(format: &syn::Macro) -> Option<String> {
    let arguments = arguments_of(format)?;
    let text = text_of(arguments.first().filter(|_| format.path.is_ident("format"))?)?;
    let (beginning, _) = text.split_once('{')?;
    beginning.ends_with('#').then(|| format!("{beginning}*"))
}

/// A macro's arguments, if they are expressions.
pub(crate) fn arguments_of(called: &syn::Macro) -> Option<Punctuated<Expr, Token![,]>> {
    called.parse_body_with(Punctuated::parse_terminated).ok()
}

/// The text of a literal.
pub(super) fn text_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

pub(super) fn is_of_store(item: &syn::ItemImpl) -> bool {
    matches!(&*item.self_ty, syn::Type::Path(path) if path.path.is_ident("Store"))
}

/// The last name of a path.
fn last_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// The names that a pattern binds.
fn names_in(pattern: &Pat) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
            self.0.push(pattern.ident.to_string());
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}
