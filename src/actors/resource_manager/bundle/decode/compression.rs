use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};

/// Decompresses the Brotli stream that fills `input`; `None` beyond `limit` bytes. A defective stream is an error
/// (upstream keeps what it read before), so that half of the manifests never counts as all.
pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Option<Vec<u8>>, &'static str> {
    const CHUNK: usize = 64 * 1024;

    let (alloc_u8, alloc_u32) = (HeapAlloc::<u8>::new(0), HeapAlloc::<u32>::new(0));
    // "Strict" is the format of RFC 7932: no windows of up to 1 GiB.
    let mut state = BrotliState::new_strict(alloc_u8, alloc_u32, HeapAlloc::new(HuffmanCode { value: 0, bits: 0 }));
    let (mut input_left, mut input_offset, mut total) = (input.len(), 0, 0);
    let mut output = Vec::new();
    let mut chunk = vec![0; CHUNK];

    loop {
        let (mut room, mut filled) = (CHUNK, 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut input_offset,
            input,
            &mut room,
            &mut filled,
            &mut chunk,
            &mut total,
            &mut state,
        );
        if output.len() + filled > limit {
            return Ok(None);
        }
        output.extend_from_slice(&chunk[..filled]);
        match result {
            BrotliResult::ResultSuccess if input_left > 0 => return Err("brotli: data after the end of the stream"),
            BrotliResult::ResultSuccess => return Ok(Some(output)),
            BrotliResult::NeedsMoreOutput => {}
            // All input was given at once, so waiting for more means that the stream is cut off.
            BrotliResult::NeedsMoreInput => return Err("brotli: the stream is cut off"),
            BrotliResult::ResultFailure => return Err("brotli: the stream is corrupt"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn compress(data: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut output, 4096, 5, 22);
        writer.write_all(data).unwrap();
        drop(writer);
        output
    }

    #[test]
    fn brotli_round_trip_keeps_the_data() {
        for size in [0, 1, 100, 200_000] {
            let data: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();

            assert_eq!(decompress(&compress(&data), 1 << 20), Ok(Some(data)), "{size}");
        }
    }

    #[test]
    fn brotli_stream_cut_anywhere_is_an_error() {
        let stream = compress(&b"some text, some text, some more text".repeat(50));

        for length in 0..stream.len() {
            assert!(decompress(&stream[..length], 1 << 20).is_err(), "{length}");
        }
    }

    #[test]
    fn brotli_data_after_the_end_is_an_error() {
        let mut stream = compress(b"text");
        stream.push(0);

        assert_eq!(decompress(&stream, 1 << 20), Err("brotli: data after the end of the stream"));
    }

    #[test]
    fn brotli_output_stops_at_the_limit() {
        let stream = compress(&vec![0; 1_000_000]);

        assert_eq!(decompress(&stream, 999_999), Ok(None));
        assert!(decompress(&stream, 1_000_000).unwrap().is_some());
    }
}
