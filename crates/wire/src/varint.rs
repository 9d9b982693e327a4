//! Base-128 varints, least significant group first, as protobuf writes them.

/// The longest canonical encoding of a 64-bit value.
pub const MAX_VARINT_BYTES: usize = 10;

/// Appends `value` in its shortest encoding, 1 to 10 bytes.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_group(value) | 0x80);
        value >>= 7;
    }
    out.push(low_group(value));
}

/// Appends `value` as its 64-bit two's complement bit pattern: a negative number takes 10 bytes.
#[inline]
pub fn put_varint_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, value.cast_unsigned());
}

/// The number of bytes that [`put_varint`] appends for `value`.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// The lowest seven bits.
#[inline]
const fn low_group(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}
