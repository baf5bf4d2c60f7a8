//! `--decode-as`: the user names the protocol of a port if weft cannot detect the protocol.

use weft_dissector::Dissector;

/// The TCP ports that the user assigns to SDP.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DecodeAs {
    /// Decode this TCP port as SDP (if the capture lacks the start of a connection)
    #[arg(long = "decode-as", value_name = "PORT=sdp", value_parser = port)]
    decode_as: Vec<u16>,
}

impl DecodeAs {
    /// Applies these options to a dissector.
    pub(crate) fn apply(&self, mut dissector: Dissector) -> Dissector {
        self.decode_as.iter().for_each(|port| dissector.decode_as_sdp(*port));
        dissector
    }
}

/// Parses `PORT=sdp`.
fn port(text: &str) -> Result<u16, String> {
    let port = text.strip_suffix("=sdp").and_then(|port| port.parse().ok());
    port.ok_or_else(|| "use PORT=sdp, such as 5001=sdp; weft detects MPA, DDP and RDMAP on any port".to_owned())
}
