//! Damage of files, one byte at a time.

/// Passes copies of `bytes` to `read`, with every `step`th byte in turn changed to each of `values`, and the place of the change.
pub(crate) fn each_change(bytes: &[u8], step: usize, values: &[u8], mut read: impl FnMut(&[u8], usize)) {
    let mut changed = bytes.to_vec();
    for at in (0..bytes.len()).step_by(step) {
        for &value in values {
            let before = std::mem::replace(&mut changed[at], value);
            read(&changed, at);
            changed[at] = before;
        }
    }
}
