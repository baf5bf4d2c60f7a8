//! `generate OUT MEGABYTES [CONNECTIONS [BAD_CRC_EVERY]]` writes a pcap file with iWARP connections
//! to OUT. Every FPDU number BAD_CRC_EVERY has a bad CRC. The program prints one line about the
//! content: `frames N, FPDUs N, bad CRCs N`.

use std::fs::File;
use std::io::{self, BufWriter};

use weft_bench::generate;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text.parse::<u64>().map_err(io::Error::other),
        None => Ok(default),
    };
    let Some(path) = arguments.first() else {
        return Err(io::Error::other("usage: generate OUT MEGABYTES [CONNECTIONS [BAD_CRC_EVERY]]"));
    };
    let connections = usize::try_from(number(2, 1)?).map_err(io::Error::other)?;
    let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let truth = generate(out, number(1, 200)? * 1_000_000, connections, number(3, 50)?)?;
    println!("frames {}, FPDUs {}, bad CRCs {}", truth.frames, truth.fpdus, truth.bad);
    Ok(())
}
