//! Why a target file or a target's name is rejected.

use super::BUILTIN;
use super::host::is_host_and_port;

/// Why a target file or a target's name is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The file cannot be read.
    #[error("cannot read {file}: {}", unreadable(.error))]
    Read {
        /// The file.
        file: String,
        /// The reason.
        error: std::io::Error,
    },
    /// There is no such file, and no builtin target of the name.
    #[error("{}", unknown(.name))]
    Unknown {
        /// The name on the command line.
        name: String,
    },
    /// The file is not TOML, or has a field that is unknown, missing or of another type. The line
    /// is not shown, because it may contain the agent's token.
    #[error("{file}: {place}{message}")]
    Toml {
        /// The file.
        file: String,
        /// Line and column, if they are known.
        place: String,
        /// The fault.
        message: String,
    },
    /// The fields contradict each other.
    #[error("{file}: {message}")]
    Sense {
        /// The file.
        file: String,
        /// The fault.
        message: String,
    },
    /// The deviation does not exist, or the target is not builtin.
    #[error("{0}")]
    Deviation(String),
    /// The target cannot be tested with markers.
    #[error("{0}")]
    Markers(String),
}

fn unknown(name: &str) -> String {
    if is_host_and_port(name) {
        return format!("{name} is an address, but weft needs a target file. {}", example_file(name));
    }
    format!("{name}: there is no such file, and no target of that name; {}", suggestion(name))
}

/// Returns the command that writes a target file for a responder at this address, and a short
/// target file with the command that checks it.
#[must_use]
pub fn example_file(address: &str) -> String {
    format!(
        "To probe the target and write the file: weft target add {address} --name nic\n\
         Or write these lines to nic.toml:\n\n\
         name = \"nic\"\n\
         kind = \"tcp\"\n\
         address = {address:?}\n\
         role = \"responder\"\n\
         service = \"echo\"    # the program on the target: \"echo\", \"rping\" (rping -s -P) or \"none\"\n\
         capabilities = [\"crc\", \"revision-1\"]\n\n\
         To check the file: weft target check nic.toml"
    )
}

fn suggestion(name: &str) -> String {
    match weft_core::spelling::nearest(name, BUILTIN) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("name a TOML file that describes a target, or one of {}", BUILTIN.join(", ")),
    }
}

fn unreadable(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::IsADirectory => "it is a directory; name a TOML file that describes a target".to_owned(),
        ErrorKind::InvalidData => "it is not a text file; name a TOML file that describes a target".to_owned(),
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
