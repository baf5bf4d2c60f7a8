//! The rules file, which the shim (this preload library) reads at the first socket call.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::OnceLock;

use weft_peer::shim::Rules;

/// The environment variable with the path of the rules file.
const VARIABLE: &str = "WEFT_SDP_RULES";
/// Maximum size of the rules file in bytes. Useful rules files are much smaller.
const MAX_FILE_LEN: u64 = 1 << 20;

/// The state of the rules.
pub(crate) enum RulesState {
    /// The environment variable is not set, so the shim does nothing.
    None,
    /// The rules in the file.
    Rules(Rules),
    /// The file cannot be used, so the shim does not know which connections need SDP. The shim
    /// makes connect(2) and listen(2) fail for all TCP sockets.
    Bad,
}

static RULES: OnceLock<RulesState> = OnceLock::new();

/// Returns the rules of this process. The first call reads the file.
pub(crate) fn rules() -> &'static RulesState {
    RULES.get_or_init(|| {
        let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return RulesState::None };
        match read(&path) {
            Ok(rules) => RulesState::Rules(rules),
            Err(error) => {
                report(&format!(
                    "cannot use the rules file {}: {error}; this program can neither connect nor listen by TCP",
                    path.display()
                ));
                RulesState::Bad
            }
        }
    })
}

/// Reads the rules in a file, or returns the error message. The size is limited, because an endless
/// file would exhaust the program's memory.
fn read(path: &OsStr) -> Result<Rules, String> {
    let mut octets = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_LEN + 1).read_to_end(&mut octets))
        .map_err(|error| error.to_string())?;
    if octets.len() as u64 > MAX_FILE_LEN {
        return Err("the file is longer than 1 MiB".to_owned());
    }
    let text = str::from_utf8(&octets).map_err(|_| "the file is not UTF-8 text".to_owned())?;
    Rules::parse(text, &program()).map_err(|error| error.to_string())
}

/// Returns the file name of the program. For a script, this is the file name of the interpreter.
fn program() -> String {
    let file =
        env::current_exe().ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    file.unwrap_or_default()
}

/// Prints a line on standard error. Ignores a failure to print.
pub(crate) fn report(what: &str) {
    let _ = writeln!(std::io::stderr(), "weft-preload: {what}");
}
