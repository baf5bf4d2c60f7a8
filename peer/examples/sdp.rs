//! An SDP echo or its client on 127.0.0.1, to be tried against other implementations.
//!
//! `sdp serve|connect [port=N] [profile=swapped|bare|natural|enhanced|private-data] [order=figure|mirrored]
//! [mode=combined|pipelined|buffered] [answer=read|sendsm|mixed] [threshold=N] [bufs=N] [size=N] [octets=N] [piece=N]`
//!
//! `serve` prints its port, echoes one connection and closes. `connect` sends `octets` in pieces and holds what comes back against
//! them; it fails when they differ.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::{Half, Policy, Profile, Settings, SrcAvailAnswer};
use weft_peer::verbs::{Node, RnicSettings};

struct Words(HashMap<String, String>);

impl Words {
    fn number<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> Result<T, String> {
        let Some(word) = self.0.get(name) else { return Ok(otherwise) };
        word.parse().map_err(|_| format!("{name}={word} is no number of its range"))
    }

    fn one_of<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<T, String> {
        let Some(word) = self.0.get(name) else { return of.first().map(|(_, value)| *value).ok_or_default() };
        of.iter().find(|(known, _)| known == word).map(|(_, value)| *value).ok_or(format!("{name}={word} is unknown"))
    }
}

trait OkOrDefault<T> {
    fn ok_or_default(self) -> Result<T, String>;
}

impl<T> OkOrDefault<T> for Option<T> {
    fn ok_or_default(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing to choose from".to_owned())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    let split = |word: String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let words = Words(arguments.filter_map(split).collect());
    let profiles = [
        ("swapped", Profile::Swapped),
        ("bare", Profile::Bare),
        ("natural", Profile::Natural),
        ("enhanced", Profile::Enhanced),
        ("private-data", Profile::PrivateData),
    ];
    let answers =
        [("read", SrcAvailAnswer::Read), ("sendsm", SrcAvailAnswer::SendSm), ("mixed", SrcAvailAnswer::ReadThenSendSm)];
    let policy = Policy {
        source_threshold: words.number("threshold", 2000)?,
        sink_threshold: 0,
        answer: words.one_of("answer", &answers)?,
        max_src_avail: words.number("advert", 1 << 30)?,
        ..Policy::default()
    };
    let sdp = Settings {
        profile: words.one_of("profile", &profiles)?,
        order: words.one_of("order", &[("figure", FieldOrder::Figure), ("mirrored", FieldOrder::Mirrored)])?,
        bufs: words.number("bufs", 16)?,
        recv_size: words.number("size", 1024)?,
        des_rem_rcv_sz: words.number("size", 1024)?,
        policy,
        ..Settings::default()
    };
    let settings = SdpSettings { sdp, receive: words.number("receive", 1 << 14)?, ..SdpSettings::default() };
    let modes = [("combined", Mode::Combined), ("pipelined", Mode::Pipelined), ("buffered", Mode::Buffered)];
    let mode = words.one_of("mode", &modes)?;
    let address = SocketAddr::from(([127, 0, 0, 1], words.number("port", 0)?));
    let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default())?;
    let device = Device::new(rnic);
    match role.as_str() {
        "serve" => {
            let listener = SdpListener::bind(&device, address, settings)?;
            println!("listening on {}", listener.local_addr()?.port());
            let stream = listener.accept().await?;
            change_mode(&stream, mode)?;
            echo(stream).await
        }
        "connect" => {
            let stream = SdpStream::connect(&device, address, settings).await?;
            change_mode(&stream, mode)?;
            client(stream, words.number("octets", 100_000)?, words.number("piece", 5000)?).await
        }
        _ => Err("serve or connect".into()),
    }
}

fn change_mode(stream: &SdpStream, mode: Mode) -> Result<(), Box<dyn Error>> {
    if mode != Mode::Combined {
        stream.set_mode(Half::Out, mode)?;
    }
    Ok(())
}

async fn echo(mut stream: SdpStream) -> Result<(), Box<dyn Error>> {
    let (mut buffer, mut all) = (vec![0; 10_000], 0);
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        all += read;
        stream.write_all(buffer.get(..read).unwrap_or_default()).await?;
    }
    stream.shutdown().await?;
    stream.closed().await;
    println!("echoed {all}");
    Ok(())
}

async fn client(stream: SdpStream, octets: usize, piece: usize) -> Result<(), Box<dyn Error>> {
    let expected: Vec<u8> = (0..octets).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent = expected.clone();
    let writing = tokio::spawn(async move {
        for piece in sent.chunks(piece.max(1)) {
            writer.write_all(piece).await?;
        }
        writer.shutdown().await?;
        Ok::<_, std::io::Error>(writer)
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await?;
    let stream = reader.unsplit(writing.await??);
    stream.closed().await;
    if got != expected {
        let same = got.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        return Err(format!("{} octets came back of {octets}; they differ from {same} on", got.len()).into());
    }
    println!("{octets} octets went and came");
    Ok(())
}
