//! A run as one zip file: its report, its evidence, and their hashes.
//!
//! The server makes the zip while it sends the zip. It writes no temporary file. The report comes
//! first. After the report, the server has in memory only one file of evidence and the pieces in
//! the queue. Each export needs a permit. If a client reads nothing for some time, the export fails
//! and its permit is free again. A client that gets no permit in time has to try again. Paths come
//! from the stored results and must lead into the folder `cases` of the run, as for the evidence
//! pages.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use weft_suites::model::RunReport;
use weft_suites::report;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::evidence::{bases, of_case};
use super::extract::Path as Address;
use super::find::find_record;
use crate::app::App;
use crate::failure::Failure;
use crate::hex::hex;

/// The length of a piece in bytes.
const PIECE: usize = 64 << 10;
/// The maximum number of pieces in the queue.
const PIECES: usize = 4;
/// Name of the file with the hashes of all other files in the zip.
const HASHES: &str = "SHA256SUMS";

type Sender = mpsc::Sender<io::Result<Bytes>>;

pub(super) async fn zip(State(app): State<App>, Address(run): Address<String>) -> Result<Response, Failure> {
    let record = find_record(&app, &run).await?;
    let Ok(Ok(permit)) = timeout(app.exports.wait, app.exports.permits.clone().acquire_owned()).await else {
        return Err(Failure::Busy("Too many runs are being exported. Try again in a second."));
    };
    let report = app.store.report(&run).await?.ok_or(Failure::NotFound("The store has no such run."))?;
    let (sender, receiver) = mpsc::channel(PIECES);
    // The queue of pieces may be full, so an error has a queue of its own.
    let (error_sender, error_receiver) = mpsc::channel(1);
    let (folder, piece_timeout) = (app.folder.clone(), app.exports.piece_timeout);
    tokio::task::spawn_blocking(move || {
        let pieces = Pieces { sender, piece_timeout, piece: Vec::new(), is_over: false };
        let written = write(report, &folder, pieces);
        drop(permit);
        if let Err(error) = written {
            tracing::warn!("cannot send the zip file of a run: {error}");
            // The error resets the connection. The client then notices that the file is incomplete.
            // If the client is gone, sending fails.
            let _ = error_sender.try_send(Err(error));
        }
    });
    let pieces = ReceiverStream::new(receiver).chain(ReceiverStream::new(error_receiver));
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    let name: String = record.info.id.chars().map(safe).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"weft-{name}.zip\"")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

fn write(mut report: RunReport, folder: &Path, pieces: Pieces) -> io::Result<()> {
    let bases = bases(folder, &report.run);
    let find = |path: &str| bases.iter().find_map(|base| Some((base, of_case(folder, base, Path::new(path))?)));
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    let mut out = folder.to_owned();
    for result in &mut report.results {
        // The report omits files that are missing or outside the folder.
        result.evidence.files.retain(|file| match find(&file.path) {
            Some((base, real)) => {
                out = folder.join(base);
                files.push((file.path.clone(), real));
                true
            }
            None => false,
        });
    }
    let mut zip = Zip { zip: ZipWriter::new_stream(pieces), hashes: String::new() };
    zip.add("report.html", report::html(&report, &out).map_err(io::Error::other)?.as_bytes())?;
    zip.add("report.json", report::json(&report).map_err(io::Error::other)?.as_bytes())?;
    drop(report);
    for (path, real) in files {
        zip.add(&path, &std::fs::read(real)?)?;
    }
    zip.finish()
}

struct Zip {
    zip: ZipWriter<StreamWriter<Pieces>>,
    /// The lines of [`HASHES`], in the format of `sha256sum`.
    hashes: String,
}

impl Zip {
    fn add(&mut self, path: &str, octets: &[u8]) -> io::Result<()> {
        let digest: [u8; 32] = Sha256::digest(octets).into();
        let _ = writeln!(self.hashes, "{}  {path}", hex(&digest));
        self.put(path, octets)
    }

    fn put(&mut self, path: &str, octets: &[u8]) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        self.zip.start_file(path, options)?;
        self.zip.write_all(octets)
    }

    fn finish(mut self) -> io::Result<()> {
        let hashes = std::mem::take(&mut self.hashes);
        self.put(HASHES, hashes.as_bytes())?;
        self.zip.finish()?.into_inner().flush()
    }
}

/// A writer that sends bytes to the body of the response in pieces. If the client does not read a
/// piece within `piece_timeout`, writing fails.
struct Pieces {
    sender: Sender,
    piece_timeout: Duration,
    piece: Vec<u8>,
    /// Whether writing has failed. A [`ZipWriter`] still writes when it is dropped. These bytes are
    /// discarded.
    is_over: bool,
}

impl Write for Pieces {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(octets.len());
        }
        let room = PIECE.saturating_sub(self.piece.len()).min(octets.len());
        self.piece.extend_from_slice(octets.get(..room).unwrap_or_default());
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        let sent = Handle::current().block_on(timeout(self.piece_timeout, self.sender.send(Ok(piece.into()))));
        let failed = match sent {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => io::ErrorKind::BrokenPipe,
            Err(_) => io::ErrorKind::TimedOut,
        };
        self.is_over = true;
        Err(failed.into())
    }
}
