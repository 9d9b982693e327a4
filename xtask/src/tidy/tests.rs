//! One small bad tree per rule, and a good one.

use super::tree::{Dependency, DependencyPurpose, Package, ProjectTree, SourceFile, TextFile, folder_of};
use super::{RULES, rules};

/// A tree that every rule accepts.
fn good() -> ProjectTree {
    let mut tree =
        ProjectTree { machine_paths: vec!["/somebody/checkout".to_owned()], ..ProjectTree::default() };
    depend(&mut tree, "borehole-wire", &[]);
    let formats = [("borehole-trc", DependencyPurpose::Product), ("hashbrown", DependencyPurpose::Product)];
    depend(&mut tree, "borehole-formats", &formats);
    depend(
        &mut tree,
        "borehole-cli",
        &[("clap", DependencyPurpose::Product), ("anything", DependencyPurpose::Tests)],
    );
    document(&mut tree, "README.md", "# Borehole\n");
    document(&mut tree, "ARCHITECTURE.md", "# Architecture\n");
    document(&mut tree, "Cargo.toml", GOOD_MANIFEST);
    document(&mut tree, "crates/wire/Cargo.toml", "[dependencies]\nmemchr.workspace = true\n");
    source(
        &mut tree,
        "crates/formats/src/lib.rs",
        "#![forbid(unsafe_code)]\npub mod rbt;\npub use rbt::Reader;\n",
    );
    source(&mut tree, "crates/formats/src/folded/mod.rs", "");
    source(&mut tree, "crates/formats/src/rbt/import.rs", GOOD_IMPORT);
    source(&mut tree, "crates/formats/src/rbt/read.rs", GOOD_READ);
    source(
        &mut tree,
        "crates/formats/tests/it/main.rs",
        "fn f() { println!(\"{:?}\", std::env::var(\"A\").unwrap()); }",
    );
    source(
        &mut tree,
        "crates/borehole/src/mapped.rs",
        "use memmap2::Mmap;\nfn f() { unsafe { Mmap::map() } }",
    );
    source(&mut tree, "crates/process/src/memory.rs", "fn f() { unsafe { g() } }");
    source(
        &mut tree,
        "crates/cli/src/main.rs",
        "#![forbid(unsafe_code)]\nfn main() { println!(\"{}\", 1); std::process::exit(2) }",
    );
    tree
}

const GOOD_MANIFEST: &str = "[workspace.dependencies]
borehole-wire = { path = \"borehole-wire\" }

# JSON.
serde = { version = \"1\", default-features = false }
serde_json = { version = \"1\", default-features = false }

[profile.release]
debug = 1
";

const GOOD_IMPORT: &str = "use borehole_model::{Sample, Tables};
use crate::rbt::read::Reader;
use crate::{Error, error::Position};
use super::layout;
fn import() -> Result<u8, Error> { reader.expect(\"says why\") }
#[cfg(test)]
mod tests {
    use crate::folded;
    #[test]
    fn reads() { let text = std::fs::read(\"x\").unwrap(); println!(\"{text}\"); }
}
";

const GOOD_READ: &str = "//! Not std::fs, and `x.unwrap()` only in a comment.
use borehole_wire::Cursor;
fn read() { let text = \"std::time::Instant::now()\"; }
";

/// Makes the package depend on these, and name them in a source.
fn depend(tree: &mut ProjectTree, name: &str, dependencies: &[(&str, DependencyPurpose)]) {
    tree.packages.retain(|package| package.name != name);
    tree.packages.push(package(name, dependencies));
    for (folder, wanted) in [("src", DependencyPurpose::Product), ("tests/it", DependencyPurpose::Tests)] {
        let names = dependencies.iter().filter(|(_, purpose)| *purpose == wanted);
        let names: Vec<_> = names.map(|(name, _)| name.replace('-', "_")).collect();
        source(tree, &format!("{}/{folder}/uses.rs", folder_of(name)), &format!("// {}\n", names.join(" ")));
    }
}

fn package(name: &str, dependencies: &[(&str, DependencyPurpose)]) -> Package {
    let dependencies =
        dependencies.iter().map(|&(name, purpose)| Dependency { name: name.to_owned(), purpose }).collect();
    Package { name: name.to_owned(), dependencies }
}

fn source(tree: &mut ProjectTree, path: &str, text: &str) {
    tree.sources.retain(|source| source.path != path);
    tree.sources.push(SourceFile::new(path, text.to_owned()).unwrap());
}

fn document(tree: &mut ProjectTree, path: &str, text: &str) {
    tree.documents.retain(|document| document.path != path);
    tree.documents.push(TextFile { path: path.to_owned(), text: text.to_owned() });
}

fn complaints(tree: &ProjectTree) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule(tree)).map(|violation| violation.to_string()).collect()
}

/// Asserts that a good tree with one change draws exactly one complaint, which contains `wanted`.
fn assert_complaint(wanted: &str, spoil: impl Fn(&mut ProjectTree)) {
    let mut tree = good();
    spoil(&mut tree);
    let found = complaints(&tree);
    assert!(found.len() == 1 && found[0].contains(wanted), "expected one {wanted:?}, found {found:#?}");
}

fn assert_source(wanted: &str, path: &str, text: &str) {
    assert_complaint(wanted, |tree| source(tree, path, text));
}

fn assert_document(wanted: &str, path: &str, text: &str) {
    assert_complaint(wanted, |tree| document(tree, path, text));
}

#[test]
fn a_good_tree_draws_no_complaint() {
    assert_eq!(complaints(&good()), Vec::<String>::new());
}

#[test]
fn every_crate_has_a_level() {
    assert_complaint("[levels] no level", |tree| tree.packages.push(package("borehole-new", &[])));
}

#[test]
fn dependencies_point_down_only() {
    assert_complaint("level 0 must not depend on borehole-formats", |tree| {
        depend(tree, "borehole-wire", &[("borehole-formats", DependencyPurpose::Product)]);
    });
    assert_complaint("of level 0", |tree| {
        depend(tree, "borehole-wire", &[("borehole-text", DependencyPurpose::Product)]);
    });
}

#[test]
fn a_crate_is_one_level_above_its_highest_dependency() {
    assert_complaint("level 5 should be 1", |tree| {
        depend(tree, "borehole", &[("borehole-wire", DependencyPurpose::Product)]);
    });
    let mut tools = good();
    depend(&mut tools, "borehole-testkit", &[("borehole-wire", DependencyPurpose::Product)]);
    assert_eq!(complaints(&tools), Vec::<String>::new());
}

#[test]
fn dependencies_from_outside_are_declared() {
    assert_complaint("clap is not among", |tree| {
        depend(tree, "borehole-wire", &[("clap", DependencyPurpose::Product)]);
    });
}

#[test]
fn dependencies_of_tests_are_free() {
    let mut tree = good();
    let tests_only = [("borehole", DependencyPurpose::Tests), ("clap", DependencyPurpose::Tests)];
    depend(&mut tree, "borehole-wire", &tests_only);
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn dependencies_are_used() {
    assert_complaint("crates/wire/Cargo.toml: [unused] memchr is in no source", |tree| {
        tree.packages[0] = package("borehole-wire", &[("memchr", DependencyPurpose::Tests)]);
    });
    // What only tests name is for tests only.
    assert_complaint("[unused] clap is in no source", |tree| {
        source(tree, "crates/cli/src/uses.rs", "");
        source(tree, "crates/cli/tests/it/uses.rs", "// anything clap");
    });
}

#[test]
fn formats_do_not_name_each_other() {
    let path = "crates/formats/src/rbt/export.rs";
    for (text, wanted) in [
        ("use crate::folded::Writer;", "rbt must not name a format: crate::folded::Writer"),
        ("use crate::{Error, folded};", "a format: crate::folded"),
        ("use super::super::folded::A;", "a format: crate::folded::A"),
        ("fn f() { write!(out, \"{}\", crate::folded::g()); }", "a format: crate::folded::g"),
    ] {
        assert_source(wanted, path, text);
    }
    assert_source("folded must not", "crates/formats/src/folded/read.rs", "use crate::rbt::Reader;");
}

#[test]
fn what_serves_all_formats_names_none() {
    assert_source("lines must not name a format", "crates/formats/src/lines.rs", "use crate::rbt::Reader;");
    let mut tree = good();
    source(&mut tree, "crates/formats/src/lines.rs", "use crate::{Error, gzip::Reader};");
    source(&mut tree, "crates/formats/src/detect/mod.rs", "use crate::rbt::MAGIC;");
    source(&mut tree, "crates/formats/src/rbt/write.rs", "use crate::{detect::Format, lines::Lines};");
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn files_that_know_bytes_only_do_not_name_the_model() {
    for file in ["layout.rs", "read.rs", "write.rs", "read/segment.rs"] {
        let path = format!("crates/formats/src/rbt/{file}");
        assert_source("knows bytes only", &path, "use borehole_model::Tables;");
    }
    assert_source("knows bytes only", "crates/trc/src/read.rs", "use borehole_model::Tables;");
    let mut tree = good();
    source(&mut tree, "crates/trc/src/import.rs", "use borehole_model::Tables;");
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn pure_crates_do_not_see_the_machine() {
    let path = "crates/analysis/src/top.rs";
    for (text, wanted) in [
        ("use std::fs::File;", "std::fs::File"),
        ("use std::{env, fmt};", "std::env"),
        ("use std::net::TcpStream;", "std::net"),
        ("use std::io::{self, stdin};", "std::io::stdin"),
        ("fn f() -> Instant { Instant::now() }", "Instant::now"),
        ("fn f() { assert!(std::time::SystemTime::now() > x); }", "std::time::SystemTime::now"),
    ] {
        assert_source(&format!("[purity] {wanted}"), path, text);
    }
}

#[test]
fn only_programs_print_and_exit() {
    for text in [
        "print!(\"\")",
        "println!()",
        "eprint!(\"\")",
        "std::eprintln!()",
        "std::dbg!(1)",
        "std::process::exit(1)",
    ] {
        let text = format!("fn f() {{ {text}; }}");
        assert_source("belongs into the command", "crates/borehole/src/open.rs", &text);
    }
    assert_source(
        "println",
        "crates/testkit/src/output.rs",
        "fn f() { eprintln!(\"left out\"); println!(); }",
    );
}

#[test]
fn promises_have_tests_that_exist() {
    let security = "# Security\n\n## Promises\n\n- Any file is\n  safe.\n- Nothing is sent:\n  - nowhere.\n\n## Others\n\n- None.\n";
    let row = |begins: &str, test: &str| format!("| {begins} | `{test}` |\n");
    let head = "| promise | tests |\n|---|---|\n";
    let [safe, sent] =
        [("Any file is safe", "wire::open::reads_all"), ("nowhere", "wire::it::net::is_silent")];
    let spoil = |rows: &[(&str, &str)]| {
        let table = rows.iter().fold(head.to_owned(), |table, (begins, test)| table + &row(begins, test));
        move |tree: &mut ProjectTree| {
            source(tree, "crates/wire/src/open.rs", "#[test] fn reads_all() {}");
            source(tree, "crates/wire/tests/it/net/mod.rs", "#[test] fn is_silent() {}");
            document(tree, "SECURITY.md", security);
            document(tree, "docs/promises.md", &table);
        }
    };
    let mut tree = good();
    spoil(&[safe, sent])(&mut tree);
    assert_eq!(complaints(&tree), Vec::<String>::new());
    assert_complaint("has no row for: Nothing is sent", spoil(&[safe]));
    assert_complaint("does not promise: Nobody", spoil(&[safe, sent, ("Nobody", "wire::open::reads_all")]));
    assert_complaint(
        "there is no test wire::open::reads_some",
        spoil(&[safe, sent, ("file", "wire::open::reads_some")]),
    );
    assert_complaint("there is no test net::is_silent", spoil(&[safe, ("nowhere", "net::is_silent")]));
}

#[test]
fn other_crates_forbid_unsafe_code() {
    let missing = "missing #![forbid(unsafe_code)]";
    assert_source(missing, "crates/wire/src/lib.rs", "//! Bytes.\n#![deny(unsafe_code)]\n");
    assert_source(missing, "crates/cli/src/bin/other.rs", "fn main() {}");
    let mut tree = good();
    for root in ["crates/process/src/lib.rs", "crates/borehole/src/lib.rs", "fuzz/src/main.rs"] {
        source(&mut tree, root, "//! Needs it.\n");
    }
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn unsafe_code_stays_where_it_is() {
    assert_source("[unsafe]", "crates/wire/src/cursor.rs", "fn f() { unsafe { g() } }");
    assert_source("[unsafe]", "crates/borehole/src/open.rs", "fn f() { unsafe { g() } }");
    assert_source("[unsafe]", "crates/borehole/src/again.rs", "use memmap2::Mmap; fn f() { unsafe { g() } }");
    assert_source(
        "[unsafe]",
        "crates/model/src/a.rs",
        "#[cfg(test)] mod tests { fn f() { unsafe { g() } } }",
    );
}

#[test]
fn files_are_short_and_flat() {
    let long = "const A: u8 = 1;\n".repeat(rules::FILE_LINES + 1);
    assert_source("901 lines before the tests", "crates/model/src/a.rs", &long);
    assert_source("4 folders", "crates/model/src/a/b/c/d/e.rs", "");
    let items: String = (0..=rules::PUBLIC_ITEMS).map(|n| format!("pub struct A{n};\n")).collect();
    assert_source("21 public items", "crates/model/src/a.rs", &items);
    let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}");
    let mut tree = good();
    source(&mut tree, "crates/model/src/a.rs", &tests);
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn functions_are_short() {
    let long = format!("fn long() {{\n{}}}\n", "g();\n".repeat(rules::FUNCTION_LINES - 1));
    assert_source("61 lines in long", "crates/cli/src/a.rs", &long);
    let mut tree = good();
    source(&mut tree, "crates/cli/src/a.rs", &format!("#[cfg(test)]\nmod tests {{\n#[test]\n{long}}}"));
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn most_functions_are_very_short() {
    let functions =
        |count: usize, lines: usize| format!("fn f() {{\n{}}}\n", "g();\n".repeat(lines - 2)).repeat(count);
    let path = "crates/model/src/a.rs";
    assert_source("9 lines at percentile 50", path, &functions(60, 9));
    assert_source("31 lines at percentile 90", path, &(functions(10, 3) + &functions(5, 31)));
}

#[test]
fn module_names_say_something() {
    assert_source("utils says nothing", "crates/model/src/utils.rs", "");
    assert_source("helpers says nothing", "crates/model/src/helpers/a.rs", "");
    assert_source("common says nothing", "crates/model/src/a.rs", "mod common { }");
}

#[test]
fn types_have_names_of_their_own() {
    assert_complaint("2 of 3 types share their name with another", |tree| {
        source(tree, "crates/model/src/a.rs", "struct Place;");
        source(tree, "crates/cli/src/a.rs", "enum Place {}\nstruct Lane;");
    });
    let everywhere = |name: &str| {
        let mut tree = good();
        let others: String = (0..100).map(|number| format!("struct Only{number};")).collect();
        source(&mut tree, "crates/model/src/a.rs", &others);
        for module in ["a", "b", "c", "d", "e"] {
            source(&mut tree, &format!("crates/cli/src/{module}.rs"), &format!("struct {name};"));
        }
        complaints(&tree)
    };
    let [complaint] = &everywhere("Place")[..] else { panic!("{:?}", everywhere("Place")) };
    assert!(
        complaint.starts_with("crates/cli/src/a.rs:1: [names] 5 types are called Place: also "),
        "{complaint}"
    );
    assert_eq!(everywhere("Reader"), Vec::<String>::new());
    let mut tree = good();
    source(&mut tree, "crates/model/src/a.rs", "struct Place;\n#[cfg(test)]\nmod tests { struct Place; }");
    source(&mut tree, "crates/cli/tests/it/a.rs", "struct Place;");
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn doc_comments_name_the_thing() {
    let path = "crates/cli/tests/it/a.rs";
    for idle in ["/// What it is.\nfn f() {}\n", "/// The same, twice.\nfn f() {}\n", "//! What is here.\n\n"]
    {
        let wanted = "[docs] expected a doc comment that names the thing";
        assert_source(
            wanted,
            path,
            &format!("{idle}{}", "/// What g is.\n/// What else.\nfn g() {}\n".repeat(rules::IDLE_DOCS)),
        );
    }
    let mut tree = good();
    source(&mut tree, path, "/// Whatever it is.\nfn f() {}\n// What it is not.\n");
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn work_is_finished() {
    assert_source("todo is not finished", "crates/cli/src/a.rs", "fn f() { todo!() }");
    assert_source("unimplemented", "crates/cli/src/a.rs", "fn f() { std::unimplemented!(\"x\") }");
    assert_source(
        "ignore is not finished",
        "crates/cli/tests/a.rs",
        "#[test]\n#[ignore = \"slow\"]\nfn f() {}",
    );
}

#[test]
fn unwraps_stand_in_tests_only() {
    assert_source("unwrap does not say why", "crates/model/src/a.rs", "fn f() { g().unwrap(); }");
    assert_source("Option::unwrap", "crates/model/src/a.rs", "fn f() { g().map(Option::unwrap) }");
    assert_source("unwrap", "crates/model/src/a.rs", "#[cfg(test)] mod tests {}\nfn f() { g().unwrap(); }");
}

#[test]
fn libraries_name_no_options_of_the_command() {
    let text = |text: &str| format!("fn f() -> &'static str {{ \"{text}\" }}");
    for path in ["crates/model/src/a.rs", "crates/borehole/src/a.rs"] {
        assert_source("--timeout is an option", path, &text("waited 1 s; --timeout sets how long"));
    }
    let mut tree = good();
    source(&mut tree, "crates/cli/src/b.rs", &text("--timeout sets how long"));
    source(&mut tree, "crates/model/src/b.rs", &text("create it with createdb --encoding=UTF8, or --- r--p"));
    source(&mut tree, "crates/model/src/c.rs", "#[cfg(test)]\nmod tests { fn f() { g(\"--force\") } }");
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn no_file_names_a_registry_or_a_machine() {
    let host = rules::REGISTRY_HOSTS[0];
    assert_document("is a registry's host", "docs/a.md", &format!("see https://static.{host}/x"));
    assert_source("is a registry's host", "xtask/src/a.rs", &format!("// from {host}\n"));
    assert_document("folder of somebody's machine", "docs/a.md", "see /somebody/checkout/x");
    let machine = rules::MACHINE_PATHS[0];
    assert_document("folder of somebody's machine", ".ci/run", &format!("cd {machine}/main"));
    let mut tree = good();
    document(&mut tree, "docs/a.md", &format!("see target{machine}/x and /somebody/checkouts/"));
    assert_eq!(complaints(&tree), Vec::<String>::new());
}

#[test]
fn documents_are_there_and_short() {
    assert_document("151 lines", "README.md", &"line\n".repeat(151));
    assert_document("301 lines", "ARCHITECTURE.md", &"line\n".repeat(301));
    assert_complaint("README.md: [sizes] missing", |tree| {
        tree.documents.retain(|document| document.path != "README.md");
    });
}

#[test]
fn dependencies_have_reasons_and_no_default_features() {
    let root = |lines: &str| format!("[workspace.dependencies]\n{lines}\n[x]\n");
    let bare = root("a = { version = \"1\", default-features = false }");
    assert_document("a has no reason", "Cargo.toml", &bare);
    let after_blank = root("# Why.\n\na = { version = \"1\", default-features = false }");
    assert_document("a has no reason", "Cargo.toml", &after_blank);
    assert_document("a has its default features on", "Cargo.toml", &root("# Why.\na = \"1\""));
    let own_version = "[dev-dependencies]\nmemchr = \"2\"\n";
    assert_document("expected a workspace dependency", "crates/wire/Cargo.toml", own_version);
}

#[test]
fn the_project_itself_can_be_read() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = super::load::tree(root).unwrap();
    assert!(tree.packages.iter().any(|package| package.name == "xtask"));
    assert!(tree.sources.iter().any(|source| source.path == "xtask/src/tidy/tests.rs"));
    assert!(tree.documents.iter().any(|document| document.path == "Cargo.toml"));
}
