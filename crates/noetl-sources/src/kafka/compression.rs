//! Decompresses record batches with a size limit, because a few bytes can expand to gigabytes.

use std::io::Read;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use kafka_protocol::records::Compression;

/// Maximum decompressed size of a batch in bytes. Brokers accept 1 MB per batch by default.
const BATCH_MAX: usize = 128 << 20;

/// Magic bytes of the framed Snappy format that Java clients write, and the size of its header: the
/// magic and two versions.
const SNAPPY_NAME: &[u8] = b"\x82SNAPPY\0";
const SNAPPY_HEADER: usize = 16;

/// Decompresses the records of a batch.
pub(super) fn decompress(packed: &[u8], compression: Compression) -> Result<Bytes> {
    match compression {
        Compression::None => Ok(Bytes::copy_from_slice(packed)),
        Compression::Gzip => bounded(flate2::read::MultiGzDecoder::new(packed)),
        Compression::Snappy => snappy(packed),
        Compression::Lz4 => bounded(lz4_flex::frame::FrameDecoder::new(packed)),
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed);
            bounded(decoder.context("it is not Zstandard")?)
        }
    }
}

fn bounded(packed: impl Read) -> Result<Bytes> {
    let mut open = Vec::new();
    let most = u64::try_from(BATCH_MAX).unwrap_or(u64::MAX);
    packed.take(most + 1).read_to_end(&mut open).context("it cannot be opened")?;
    if open.len() > BATCH_MAX {
        bail!("it holds more than {BATCH_MAX} bytes");
    }
    Ok(open.into())
}

fn snappy(packed: &[u8]) -> Result<Bytes> {
    if !packed.starts_with(SNAPPY_NAME) {
        let mut open = Vec::new();
        block(packed, &mut open)?;
        return Ok(open.into());
    }
    let mut rest = packed.get(SNAPPY_HEADER..).context("it has no blocks")?;
    let mut open = Vec::new();
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let (packed, more) = more.split_at_checked(length).context("a block is cut off")?;
        block(packed, &mut open)?;
        rest = more;
    }
    Ok(open.into())
}

fn block(packed: &[u8], open: &mut Vec<u8>) -> Result<()> {
    let length = snap::raw::decompress_len(packed)?;
    let start = open.len();
    if length > BATCH_MAX - start {
        bail!("it holds more than {BATCH_MAX} bytes");
    }
    open.resize(start + length, 0);
    let written = snap::raw::Decoder::new().decompress(packed, &mut open[start..])?;
    open.truncate(start + written);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn single_and_chained_snappy_blocks_are_decompressed() {
        let packed = snap::raw::Encoder::new().compress_vec(b"orders").unwrap();
        assert_eq!(decompress(&packed, Compression::Snappy).unwrap(), "orders");
        let mut row = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
        for _ in 0..2 {
            row.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
            row.extend(&packed);
        }
        assert_eq!(decompress(&row, Compression::Snappy).unwrap(), "ordersorders");
        row.pop();
        assert!(decompress(&row, Compression::Snappy).is_err(), "cut off");
    }

    #[test]
    fn oversized_batches_are_not_decompressed() {
        let bomb = gzip(&vec![0; BATCH_MAX + 1]);
        assert!(bomb.len() < BATCH_MAX / 100);
        assert!(
            decompress(&bomb, Compression::Gzip).unwrap_err().to_string().contains("more than")
        );
        // Its own word for how much it holds.
        assert!(decompress(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], Compression::Snappy).is_err());
    }

    #[test]
    fn every_codec_rejects_garbage() {
        for compression in
            [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
        {
            assert!(
                decompress(b"\xff\xff\xff\xff garbage", compression).is_err(),
                "{compression:?}"
            );
        }
    }
}
