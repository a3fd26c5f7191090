//! No circle between the modules of a crate, and no module that uses a name through a module above it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use syn::visit::{self, Visit};
use syn::{Item, Meta, UseTree, Visibility};

use crate::iam::source::arguments_of;
use crate::tree::sources;

/// The crates whose rooms, which are the modules of the root with all that is in them, depend on each other in no circle either.
const ROOMS: [&str; 8] = [
    "shared/store/src/lib.rs",
    "shared/model/src/lib.rs",
    "functions/publish/src/lib.rs",
    "machine/src/lib.rs",
    "machine/delivery/src/lib.rs",
    "bank/src/lib.rs",
    "lab/src/lib.rs",
    "local/src/lib.rs",
];

/// The circles that may stay, each as the modules it goes through, with the reason.
const JUSTIFIED: [(&[&str], &str); 0] = [];

#[test]
fn no_modules_depend_on_each_other_in_a_circle() -> Result<()> {
    let mut circles = BTreeSet::new();
    let roots = sources("")?.into_iter().map(|(path, _)| path).filter(|path| is_root(path));
    for root in roots {
        circles.extend(Modules::read(&root)?.circles(usize::MAX));
    }
    let justified: BTreeSet<Vec<String>> =
        JUSTIFIED.iter().map(|(circle, _)| circle.iter().map(|&module| module.to_owned()).collect()).collect();
    let new: Vec<String> = circles.difference(&justified).map(|circle| circle.join(" -> ")).collect();
    assert!(new.is_empty(), "modules in a circle; move what both use to a module of its own: {new:#?}");
    let gone: Vec<_> = justified.difference(&circles).collect();
    assert!(gone.is_empty(), "no circles any more, remove them from the list: {gone:#?}");
    Ok(())
}

#[test]
fn no_module_leans_on_its_roof() -> Result<()> {
    let roots = sources("")?.into_iter().map(|(path, _)| path);
    let mut found = BTreeSet::new();
    for root in roots.filter(|path| is_root(path)) {
        let modules = Modules::read(&root)?;
        found.extend(modules.arrows_up());
        if ROOMS.iter().any(|room| root.ends_with(room)) {
            found.extend(modules.circles(1).into_iter().map(|circle| circle.join(" -> ")));
        }
    }
    assert!(
        found.is_empty(),
        "import from the module that defines the name, and let no two rooms use each other: {found:#?}"
    );
    Ok(())
}

#[test]
fn a_circle_is_found_and_a_re_export_is_not_one() {
    let circle = |files: &[(&[&str], &str)]| {
        modules_of(files).unwrap().circles(usize::MAX).into_iter().map(|circle| circle.join(" -> ")).collect::<Vec<_>>()
    };
    let root: (&[&str], _) = (&[], "mod a; mod b; mod c; pub use a::A; pub use b::B;");
    let b: (&[&str], _) = (&["b"], "use crate::c; pub struct B; impl B { fn c() { c::c() } }");
    let c: (&[&str], _) = (&["c"], "pub fn c() {} #[cfg(test)] mod tests { use super::super::a::A; }");
    assert_eq!(circle(&[root, b, c, (&["a"], "use super::B; pub struct A;")]), [""; 0]);
    let back: (&[&str], _) = (&["c"], "pub fn c() { drop(format!(\"{}\", crate::A::TEXT)) }");
    assert_eq!(circle(&[root, b, back, (&["a"], "use super::B; pub struct A;")]), ["it::a -> it::b -> it::c"]);
}

#[test]
fn an_arrow_up_is_found_and_so_are_rooms_in_a_circle() {
    let root: (&[&str], _) = (&[], "mod a; mod b; pub use a::deep::A; pub use b::B;");
    let a: (&[&str], _) = (&["a"], "pub mod deep; pub mod wide;");
    let deep: (&[&str], _) = (&["a", "deep"], "pub struct A;");
    let wide: (&[&str], _) = (&["a", "wide"], "use crate::b::B; fn b() -> B {}");
    let b: (&[&str], _) = (&["b"], "use crate::a::deep::A; pub struct B;");
    let modules = modules_of(&[root, a, deep, wide, b]).unwrap();
    assert_eq!(modules.arrows_up(), BTreeSet::new());
    assert_eq!(modules.circles(usize::MAX), BTreeSet::new());
    assert_eq!(modules.circles(1), BTreeSet::from([vec!["it::a".to_owned(), "it::b".to_owned()]]));
    let roof: (&[&str], _) = (&["a", "wide"], "fn b() -> crate::B {}");
    let modules = modules_of(&[root, a, deep, roof, b]).unwrap();
    assert_eq!(modules.arrows_up(), BTreeSet::from(["it::a::wide uses B of it".to_owned()]));
}

/// The modules of a crate of these files.
fn modules_of(files: &[(&[&str], &str)]) -> syn::Result<Modules> {
    let mut modules = Modules { name: "it".to_owned(), ..Modules::default() };
    for (path, text) in files {
        modules.enter(path.iter().map(|&name| name.to_owned()).collect(), &syn::parse_str(text)?);
    }
    Ok(modules)
}

/// Whether a file is the root of a crate: of a library, a program or a test.
fn is_root(path: &Path) -> bool {
    path.ends_with("lib.rs") || path.ends_with("main.rs")
}

/// A module's names from the root of its crate.
type Module = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
struct Modules {
    /// The crate's name in messages.
    name: String,
    /// The paths that each module mentions, from the root.
    mentions: BTreeMap<Module, BTreeSet<Module>>,
    /// The names that each module exports, and the modules behind them.
    exports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Modules {
    /// Reads a crate from its root.
    fn read(root: &Path) -> Result<Self> {
        let folder = root.parent().context("a root in no folder")?;
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let name = root.strip_prefix(&repository)?.with_extension("").display().to_string();
        let mut modules = Self { name, ..Self::default() };
        let mut files: Vec<(Module, PathBuf)> = vec![(Vec::new(), root.to_owned())];
        while let Some((module, path)) = files.pop() {
            let file = syn::parse_file(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
            for name in modules.enter(module.clone(), &file) {
                let inside: Module = module.iter().cloned().chain([name]).collect();
                let path = folder.join(inside.join("/")).with_extension("rs");
                files.push((inside, path));
            }
        }
        Ok(modules)
    }

    /// Adds a module. Returns the names of the modules that it declares in files of their own.
    fn enter(&mut self, module: Module, file: &syn::File) -> Vec<String> {
        let declares = |item: &Item| match item {
            Item::Mod(inner) if inner.content.is_none() && !is_for_tests(item) => Some(inner.ident.to_string()),
            _ => None,
        };
        let declared: Vec<String> = file.items.iter().filter_map(declares).collect();
        let mut paths =
            Paths { module: &module, declared: &declared, mentions: BTreeSet::new(), exports: BTreeMap::new() };
        paths.visit_file(file);
        let Paths { mentions, exports, .. } = paths;
        self.exports.insert(module.clone(), exports);
        self.mentions.insert(module, mentions);
        declared
    }

    /// The module that a path leads to. An exported name leads to where it is declared.
    fn reached(&self, path: &[String]) -> Module {
        self.followed(path, &mut Vec::new())
    }

    /// The same, with each module on the way that re-exports a name, and the name.
    fn followed(&self, path: &[String], shown: &mut Vec<(Module, String)>) -> Module {
        let mut module = Module::new();
        for (place, name) in path.iter().enumerate() {
            let inner: Module = module.iter().chain([name]).cloned().collect();
            if self.mentions.contains_key(&inner) {
                module = inner;
            } else if let Some(exported) = self.exports.get(&module).and_then(|exports| exports.get(name)) {
                shown.push((module.clone(), name.clone()));
                return self.followed(&[exported, &path[place + 1..]].concat(), shown);
            } else {
                break;
            }
        }
        module
    }

    /// The shortest way from each module back to itself, from its first module in alphabetical order. What is deeper than
    /// `depth` counts as its room.
    fn circles(&self, depth: usize) -> BTreeSet<Vec<String>> {
        let room = |module: &Module| module.iter().take(depth).cloned().collect::<Module>();
        let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, paths) in &self.mentions {
            let user = room(module);
            let used = paths.iter().map(|path| room(&self.reached(path))).filter(|used| *used != user);
            uses.entry(user.clone()).or_default().extend(used.collect::<Vec<_>>());
        }
        let circles = uses.keys().filter_map(|module| {
            let mut circle = way_back(&uses, module)?;
            let first = circle.iter().enumerate().min_by_key(|(_, module)| *module)?.0;
            circle.rotate_left(first);
            Some(circle.iter().map(|module| self.named(module)).collect())
        });
        circles.collect()
    }

    /// The modules that use a name through a re-export of a module above them.
    fn arrows_up(&self) -> BTreeSet<String> {
        let mut arrows = BTreeSet::new();
        for (module, paths) in &self.mentions {
            let mut shown = Vec::new();
            paths.iter().for_each(|path| drop(self.followed(path, &mut shown)));
            let above = shown.iter().filter(|(above, _)| above.len() < module.len() && module.starts_with(above));
            arrows.extend(
                above.map(|(above, name)| format!("{} uses {name} of {}", self.named(module), self.named(above))),
            );
        }
        arrows
    }

    fn named(&self, module: &Module) -> String {
        [std::slice::from_ref(&self.name), module.as_slice()].concat().join("::")
    }
}

/// The shortest way from a module back to itself.
fn way_back(uses: &BTreeMap<Module, BTreeSet<Module>>, start: &Module) -> Option<Vec<Module>> {
    let mut ways = VecDeque::from([vec![start.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in way.last().and_then(|last| uses.get(last))? {
            if next == start {
                return Some(way);
            }
            if seen.insert(next.clone()) {
                ways.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

/// Collects the paths that a module mentions, without those of its unit tests.
struct Paths<'m> {
    module: &'m Module,
    declared: &'m [String],
    mentions: BTreeSet<Module>,
    exports: BTreeMap<String, Module>,
}

impl Paths<'_> {
    /// A path from the root of the crate; `None` for one that leads out of it or begins with an imported name.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.module, rest].concat()),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                let parent = self.module.len().checked_sub(up)?;
                Some([&self.module[..parent], &path[up..]].concat())
            }
            name if self.declared.iter().any(|declared| declared == name) => Some([self.module, path].concat()),
            _ => None,
        }
    }

    /// Every path of a `use`, with the name that it gets.
    fn visit_tree(&mut self, before: &[String], tree: &UseTree, is_exported: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => return self.visit_tree(&with(&path.ident), &path.tree, is_exported),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.visit_tree(before, tree, is_exported));
            }
            UseTree::Glob(_) => (before.to_vec(), None),
            UseTree::Name(name) if name.ident == "self" => (before.to_vec(), before.last().cloned()),
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(renamed) => (with(&renamed.ident), Some(renamed.rename.to_string())),
        };
        let Some(path) = self.absolute(&path) else { return };
        if let (true, Some(name)) = (is_exported, name) {
            // A module inside of this one is only re-exported here.
            let is_inside = path.starts_with(self.module);
            self.exports.insert(name, path.clone());
            if is_inside {
                return;
            }
        }
        self.mentions.insert(path);
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.visit_tree(&[], &item.tree, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // One name alone is a variable, a type or a function of the module's own.
        if names.len() > 1 {
            self.mentions.extend(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        for argument in arguments_of(called).into_iter().flatten() {
            // The arguments are parsed here and live no longer, so that they are visited by a visitor of their own.
            let mut inside = Paths { mentions: BTreeSet::new(), exports: BTreeMap::new(), ..*self };
            inside.visit_expr(&argument);
            self.mentions.extend(inside.mentions);
        }
    }
}

/// Whether an item is compiled for unit tests only.
fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}
