//! Real processes: this test program itself, started once more in a role of `child`.

mod child;
mod live;
mod stop;
