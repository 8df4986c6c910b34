//! Validates records before they are decoded: the decoder allocates as many headers as a record
//! claims to have, and adds offsets and timestamps unchecked.

use anyhow::{Context as _, Result, ensure};

use super::Header;

/// Minimum size of a record header in bytes: the lengths of its name and value.
const HEADER_MIN: usize = 2;

/// Maximum sizes of a 32-bit and a 64-bit varint in bytes, with seven bits per byte.
const SHORT: usize = 5;
const LONG: usize = 10;

/// Rejects records outside the offset range of their batch and records that claim more data than
/// they contain.
pub(super) fn vet(batch: &Header, records: &[u8]) -> Result<()> {
    let mut rest = records;
    for _ in 0..batch.count {
        let size = usize::try_from(short(&mut rest)?)?;
        let (record, more) = rest.split_at_checked(size).context("a record is cut off")?;
        rest = more;
        let mut record = record.get(1..).context("a record is empty")?;
        let later = number(&mut record, LONG)?;
        ensure!(batch.time.checked_add(later).is_some(), "a record is of no time");
        let place = short(&mut record)?;
        ensure!((0..=batch.last).contains(&place), "a record lies outside its batch");
        // Key and value. A negative length means null.
        for _ in 0..2 {
            let length = usize::try_from(short(&mut record)?.max(0))?;
            record = record.get(length..).context("a record is cut off")?;
        }
        let headers = usize::try_from(short(&mut record)?)?;
        ensure!(headers <= record.len() / HEADER_MIN, "a record cannot hold {headers} headers");
    }
    Ok(())
}

fn short(rest: &mut &[u8]) -> Result<i32> {
    Ok(i32::try_from(number(rest, SHORT)?)?)
}

/// Reads a zigzag-encoded varint of at most `most` bytes.
fn number(rest: &mut &[u8], most: usize) -> Result<i64> {
    let mut all: u64 = 0;
    for at in 0..most {
        let (byte, more) = rest.split_first().context("a number is cut off")?;
        *rest = more;
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * at;
        ensure!((bits << shift) >> shift == bits, "a number is too large");
        all |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok((all >> 1).cast_signed() ^ -(all & 1).cast_signed());
        }
    }
    anyhow::bail!("a number is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8], most: usize) -> Option<i64> {
        number(&mut bytes, most).ok()
    }

    #[test]
    fn varints_are_decoded_up_to_their_maximum_length() {
        for (bytes, value) in [
            (&[0][..], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0x80, 1], 64),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i64::from(i32::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i64::from(i32::MIN)),
        ] {
            assert_eq!(read(bytes, SHORT), Some(value), "{bytes:?}");
            assert_eq!(read(bytes, LONG), Some(value), "{bytes:?}");
        }
        let mut longest = [0xff; LONG];
        longest[LONG - 1] = 1;
        assert_eq!(read(&longest, LONG), Some(i64::MIN));
        longest[0] = 0xfe;
        assert_eq!(read(&longest, LONG), Some(i64::MAX));
        longest[LONG - 1] = 2;
        assert_eq!(read(&longest, LONG), None, "65 bits");
        for wrong in [&[][..], &[0x80], &[0x80; 11]] {
            assert_eq!((read(wrong, SHORT), read(wrong, LONG)), (None, None), "{wrong:?}");
        }
        let mut beyond = &[0xff, 0xff, 0xff, 0xff, 0x1f][..];
        assert!(short(&mut beyond).is_err(), "33 bits");
    }
}
