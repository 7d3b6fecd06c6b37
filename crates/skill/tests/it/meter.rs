//! Measures what one call costs: CPU time and the peak of live memory, both of one thread only, so that
//! tests beside it do not count.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

/// What a call cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) bytes_peak: usize,
}

thread_local! {
    /// Bytes that are live, and the most that ever were, as far as this thread knows.
    static LIVE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(change: isize) {
    // While a thread is torn down there is nothing to count into, and nobody who asks.
    let _ = LIVE.try_with(|live| {
        let (now, peak) = live.get();
        let now = now + change;
        live.set((now, peak.max(now)));
    });
}

// SAFETY: memory can only be counted where it is handed out, and `GlobalAlloc` is an unsafe trait. Every
// call goes to the system's allocator with the arguments it came with; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on unchanged.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs something on one thread, parallel parts included, and says what it cost.
pub(crate) fn measure<T: Send>(run: impl Fn() -> T + Sync) -> (T, Cost) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let before = LIVE.get().0;
        LIVE.set((before, before));
        let start = cpu_now();
        let result = run();
        let cpu = cpu_now().saturating_sub(start);
        let bytes_peak = usize::try_from(LIVE.get().1 - before).unwrap_or(0);
        (result, Cost { cpu, bytes_peak })
    })
}

/// Tests run beside each other on few cores: one of six rounds is quiet enough.
const ROUNDS: usize = 6;

/// What costs more than this is measured more often, since it is near a limit.
const SLOW: Duration = Duration::from_millis(5);
const ROUNDS_OF_THE_SLOW: usize = 30;

/// As [`measure`], several times; the least CPU time counts, since a busy machine only ever adds to it.
pub(crate) fn measure_best<T: Send>(run: impl Fn() -> T + Sync) -> (T, Cost) {
    let mut best = measure(&run);
    for round in 1..ROUNDS_OF_THE_SLOW {
        if round >= ROUNDS && best.1.cpu < SLOW {
            break;
        }
        let (result, cost) = measure(&run);
        let bytes_peak = cost.bytes_peak.max(best.1.bytes_peak);
        best = (result, Cost { cpu: cost.cpu.min(best.1.cpu), bytes_peak });
    }
    best
}

fn cpu_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap()
}

#[test]
fn the_meter_sees_memory_that_is_gone_again_and_time_that_was_spent() {
    let (sum, cost) = measure(|| {
        let bytes = vec![1_u8; 3_000_000];
        bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>()
    });
    assert_eq!(sum, 3_000_000);
    assert!((3_000_000..3_100_000).contains(&cost.bytes_peak), "{cost:?}");
    assert!(cost.cpu > Duration::from_micros(10), "{cost:?}");
}
