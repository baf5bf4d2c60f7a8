//! The rules file, read at the first socket call.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::OnceLock;

use weft_peer::shim::Rules;

/// The variable that names the file.
const VARIABLE: &str = "WEFT_SDP_RULES";
/// Maximum size of the file in bytes: far more than the largest set of rules.
const LONGEST: u64 = 1 << 20;

/// The state of the rules.
pub(crate) enum Known {
    /// The variable is not set: the shim does nothing.
    None,
    /// The rules of the file.
    Rules(Rules),
    /// The file is unusable. Its intent is unknown, so nothing may connect or listen.
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
                report(&format!("{}: {error}; nothing connects or listens by TCP", path.display()));
                Known::Bad
            }
        }
    })
}

/// The rules of a file, or the error. The size is limited because an endless file would exhaust the
/// program's memory.
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

/// The name of the program's file; for a script, that of its interpreter.
fn program() -> String {
    let file =
        env::current_exe().ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    file.unwrap_or_default()
}

/// Prints a line on standard error. A failure to print is ignored.
pub(crate) fn report(what: &str) {
    let _ = writeln!(std::io::stderr(), "weft-preload: {what}");
}
