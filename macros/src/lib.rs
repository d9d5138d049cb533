//! The attributes `#[runtime::main]` and `#[runtime::test]`. Use them through the `runtime` crate,
//! which re-exports both.
//!
//! Read it in this order: `function` takes the annotated function apart, `options` reads the
//! arguments, `expand` writes the new function, `error` shows mistakes where they were made. All of
//! it works on plain tokens: a parser for the whole language would be most of a build of `runtime`.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

use crate::attribute::Attribute;
use crate::function::AsyncFunction;
use crate::options::Options;

mod function;

mod options;

mod expand;

mod attribute;
mod error;

/// Runs an `async fn` to its end on a runtime of its own.
///
/// ```
/// #[runtime::main]
/// async fn main() {
///     let task = runtime::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// }
/// ```
///
/// The body runs on a worker: the calling thread is one of the runtime's workers until the body
/// ends. Then the runtime is dropped, which cancels the tasks that are left. Any return type will
/// do that the function could have without the attribute, such as `Result` or
/// [`ExitCode`](std::process::ExitCode):
///
/// ```
/// #[runtime::main(worker_threads = 2)]
/// async fn main() -> Result<(), std::num::ParseIntError> {
///     let answer: u32 = "42".parse()?;
///     println!("{answer}");
///     Ok(())
/// }
/// ```
///
/// The attribute goes on any `async fn` without parameters, not only on `main`.
///
/// # Arguments
///
/// | argument | meaning | otherwise |
/// |---|---|---|
/// | `worker_threads = 4` | how many threads run tasks, the calling one included | one for each core |
/// | `background_threads = false` | start no thread besides the calling one | `true` |
/// | `rng_seed = 7` | seed of the scheduler's random choices | a new one for each runtime |
/// | `flavor = "current_thread"` | one worker, the calling thread, and no thread beside it | |
/// | `flavor = "multi_thread"` | the default, by the name that tokio gives it | |
/// | `crate = "path"` | where to find `runtime` if the dependency was renamed | `::runtime` |
///
/// An attributed function `run` is the same as this one, with a call for each argument:
///
/// ```
/// fn run() {
///     async fn run() { /* the body */ }
///
///     runtime::Builder::new()
///         .build()
///         .expect("the runtime could not be started")
///         .block_on(run())
/// }
/// # run();
/// ```
///
/// # Panics
///
/// The function panics where the runtime cannot be started: when the system refuses it a thread or
/// a descriptor, or `worker_threads` is out of range.
///
/// # Compile errors
///
/// A function that is not async: *needs an async function: write `async fn`*.
///
/// ```compile_fail
/// #[runtime::main]
/// fn main() {}
/// ```
///
/// Another qualifier: *goes on a plain `async fn`, without `unsafe`*.
///
/// ```compile_fail
/// #[runtime::main]
/// async unsafe fn main() {}
/// ```
///
/// Parameters: *functions take no parameters: read `std::env::args()` inside instead*.
///
/// ```compile_fail
/// #[runtime::main]
/// async fn main(arguments: Vec<String>) {}
/// ```
///
/// Generic parameters: *functions take no generic parameters: nothing would choose them*.
///
/// ```compile_fail
/// #[runtime::main]
/// async fn run<T>() {}
/// # fn main() {}
/// ```
///
/// A method: *cannot go on a method: there is no `self` when the runtime starts*.
///
/// ```compile_fail
/// struct Server;
/// impl Server {
///     #[runtime::main]
///     async fn run(&self) {}
/// }
/// # fn main() {}
/// ```
///
/// Something else than a function: *goes on an `async fn`*.
///
/// ```compile_fail
/// #[runtime::main]
/// struct Main;
/// # fn main() {}
/// ```
///
/// An option that does not exist: *no option is called `threads`: the options are ..*.
///
/// ```compile_fail
/// #[runtime::main(threads = 4)]
/// async fn main() {}
/// ```
///
/// An option that is set twice: *`rng_seed` is set twice*.
///
/// ```compile_fail
/// #[runtime::main(rng_seed = 1, rng_seed = 2)]
/// async fn main() {}
/// ```
///
/// A value of the wrong type: *`worker_threads` takes a whole number*.
///
/// ```compile_fail
/// #[runtime::main(worker_threads = "4")]
/// async fn main() {}
/// ```
///
/// No worker at all: *a runtime needs at least one worker*.
///
/// ```compile_fail
/// #[runtime::main(worker_threads = 0)]
/// async fn main() {}
/// ```
///
/// Workers for a flavor that has one: *the `current_thread` flavor has one worker*.
///
/// ```compile_fail
/// #[runtime::main(flavor = "current_thread", worker_threads = 2)]
/// async fn main() {}
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    apply(Attribute::Main, arguments, item)
}

/// Makes an `async fn` a test that runs on a runtime of its own.
///
/// ```no_run
/// #[runtime::test]
/// async fn tasks_deliver_their_output() {
///     assert_eq!(runtime::spawn(async { 8 }).await.unwrap(), 8);
/// }
/// ```
///
/// The runtime has one worker, since tests run side by side already; `worker_threads` or `flavor`
/// ask for another. The arguments are those of [`main`](macro@main), and so are the compile errors.
/// `#[should_panic]` and `#[ignore]` work as they do on other tests, and a test may return a
/// `Result`:
///
/// ```no_run
/// #[runtime::test(worker_threads = 2)]
/// #[ignore = "needs the network"]
/// async fn the_server_answers() -> std::io::Result<()> {
///     runtime::net::TcpStream::connect("192.0.2.1:80").await?;
///     Ok(())
/// }
/// ```
///
/// # Compile errors
///
/// Besides those of `main`: a second `#[test]`, *adds `#[test]` itself: remove this one*.
///
/// ```compile_fail
/// #[runtime::test]
/// #[test]
/// async fn twice() {}
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    apply(Attribute::Test, arguments, item)
}

/// A mistake in the function leaves the function as it is beside the error; one in the arguments
/// falls back to the defaults, so that the body is still checked in the same run.
fn apply(attribute: Attribute, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = match AsyncFunction::parse(item.clone(), attribute) {
        Ok(function) => function,
        Err(mistake) => {
            let mut output = mistake.into_compile_error();
            output.extend(item);
            return output;
        }
    };
    match Options::parse(arguments) {
        Ok(options) => expand::expand(function, &options, attribute),
        Err(mistake) => {
            let mut output = mistake.into_compile_error();
            output.extend(expand::expand(function, &Options::default(), attribute));
            output
        }
    }
}
