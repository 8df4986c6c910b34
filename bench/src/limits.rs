//! What the machine allows by itself, measured in the same run: syncs of the disk, JSON of the rows
//! that a step writes, encoded and read back.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::time::Instant;

use noetl_model::row::EventRow;

use crate::report::line;
use crate::work::Work;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes written before each sync: about what the commit of one step adds to a log.
const SYNCED_BYTES: usize = 16 * 1024;

/// Syncs per measurement.
const SYNCS: usize = 500;

/// Rows that are encoded and read back.
const ROWS: usize = 200_000;

/// The median microseconds of a sync, of a file that grows and of one that is written again, in the
/// directory that databases are made in.
pub(crate) fn fsync() -> Outcome<(String, f64)> {
    let directory = tempfile::tempdir_in(".")?;
    let mut file = File::create(directory.path().join("synced"))?;
    let growing = syncs(&mut file)?;
    file.seek(SeekFrom::Start(0))?;
    let again = syncs(&mut file)?;
    let fields = [
        ("bytes", SYNCED_BYTES as f64),
        ("growing_p50_us", growing),
        ("again_p50_us", again),
        ("per_second", 1e6 / again),
    ];
    Ok((line("fsync", "disk", &fields), growing))
}

fn syncs(file: &mut File) -> Outcome<f64> {
    let bytes = vec![b'x'; SYNCED_BYTES];
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS / 2])
}

/// Rows that a step writes: encoded from events, decoded into them, and their JSON parsed alone.
pub(crate) fn json() -> Outcome<String> {
    let mut work = Work::new(0, 64);
    let mut events = Vec::with_capacity(ROWS);
    while events.len() < ROWS {
        events.extend(work.next().into_iter().flat_map(|append| append.events));
    }
    let started = Instant::now();
    let rows: Vec<EventRow> = events.iter().map(|event| EventRow::from(&**event)).collect();
    let encode = rows.len() as f64 / started.elapsed().as_secs_f64();
    let texts: Vec<&str> = rows
        .iter()
        .flat_map(|row| [&row.context, &row.result, &row.meta])
        .filter_map(Option::as_deref)
        .collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let started = Instant::now();
    for text in texts {
        std::hint::black_box(serde_json::from_str::<serde_json::Value>(text)?);
    }
    let parsing = started.elapsed().as_secs_f64();
    let (parse, megabytes) = (rows.len() as f64 / parsing, bytes as f64 / 1e6 / parsing);
    let started = Instant::now();
    for row in rows {
        std::hint::black_box(row.decode()?);
    }
    let decode = events.len() as f64 / started.elapsed().as_secs_f64();
    let fields = [
        ("rows", events.len() as f64),
        ("encoded_rows_per_second", encode),
        ("decoded_rows_per_second", decode),
        ("parsed_rows_per_second", parse),
        ("parsed_megabytes_per_second", megabytes),
    ];
    Ok(line("json", "none", &fields))
}
