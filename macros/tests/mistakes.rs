//! Each mistake gives one clear error at the right place. The cases are compiled by `rustc`
//! against the macro library that cargo built beside this test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Compiles `source`, in which `«` and `»` mark the code that the error has to start at, and
/// asserts that the first error says `message` there.
#[track_caller]
fn assert_mistake(source: &str, message: &str) {
    let (line, column) = position_of_mark(source);
    let output = compile(&source.replace(['«', '»'], ""));
    let first = output
        .lines()
        .find(|line| line.contains(": error"))
        .unwrap_or_else(|| panic!("no error for:\n{source}\nbut:\n{output}"));
    assert!(
        first.contains(message) && first.contains(&format!(":{line}:{column}: error: ")),
        "expected at {line}:{column}: {message}\nfound: {output}",
    );
}

fn position_of_mark(source: &str) -> (usize, usize) {
    let before = source.split('«').next().unwrap();
    let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (line, column)
}

/// What the compiler says, a line for each error. A stand-in for the `runtime` crate holds the two
/// attributes; nothing else of it is looked at before the mistakes here are found.
fn compile(source: &str) -> String {
    let directory = env::temp_dir().join(format!(
        "runtime-macros-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("case.rs");
    fs::write(&file, source).unwrap();
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .args(["--error-format=short", "--out-dir"])
        .arg(&directory)
        .arg("--extern")
        .arg(format!("runtime={}", macro_library().display()))
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .expect("rustc starts");
    fs::remove_dir_all(&directory).unwrap();
    assert!(
        !output.status.success(),
        "this compiled, and should not:\n{source}"
    );
    String::from_utf8(output.stderr).unwrap()
}

/// Cargo leaves the newest build of the macros beside this test, or, when it builds for another
/// target, in the host's own folder.
fn macro_library() -> PathBuf {
    let beside = env::current_exe().unwrap().parent().unwrap().to_owned();
    let host = beside.join("../../../debug/deps");
    let mut found: Vec<(SystemTime, PathBuf)> = [beside.as_path(), host.as_path()]
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            is_macro_library(&path).then_some((path.metadata().ok()?.modified().ok()?, path))
        })
        .collect();
    found.sort();
    found.pop().expect("cargo built the macros first").1
}

fn is_macro_library(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.trim_start_matches("lib")
        .starts_with("runtime_macros-")
        && path
            .extension()
            .is_some_and(|ending| ending == env::consts::DLL_EXTENSION)
}

#[test]
fn a_function_that_is_not_async() {
    assert_mistake(
        "#[runtime::main]\npub «fn» main() {}",
        "`#[runtime::main]` needs an async function: write `async fn`",
    );
    assert_mistake(
        "#[runtime::test]\n#[ignore]\n«fn» case() {}",
        "`#[runtime::test]` needs an async function: write `async fn`",
    );
}

#[test]
fn a_function_with_another_qualifier() {
    assert_mistake(
        "#[runtime::main]\nasync «unsafe» fn main() {}",
        "`#[runtime::main]` goes on a plain `async fn`, without `unsafe`",
    );
    assert_mistake(
        "#[runtime::main]\n«extern» \"C\" fn main() {}",
        "without `extern`",
    );
}

#[test]
fn an_item_that_is_no_function() {
    assert_mistake(
        "#[runtime::main]\n«struct» Main;",
        "`#[runtime::main]` goes on an `async fn`",
    );
    assert_mistake(
        "#[runtime::test]\n/// Text.\npub(crate) «mod» tests {}",
        "`#[runtime::test]` goes on an `async fn`",
    );
}

#[test]
fn parameters() {
    assert_mistake(
        "#[runtime::main]\nasync fn main(«first»: u8, second: u8) {}",
        "`#[runtime::main]` functions take no parameters: read `std::env::args()` inside",
    );
    assert_mistake(
        "#[runtime::test]\nasync fn case(«_»: self::Type) {}\nstruct Type;",
        "`#[runtime::test]` functions take no parameters",
    );
}

#[test]
fn generic_parameters() {
    assert_mistake(
        "#[runtime::main]\npub async fn run«<»T>() {}",
        "`#[runtime::main]` functions take no generic parameters",
    );
}

#[test]
fn methods() {
    for receiver in [
        "self",
        "mut self",
        "&self",
        "&'static mut self",
        "self: Box<Self>",
    ] {
        assert_mistake(
            &format!(
                "struct S;\nimpl S {{\n    #[runtime::main]\n    async fn run(«{receiver}») {{}}\n}}"
            ),
            "`#[runtime::main]` cannot go on a method",
        );
    }
}

#[test]
fn a_function_without_a_body() {
    assert_mistake(
        "trait T {\n    #[runtime::main]\n    async fn «run»();\n}",
        "needs a function with a body",
    );
}

#[test]
fn a_second_test_attribute() {
    assert_mistake(
        "#[runtime::test]\n#«[test]»\nasync fn case() {}",
        "`#[runtime::test]` adds `#[test]` itself: remove this one",
    );
}

#[test]
fn an_unknown_option() {
    assert_mistake(
        "#[runtime::main(worker_threads = 2, «threads» = 4)]\nasync fn main() {}",
        "no option is called `threads`: the options are `worker_threads`, `background_threads`, \
         `rng_seed`, `flavor`, `crate`",
    );
}

#[test]
fn an_option_set_twice() {
    assert_mistake(
        "#[runtime::main(rng_seed = 2, «rng_seed» = 4)]\nasync fn main() {}",
        "`rng_seed` is set twice",
    );
}

#[test]
fn values_of_the_wrong_type() {
    let cases = [
        (
            "worker_threads = «\"4\"»",
            "`worker_threads` takes a whole number",
        ),
        (
            "worker_threads = «-»1",
            "`worker_threads` takes a whole number",
        ),
        (
            "worker_threads = «1.5»",
            "`worker_threads` takes a whole number",
        ),
        (
            "worker_threads = «N»",
            "`worker_threads` takes a whole number",
        ),
        (
            "«worker_threads» =",
            "`worker_threads` takes a whole number",
        ),
        ("worker_threads = «0»", "at least one worker"),
        ("worker_threads = «0x0_usize»", "at least one worker"),
        ("rng_seed = «true»", "`rng_seed` takes a whole number"),
        ("background_threads = «1»", "takes `true` or `false`"),
        ("background_threads = «\"true\"»", "takes `true` or `false`"),
        (
            "flavor = «\"many\"»",
            "takes \"current_thread\" or \"multi_thread\"",
        ),
        (
            "flavor = «current_thread»",
            "takes \"current_thread\" or \"multi_thread\"",
        ),
        ("crate = «path»", "as a string"),
        ("crate = «\"two words\"»", "as a string"),
        ("crate = «\"\"»", "as a string"),
    ];
    for (option, message) in cases {
        assert_mistake(
            &format!("#[runtime::main({option})]\nasync fn main() {{}}"),
            message,
        );
    }
}

#[test]
fn arguments_that_are_no_options() {
    let message = "an option is written `name = value`";
    assert_mistake("#[runtime::main(«flavor»)]\nasync fn main() {}", message);
    assert_mistake(
        "#[runtime::main(«flavor»(\"x\"))]\nasync fn main() {}",
        message,
    );
    assert_mistake(
        "#[runtime::main(«4»)]\nasync fn main() {}",
        "expected an option; the options are `worker_threads`",
    );
    assert_mistake(
        "«#[runtime::main(,)]»\nasync fn main() {}",
        "expected an option",
    );
}

#[test]
fn options_that_exclude_each_other() {
    assert_mistake(
        "#[runtime::main(flavor = \"current_thread\", worker_threads = «2»)]\nasync fn main() {}",
        "the `current_thread` flavor has one worker",
    );
}
