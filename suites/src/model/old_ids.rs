//! Old ids and parameter values of renamed cases.
//!
//! Old ids still select cases and baseline entries, with a warning. Results of earlier versions are
//! read as results of the renamed cases.

use std::borrow::Cow;

use super::key::{CaseKey, ParameterValue};

/// The beginnings of old ids, each with its replacement. The first match counts.
const IDS: [(&str, &str); 25] = [
    ("mpa-p2p/9.1-told/", "mpa-p2p/9.1-reported/"),
    ("mpa/7.1.1-told/said-in-request", "mpa/7.1.1-reported/sent-in-request"),
    ("mpa/7.1.1-told/said-in-reply", "mpa/7.1.1-reported/sent-in-reply"),
    ("mpa/7.1.1-told/", "mpa/7.1.1-reported/"),
    ("mpa/4.3-markers/asked", "mpa/4.3-markers/requested"),
    ("mpa/4.4-crc/asked-by-one", "mpa/4.4-crc/requested-by-one"),
    ("mpa/4.4-crc/asked", "mpa/4.4-crc/requested"),
    ("rdmap/4.8-terminate/nothing-behind", "rdmap/4.8-terminate/nothing-after"),
    ("rdmap/6.2-ended/posts-behind-it", "rdmap/6.2-ended/posts-after-it"),
    ("rdmap/7.2-messages/response-unasked", "rdmap/7.2-messages/response-unrequested"),
    ("rdmap/7306-delivered/atomic-behind-", "rdmap/7306-delivered/atomic-after-"),
    ("rdmap/7306-extensions/unasked", "rdmap/7306-extensions/unrequested"),
    ("sdp/10.6-resize/as-asked", "sdp/10.6-resize/as-requested"),
    ("sdp/10.6-resize/more-than-asked", "sdp/10.6-resize/more-than-requested"),
    ("sdp/10.6-resize/asked-again", "sdp/10.6-resize/requested-again"),
    ("sdp/10.6-resize/sink-avail-behind-growth", "sdp/10.6-resize/sink-avail-after-growth"),
    ("sdp/13.1-suspension/asked-again", "sdp/13.1-suspension/requested-again"),
    ("sdp/6-tolerated/oob-behind-octets", "sdp/6-tolerated/oob-after-bytes"),
    ("sdp/8.1.1-profiles/target-connects-whole", "sdp/8.1.1-profiles/hello-of-target"),
    ("sdp/8.2.1-close/aborted-behind", "sdp/8.2.1-close/aborted-after"),
    ("sdp/9.2-advertised/asked-for-in-order", "sdp/9.2-advertised/requested-in-order"),
    ("sdp/9.3-written/fresh-behind-data", "sdp/9.3-written/fresh-after-data"),
    ("sdp/9-transfer/read-whole", "sdp/9-transfer/read-from-first-byte"),
    ("sdp-pm/7.5-client/unasked", "sdp-pm/7.5-client/unrequested"),
    ("sdp-pm/7.5-repeats/denied-then-asked", "sdp-pm/7.5-repeats/denied-then-requested"),
];

/// Renamed values of parameters: the new id of the case, the parameter, its old value, its new
/// value.
const VALUES: [(&str, &str, &str, &str); 5] = [
    ("mpa-p2p/9.1-reported/reply", "private_data", "what the user says", "private data"),
    ("mpa-p2p/9.1-reported/request", "private_data", "what the user says", "private data"),
    ("mpa/7.1.1-pd-length/fin-too-early", "fin", "behind", "together"),
    ("sdp-pm/7.4-client/accepts-deny", "port", "asked", "requested"),
    ("sdp-pm/7.4-client/any-denied-port", "port", "asked", "requested"),
];

/// Returns the current id of a case.
fn current_id(id: &str) -> Cow<'_, str> {
    match IDS.iter().find_map(|(old, new)| Some((new, id.strip_prefix(old)?))) {
        Some((new, rest)) => Cow::Owned(format!("{new}{rest}")),
        None => Cow::Borrowed(id),
    }
}

/// Returns the current key of a case.
pub(super) fn current(mut key: CaseKey) -> CaseKey {
    if let Cow::Owned(id) = current_id(&key.case) {
        key.case = id;
    }
    for (case, parameter, old, new) in VALUES {
        if key.case == case
            && let Some(ParameterValue::Text(value)) = key.parameters.get_mut(parameter)
            && value == old
        {
            new.clone_into(value);
        }
    }
    key
}

/// Returns the current spelling of a name from the user: a key, a case id, or a folder of cases.
/// Logs a warning if the name is old.
pub(crate) fn current_word(word: &str) -> String {
    let renamed = match word.parse::<CaseKey>() {
        Ok(key) if !key.parameters.is_empty() => key.to_string(),
        // The folders in `IDS` end with a slash. A word without a slash would match none of them.
        _ if word.ends_with("-told") => current_id(&format!("{word}/")).trim_end_matches('/').to_owned(),
        _ => current_id(word).into_owned(),
    };
    if renamed != word {
        tracing::warn!("`{word}` is an old name; use `{renamed}`");
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ids_and_values_are_read_as_new_ones() {
        for (old, new) in [
            ("mpa/4.4-crc/asked-by-one", "mpa/4.4-crc/requested-by-one"),
            ("mpa/7.1.1-told/said-in-reply", "mpa/7.1.1-reported/sent-in-reply"),
            ("mpa/7.1.1-told/reply[length=255]", "mpa/7.1.1-reported/reply[length=255]"),
            ("mpa/7.1.1-pd-length/fin-too-early[fin=behind]", "mpa/7.1.1-pd-length/fin-too-early[fin=together]"),
            ("mpa/7.1.1-pd-length/fin-too-early[fin=later]", "mpa/7.1.1-pd-length/fin-too-early[fin=later]"),
            ("mpa/7.1.1-told", "mpa/7.1.1-reported"),
            ("mpa", "mpa"),
            ("MPA-7.1.1-2", "MPA-7.1.1-2"),
        ] {
            assert_eq!(current_word(old), new);
            assert_eq!(current_word(new), new);
        }
        let stored = r#"{ "case": "sdp/10.6-resize/as-asked", "parameters": {} }"#;
        let key: CaseKey = serde_json::from_str(stored).unwrap();
        assert_eq!(key.case, "sdp/10.6-resize/as-requested");
    }

    #[test]
    fn every_new_id_is_a_case() {
        let suites = crate::script::Suites::embedded().unwrap();
        for (_, new) in IDS {
            assert!(suites.cases().any(|case| case.id.starts_with(new)), "{new}");
        }
        for (case, ..) in VALUES {
            assert!(suites.cases().any(|known| known.id == case), "{case}");
        }
    }
}
