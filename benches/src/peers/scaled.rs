//! The same systems with more workers than the usual one or two: for the rows that watch how cost grows
//! with the number of workers, and nothing else.

use super::async_executor::AsyncExecutor;
use super::ours::OursMulti;
use super::tokio::TokioMulti;
use super::{AsyncPeer, CountingPeer, Entry, PerAsyncPeer, PerCountingPeer, named};

/// One `T` for each asynchronous system and each number of workers.
pub(crate) fn each_scaled<T: PerAsyncPeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerAsyncPeer, P: AsyncPeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    vec![
        entry::<T, TokioMulti<1>>(),
        entry::<T, TokioMulti<2>>(),
        entry::<T, TokioMulti<4>>(),
        entry::<T, TokioMulti<8>>(),
        entry::<T, TokioMulti<16>>(),
        entry::<T, TokioMulti<32>>(),
        entry::<T, TokioMulti<64>>(),
        entry::<T, AsyncExecutor<1>>(),
        entry::<T, AsyncExecutor<2>>(),
        entry::<T, AsyncExecutor<4>>(),
        entry::<T, AsyncExecutor<8>>(),
        entry::<T, AsyncExecutor<16>>(),
        entry::<T, AsyncExecutor<32>>(),
        entry::<T, AsyncExecutor<64>>(),
        entry::<T, OursMulti<1>>(),
        entry::<T, OursMulti<2>>(),
        entry::<T, OursMulti<4>>(),
        entry::<T, OursMulti<8>>(),
        entry::<T, OursMulti<16>>(),
        entry::<T, OursMulti<32>>(),
        entry::<T, OursMulti<64>>(),
    ]
}

/// One `T` for each number of workers of the systems that count what they do.
pub(crate) fn each_counting<T: PerCountingPeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerCountingPeer, P: CountingPeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    vec![
        entry::<T, OursMulti<1>>(),
        entry::<T, OursMulti<2>>(),
        entry::<T, OursMulti<4>>(),
        entry::<T, OursMulti<8>>(),
        entry::<T, OursMulti<16>>(),
        entry::<T, OursMulti<32>>(),
        entry::<T, OursMulti<64>>(),
    ]
}
