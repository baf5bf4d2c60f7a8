//! The rules file, read when the first socket call comes.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::OnceLock;

use weft_peer::shim::Rules;

/// The variable that names the file.
const VARIABLE: &str = "WEFT_SDP_RULES";
/// Octets that the file has at most: far more than the rules that there may be.
const LONGEST: u64 = 1 << 20;

/// What is known of the rules.
pub(crate) enum Known {
    /// There is no such variable: nothing is to be done.
    None,
    /// They are these.
    Rules(Rules),
    /// There is no telling what was meant; nothing may connect or listen.
    Bad,
}

static RULES: OnceLock<Known> = OnceLock::new();

/// The rules of this process.
pub(crate) fn rules() -> &'static Known {
    RULES.get_or_init(|| {
        let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Known::None };
        match read(&path) {
            Ok(rules) => Known::Rules(rules),
            Err(error) => {
                tell(&format!("{}: {error}; nothing connects or listens by TCP", path.display()));
                Known::Bad
            }
        }
    })
}

/// The rules of a file, or what is wrong with it. One without an end would take the program's memory.
fn read(path: &OsStr) -> Result<Rules, String> {
    let mut octets = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut octets))
        .map_err(|error| error.to_string())?;
    if octets.len() as u64 > LONGEST {
        return Err("it is longer than 1 MiB".to_owned());
    }
    let text = str::from_utf8(&octets).map_err(|_| "it is no text in UTF-8".to_owned())?;
    Rules::parse(text, &program()).map_err(|error| error.to_string())
}

/// The name of the program's file; of a script, that of its interpreter.
fn program() -> String {
    let file =
        env::current_exe().ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    file.unwrap_or_default()
}

/// A line on standard error. Whether anybody can read it is not our concern.
pub(crate) fn tell(what: &str) {
    let _ = writeln!(std::io::stderr(), "weft-preload: {what}");
}
