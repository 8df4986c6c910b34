//! Fuzz target for responses of a Kafka broker.

use noetl_sources::fuzzing::kafka as read;

/// Offsets in a batch of its length, format, and checksum, and of the data that the checksum
/// covers.
const LENGTH: usize = 8;
const LENGTH_END: usize = 12;
const FORMAT: usize = 16;
const CHECKSUM: usize = 17;
const CHECKED: usize = 21;

/// Reads batches of records, each with its format and its checksum put right.
///
/// What is read lies before what is asked for next, in order; what is cut off there is read as far as it
/// is whole; without the records of a transaction that was given up the others are the same.
pub fn kafka(data: &[u8]) {
    let mut bytes = data.to_vec();
    seal(&mut bytes);
    let Some((offsets, next)) = read(&bytes, &[]) else { return };
    assert!(
        offsets.iter().all(|offset| *offset >= 0 && Some(*offset) < next),
        "{offsets:?} {next:?}"
    );
    let half = bytes.len() / 2;
    let (before, asks) = read(&bytes[..half], &[]).expect("a part of what is right is right");
    assert!(offsets.starts_with(&before) && asks <= next, "{before:?} of {offsets:?}");
    let (others, again) = read(&bytes, &[(0, 0), (-1, 7)]).expect("it is as right as before");
    assert_eq!(again, next, "what is for nobody is passed");
    let mut all = offsets.iter();
    assert!(others.iter().all(|offset| all.any(|known| known == offset)), "{others:?}");
}

/// Sets the checksum, which random bytes would never match.
fn seal(bytes: &mut [u8]) {
    let mut rest = bytes;
    while rest.len() > CHECKED {
        let length =
            rest[LENGTH..LENGTH_END].try_into().map(u32::from_be_bytes).expect("four bytes");
        let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(LENGTH_END);
        if end <= CHECKED || end > rest.len() {
            return;
        }
        let (batch, more) = rest.split_at_mut(end);
        batch[FORMAT] = 2;
        let sum = crc32c::crc32c(&batch[CHECKED..]);
        batch[CHECKSUM..CHECKED].copy_from_slice(&sum.to_be_bytes());
        rest = more;
    }
}
