//! Arguments for the linker.
//!
//! The command's file begins with the places where the loader puts addresses: a million bytes that every start reads, or a
//! hundredth of that in a packed form. Loaders know the form since glibc 2.36, so it is for those who run the command where
//! it is built; where that is older, or another system, nothing is said.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

use std::env;
use std::process::Command;

/// The first release of glibc whose loader knows packed places.
///
/// Source: glibc 2.36, NEWS, `DT_RELR`.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let [target, host] = ["TARGET", "HOST"].map(env::var);
    let is_at_home = target.is_ok_and(|target| target.ends_with("linux-gnu") && Ok(target) == host);
    if is_at_home && glibc().is_some_and(|release| release >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The release of this machine's glibc: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
