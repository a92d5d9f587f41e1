//! The protocol buffer wire format, read leniently.
//!
//! Chakra reused tag numbers with other wire types between schema versions, which a derived
//! message refuses; and no length in the file may be trusted. So fields are walked by hand: every
//! slice is cut from the input, nothing is allocated by a length.

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: bytes, text, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// Why a message cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// The message ends within a field.
    Truncated,
    /// A varint has more than ten bytes.
    Varint,
    /// A wire type that does not exist, or the obsolete groups.
    WireType(u8),
}

/// Takes a varint off the front.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).wrapping_shl(7 * index as u32);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < 10 { Malformed::Truncated } else { Malformed::Varint })
}

/// Takes `count` bytes off the front.
pub(super) fn take<'a>(bytes: &mut &'a [u8], count: u64) -> Result<&'a [u8], Malformed> {
    let count = usize::try_from(count).map_err(|_| Malformed::Truncated)?;
    let (head, tail) = bytes.split_at_checked(count).ok_or(Malformed::Truncated)?;
    *bytes = tail;
    Ok(head)
}

/// Takes one field with its number off the front.
pub(super) fn field<'a>(bytes: &mut &'a [u8]) -> Result<(u64, Value<'a>), Malformed> {
    let key = varint(bytes)?;
    let value = match (key & 7) as u8 {
        0 => Value::Varint(varint(bytes)?),
        1 => Value::Fixed64(u64::from_le_bytes(array(take(bytes, 8)?)?)),
        2 => {
            let length = varint(bytes)?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => Value::Fixed32(u32::from_le_bytes(array(take(bytes, 4)?)?)),
        other => return Err(Malformed::WireType(other)),
    };
    Ok((key >> 3, value))
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed::Truncated)
}

/// Calls `visit` for each field; stops at damage.
pub(super) fn fields<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Value<'a>),
) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        let (number, value) = field(&mut bytes)?;
        visit(number, value);
    }
    Ok(())
}

/// Appends a repeated varint field, packed or not.
pub(super) fn repeated(value: Value<'_>, into: &mut Vec<u64>) -> Result<(), Malformed> {
    match value {
        Value::Varint(number) => into.push(number),
        Value::Bytes(mut packed) => {
            while !packed.is_empty() {
                into.push(varint(&mut packed)?);
            }
        }
        Value::Fixed64(number) => into.push(number),
        Value::Fixed32(number) => into.push(number.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::encoding::{decode_varint, encode_varint};

    use super::*;

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        let mut bytes: &[u8] = &[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f, 1];
        assert_eq!(field(&mut bytes), Err(Malformed::Truncated));
        let mut endless: &[u8] = &[0xff; 12];
        assert_eq!(varint(&mut endless), Err(Malformed::Varint));
        let mut group: &[u8] = &[0x0b];
        assert_eq!(field(&mut group), Err(Malformed::WireType(3)));
    }

    proptest! {
        #[test]
        fn varints_agree_with_prost(value: u64) {
            let mut encoded = Vec::new();
            encode_varint(value, &mut encoded);
            prop_assert_eq!(varint(&mut &encoded[..]), Ok(value));
        }

        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut count = 0;
            let _ = fields(&bytes, |_, _| count += 1);
            prop_assert!(count <= bytes.len());
            if let Ok(value) = decode_varint(&mut &bytes[..]) {
                prop_assert_eq!(varint(&mut &bytes[..]), Ok(value));
            }
        }
    }
}
