//! The allocator of programs that hold the embedded engine, for `use payments_allocator as _`.
//!
//! The engine makes thousands of small allocations for each call. With the system's allocator they take a fifth of the time. Programs
//! whose memory is measured, and deployed ones, have the system's.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
