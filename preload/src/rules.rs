//! The rules file, read when the first socket call comes.

use std::env;
use std::fs;
use std::io::Write;
use std::sync::OnceLock;

use weft_peer::shim::Rules;

/// The variable that names the file.
const VARIABLE: &str = "WEFT_SDP_RULES";

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
        let read = fs::read_to_string(&path).map_err(|error| error.to_string());
        match read.and_then(|text| Rules::parse(&text).map_err(|error| error.to_string())) {
            Ok(rules) => Known::Rules(rules),
            Err(error) => {
                tell(&format!("{}: {error}; nothing connects or listens by TCP", path.display()));
                Known::Bad
            }
        }
    })
}

/// A line on standard error. Whether anybody can read it is not our concern.
pub(crate) fn tell(what: &str) {
    let _ = writeln!(std::io::stderr(), "weft-preload: {what}");
}
