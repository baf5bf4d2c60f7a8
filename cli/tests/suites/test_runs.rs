//! Tests options of `weft test`, and the commands `weft diff`, `weft suite`, `weft coverage` and
//! `weft target`.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::{Command, Output};

use crate::test_resume::{suites, text};

const CASE: &str = "mpa/7.1.1-key/wrong-octet";

fn weft(arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_weft")).env_remove("WEFT_STORE").args(arguments).output().unwrap();
    (status.code().unwrap(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn a_case_is_shown_with_its_requirement_and_its_script() {
    let (code, text) = weft(&["suite", "show", CASE]);
    assert_eq!(code, 0, "{text}");
    for part in ["MPA-7.1.1-2 MUST", "parameter     octet = 0, 1,", "smoke: a sample of 2", "conn:expect_close"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (code, text) = weft(&["suite", "show", "wrong-octet"]);
    assert!(code == 2 && text.contains(CASE), "{text}");
}

#[test]
fn tiers_and_shards_limit_the_cases() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "out");
    let count = |more: &[&str]| {
        let (code, text) = weft(&[&["test", "builtin", CASE, "--out", &out, "--seed", "1"], more].concat());
        assert_eq!(code, 0, "{text}");
        text.lines().filter(|line| line.trim_start().starts_with("pass")).count()
    };
    assert_eq!(count(&["--tier", "smoke"]), 2);
    assert_eq!(count(&["--tier", "full", "--jobs", "2"]), 16);
    assert_eq!((1..=3).map(|part| count(&["--shard", &format!("{part}/3")])).sum::<usize>(), 16);
    assert_eq!(weft(&["test", "builtin", "--shard", "4/3", "--out", &out]).0, 2);
    // The shards of a sample are disjoint, and together they have all cases of the sample. This is
    // also true without `--seed`.
    let of_sample = |part: &str| {
        let (code, text) = weft(&[
            "test",
            "builtin",
            "mpa/7.1.1-key",
            "mpa/7.1.1-flags",
            "--tier",
            "smoke",
            "--shard",
            part,
            "--out",
            &out,
        ]);
        assert_eq!(code, 0, "{text}");
        text.lines()
            .filter_map(|line| Some(line.trim().strip_prefix("pass")?.split_whitespace().next()?.to_owned()))
            .collect()
    };
    let all: std::collections::BTreeSet<String> = of_sample("1/1");
    let (mut parts, other) = (of_sample("1/2"), of_sample("2/2"));
    assert!(all.len() > 2 && parts.is_disjoint(&other), "{parts:?} {other:?}");
    parts.extend(other);
    assert_eq!(parts, all);
    // `weft suite list` lists the same variants for a shard as `weft test` runs.
    let listed = |part: &str| weft(&["suite", "list", CASE, "--shard", part]).1;
    assert!(listed("1/3").contains("(6 variants)") && listed("2/3").contains("(5 variants)"), "{}", listed("1/3"));
}

#[test]
fn a_word_that_selects_nothing_gets_a_suggestion() {
    for (word, hint) in [
        ("mpa/7.1.1-kee", "did you mean mpa/7.1.1-key?"),
        ("mpa/7.1.1-key/wrong-octets", "did you mean mpa/7.1.1-key/wrong-octet?"),
        ("startupp", "did you mean startup?"),
        ("mpa/7.1.1-key/wrong-octet[octet=16]", "no such variant; `weft suite show mpa/7.1.1-key/wrong-octet`"),
        ("MPA-7.9", "`weft requirements MPA-7.9`"),
        ("something-else-altogether", "`weft suite list` lists all cases"),
    ] {
        for arguments in [["test", "builtin", word], ["suite", "list", word]] {
            let (code, text) = weft(&arguments);
            assert!(code == 2 && text.contains(hint), "{text}");
        }
    }
    let (code, text) = weft(&["test", "builtin", "mpa/7.1.1-pd"]);
    assert!(code == 2 && text.contains("did you mean mpa/7.1.1-pd-length?"), "{text}");
}

#[test]
fn a_list_searches_ids_and_titles_for_words() {
    let (code, text) = weft(&["suite", "list", "PRIVATE data more than 512"]);
    let too_long = "mpa/7.1.1-pd-length/too-long  The responder closes without a Reply on a Request with more than";
    assert!(code == 0 && text.contains(too_long), "{text}");
    assert!(!text.contains("mpa/7.1.1-key"), "{text}");
    // The requirement that the user named is one of the few ids after the title.
    let (code, text) = weft(&["suite", "list", "MPA-7.1.2-4"]);
    assert!(code == 0 && text.lines().skip(1).step_by(2).all(|ids| ids.trim().starts_with("MPA-7.1.2-4")), "{text}");
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    for arguments in [["--prove", "--deviate", "mpa.accepts-wrong-key"], ["--list", "--rerun", "failed"]] {
        let (code, text) = weft(&[&["test", CASE][..], &arguments].concat());
        assert!(code == 2 && text.contains(arguments[0]) && text.contains(arguments[1]), "{text}");
    }
    // A run that is resumed keeps its selection of cases, so `--resume` rejects options that would
    // change the selection.
    for (more, named) in [(&[CASE][..], "[SELECT]"), (&["--tier", "full"], "--tier"), (&["--shard", "1/2"], "--shard")]
    {
        let (code, text) = weft(&[&["test", "builtin", "--resume"][..], more].concat());
        assert!(code == 2 && text.contains("'--resume'") && text.contains(named), "{text}");
        assert!(text.ends_with("use only: weft test TARGET --out DIR --resume\n") && !text.contains("Usage"), "{text}");
    }
}

#[test]
fn jobs_of_a_target_that_runs_one_case_at_a_time_are_reported_as_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (path(folder.path(), "out"), path(folder.path(), "nic.toml"));
    // This address has no listener. Only the text that weft prints before it connects matters.
    std::fs::write(&file, "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nrole = \"responder\"\n").unwrap();
    let key = format!("{CASE}[octet=3]");
    let text = weft(&["test", &file, &key, "--out", &out, "--jobs", "4"]).1;
    assert!(text.contains("--jobs 4 is ignored: this target runs one case at a time"), "{text}");
    let text = weft(&["test", "builtin", &key, "--out", &out, "--jobs", "4"]).1;
    assert!(!text.contains("is ignored"), "{text}");
}

#[test]
fn failed_cases_are_run_again_and_two_runs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (path(folder.path(), "good"), path(folder.path(), "bad"));
    let deviate = ["--deviate", "mpa.accepts-wrong-key"];
    assert_eq!(weft(&["test", "builtin", CASE, "--out", &good]).0, 0);
    assert_eq!(weft(&[&["test", "builtin", CASE, "--out", &bad][..], &deviate].concat()).0, 1);
    let (code, text) = weft(&["diff", &good, &bad]);
    assert!(code == 1 && text.contains("newly failing: 16"), "{text}");
    let (code, text) = weft(&["diff", &bad, &path(folder.path(), "good/report.json"), "--json"]);
    let diff: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, diff["fixed"].as_array().unwrap().len()), (0, 16));
    assert_eq!(weft(&["diff", &bad, "nothing"]).0, 2);
    // If cases are only in one of the two runs, `weft diff` lists at most 20 of them.
    let more = path(folder.path(), "more");
    assert_eq!(weft(&["test", "builtin", "mpa/7.1.1-key", "mpa/7.1.1-pd-length", "--seed", "2", "--out", &more]).0, 0);
    let (code, text) = weft(&["diff", &good, &more]);
    let added: usize = text.lines().find_map(|line| line.strip_prefix("added: ")).unwrap().parse().unwrap();
    assert!(code == 0 && added > 20 && text.contains(&format!("and {} more; --json lists all", added - 20)), "{text}");
    assert_eq!(text.matches("  mpa/7.1.1-pd-length/").count(), 20, "{text}");
    assert!(text.contains("Use the same --seed for both"), "{text}");
    // `--rerun failed` runs all sixteen failed variants, and no others. The reruns use a target
    // without the deviation. This is a different target, so a pass does not replace the failures of
    // the first run. Therefore the second `--rerun failed` runs the same variants again.
    for _ in 0..2 {
        let (code, text) = weft(&["test", "builtin", "--rerun", "failed", "--out", &bad]);
        assert!(code == 0 && text.contains("16 cases: 16 pass"), "{text}");
    }
}

/// Two runs of a tier have the same variants, so a comparison shows only changes of the target.
#[test]
fn runs_without_a_seed_are_compared_variant_by_variant() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[&str]| {
        let out = path(folder.path(), name);
        let test = ["test", "builtin", "mpa/7.1.1-key", "mpa/7.1.1-pd-length", "--tier", "smoke", "--out", &out];
        let (code, text) = weft(&[&test[..], more].concat());
        (code, text, out)
    };
    let (first, second) = (run("first", &[]), run("second", &[]));
    assert!(first.0 == 0 && first.1.contains("seed 1"), "{}", first.1);
    let (code, text) = weft(&["diff", &first.2, &second.2]);
    assert!(code == 0 && !text.contains("not run: ") && !text.contains("added: "), "{text}");
    assert!(!text.contains("The seeds are"), "{text}");
    let seed = |out: &str| {
        let report = std::fs::read(Path::new(out).join("report.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&report).unwrap()["run"]["seed"].as_u64().unwrap()
    };
    assert_eq!((seed(&first.2), seed(&second.2)), (1, 1));
    // With `random`, a run has another seed, and so has each run of a repetition.
    let (code, text, out) = run("random", &["--seed", "random", "--repeat", "2"]);
    let earlier = std::fs::read_dir(Path::new(&out).join("earlier")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(code, 0, "{text}");
    assert!(seed(&out) != 1 && seed(&out) != seed(&earlier.display().to_string()), "{text}");
    let (code, text, _) = run("part", &["--seed", "random", "--shard", "1/2"]);
    assert!(code == 2 && text.contains("--shard needs the same seed"), "{text}");
    let (code, text, _) = run("wrong", &["--seed", "x"]);
    assert!(code == 2 && text.contains("expected a number, or the word random"), "{text}");
}

#[test]
fn a_rerun_that_passes_leaves_nothing_to_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    let run = |pause: &str, more: &[&str]| {
        suites(&scripts, pause);
        let output = crate::test_resume::weft(&out, &scripts, more).output().unwrap();
        (output.status.code(), text(&output))
    };
    let (code, printed) = run("if p.n > 2 then error('x') end", &[]);
    assert_eq!(code, Some(4), "{printed}");
    let (code, printed) = run("if p.n > 3 then error('x') end", &["--rerun", "failed"]);
    assert!(code == Some(4) && printed.contains("2 cases: 1 error, 1 pass"), "{printed}");
    // A run of one selected variant does not change what `--rerun failed` runs next.
    let (code, printed) = run("", &["mpa/x/one[n=1]"]);
    assert!(code == Some(0), "{printed}");
    let (code, printed) = run("", &["--rerun", "failed"]);
    assert!(code == Some(0) && printed.contains("1 case: 1 pass"), "{printed}");
    let (code, printed) = run("", &["--rerun", "failed"]);
    assert!(code == Some(2) && printed.contains("no case failed"), "{printed}");
}

#[test]
fn repeating_ends_where_something_fails() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "out");
    let key = format!("{CASE}[octet=3]");
    let (code, text) = weft(&["test", "builtin", &key, "--repeat", "3", "--out", &out]);
    assert!(code == 0 && text.ends_with("3 runs\n"), "{text}");
    let deviate = ["--deviate", "mpa.accepts-wrong-key", "--until-fail", "--out", &out];
    let (code, text) = weft(&[&["test", "builtin", &key][..], &deviate].concat());
    assert!(code == 1 && text.ends_with("1 run\n"), "{text}");
}

#[test]
fn a_baseline_in_the_target_file_decides_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (path(folder.path(), "out"), path(folder.path(), "nic.toml"));
    let target = "name = \"nic\"\nkind = \"builtin\"\ndeviations = [\"mpa.accepts-wrong-key\"]\n";
    let entry = |case: &str| {
        format!(
            "[[baseline]]\ncase = \"{case}\"\noutcome = \"fail\"\nsignature = \"MPA-7.1.1-2: it sent an MPA Reply\"\nreason = \"ticket 7\"\n"
        )
    };
    let run = |baseline: &str| {
        std::fs::write(&file, format!("{target}{baseline}")).unwrap();
        weft(&["test", &file, CASE, "--out", &out])
    };
    let (code, text) = run(&entry(CASE));
    assert!(code == 0 && text.contains("16 fail; the baseline expects 16 fail; "), "{text}");
    let (code, text) = run(&(entry(CASE) + &entry("mpa/7.1.1-key/no-more")));
    assert!(code == 1 && text.contains("stale entry of the baseline: mpa/7.1.1-key/no-more"), "{text}");
    assert_eq!(run("").0, 1);
}

#[test]
fn labels_of_the_command_line_are_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "out");
    let key = format!("{CASE}[octet=3]");
    let test = ["test", "builtin", &key, "--out", &out];
    let (code, text) = weft(&[&test[..], &["--label", "firmware=2.1", "--label", "host=lab-3"]].concat());
    assert!(code == 0 && text.contains("\nlabels: firmware=2.1, host=lab-3\n"), "{text}");
    for (label, words) in [("firmware", "expected KEY=VALUE"), ("firm ware=2", "expected a name")] {
        let (code, text) = weft(&[&test[..], &["--label", label]].concat());
        assert!(code == 2 && text.contains(words), "{text}");
    }
}

#[test]
fn a_baseline_of_a_run_makes_the_next_run_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let (out, known) = (path(folder.path(), "out"), path(folder.path(), "known.toml"));
    let test = ["test", "builtin", CASE, "--deviate", "mpa.accepts-wrong-key", "--out", &out];
    assert_eq!(weft(&test).0, 1);
    let (code, text) = weft(&["baseline", "write", &out, "-o", &known]);
    assert_eq!((code, text.as_str()), (0, "weft: 1 entry for a run with 16 failures\n"));
    let (code, text) = weft(&[&test[..], &["--baseline", &known]].concat());
    assert!(code == 0 && text.contains("16 fail; the baseline expects 16 fail; "), "{text}");
    // A baseline keeps the reasons of a person, so weft does not replace it.
    let (code, text) = weft(&["baseline", "write", &out, "-o", &known]);
    assert!(code == 2 && text.contains("this file exists"), "{text}");
    let entry = format!("[[baseline]]\ncase = \"{CASE}\"\noutcome = \"fail\"\nsignature = \"MPA-7.1.1-2: ");
    let written = std::fs::read_to_string(&known).unwrap();
    assert!(written.contains(&entry) && written.contains("reason = \"fails since run "), "{written}");
    // The new run already expected the failures, so they need no entries.
    let (code, text) = weft(&["baseline", "write", &out, "--reason", "ticket 7"]);
    assert!(code == 0 && !text.contains("[[baseline]]"), "{text}");
    let note = "weft: 0 entries for a run with 16 failures; its baseline already expected 16 results\n";
    assert!(text.contains(note), "{text}");
    let (code, text) = weft(&["test", "builtin", CASE, "--out", &out, "--baseline", &path(folder.path(), "none")]);
    assert!(code == 2 && text.contains("there is no such file"), "{text}");
}

#[test]
fn the_matrix_of_one_case_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = weft(&["suite", "prove", CASE, "--out", &path(folder.path(), "out")]);
    assert!(text.contains("caught        mpa/7.1.1-key/wrong-octet"), "{text}");
    assert!(
        code == 0
            && text.contains("1 case (1 for responders, 0 for initiators)")
            && text.contains("0 uncaught; unproven cases: 0"),
        "{text}"
    );
    // The list of proofs names each requirement together with the case that proves it. `weft
    // coverage` counts these proofs.
    let proofs = std::fs::read_to_string(folder.path().join("out/prove/proofs.csv")).unwrap();
    assert!(proofs.contains("case,MPA-7.1.1-2,mpa/7.1.1-key/wrong-octet against mpa.accepts-wrong-key\n"), "{proofs}");
    assert!(proofs.lines().skip(1).all(|line| line.contains(",mpa/7.1.1-key/wrong-octet against ")), "{proofs}");
    let covered = |from: &str| {
        let (code, text) = weft(&["coverage", "--from", &path(folder.path(), from), "--json"]);
        let mpa: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        (code, mpa["rule"].as_u64(), mpa["case"].as_u64(), mpa["covered"].as_u64())
    };
    std::fs::create_dir(folder.path().join("none")).unwrap();
    assert_eq!(covered("none"), (0, Some(0), Some(0), Some(0)));
    let rows = proofs.lines().skip(1).count() as u64;
    assert_eq!(covered("out/prove"), (0, Some(0), Some(rows), Some(rows)));
}

#[test]
fn a_target_is_looked_at() {
    let (code, text) = weft(&["target", "check", "builtin"]);
    assert!(code == 0 && text.contains("ok  a good exchange") && text.contains("revision 2, enhanced"), "{text}");
    let (code, text) = weft(&["target", "presets"]);
    assert!(code == 0 && ["siw:", "cxgb4:", "irdma:", "qedr:"].iter().all(|name| text.contains(name)), "{text}");
}

/// `--list` lists cases for any capabilities of the target, so it does not connect to the target.
/// An unknown target is nevertheless a usage error.
#[test]
fn a_list_for_a_target_that_is_not_there() {
    let (code, text) = weft(&["test", "nic.toml", "--list"]);
    assert!(code == 2 && text.contains("nic.toml"), "{text}");
    assert_eq!(weft(&["test", "builtin", "--list", "mpa/7.1.1-key"]).0, 0);
}

#[test]
fn the_annotations_are_those_of_the_suites() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "weft.lua");
    assert_eq!(weft(&["suite", "annotations", &file]).0, 0);
    assert!(std::fs::read_to_string(file).unwrap().starts_with("---@meta\n"));
}

/// Some former options of `weft test` are now commands. The former option has the same output and
/// the same exit code as the command. It also prints one line on standard error, which names the
/// command.
#[test]
fn former_options_work_and_name_the_command_that_replaces_them() {
    let folder = tempfile::tempdir().unwrap();
    let (out, old, new) = (path(folder.path(), "out"), path(folder.path(), "old.lua"), path(folder.path(), "new.lua"));
    assert_eq!(weft(&["test", "builtin", CASE, "--out", &out]).0, 0);
    for (option, former, command) in [
        ("--list", &["test", "--list", CASE][..], &["suite", "list", CASE][..]),
        ("--list", &["test", "builtin", CASE, "-l", "--tier", "full"], &["suite", "list", CASE, "--tier", "full"]),
        ("--show", &["test", "--show", CASE], &["suite", "show", CASE]),
        ("--show", &["test", "--show", "no-such-case"], &["suite", "show", "no-such-case"]),
        ("--prove", &["test", "--prove", CASE, "--out", &out], &["suite", "prove", CASE, "--out", &out]),
        (
            "--history",
            &["test", "builtin", "--out", &out, "--history", CASE],
            &["suite", "history", "builtin", CASE, "--out", &out],
        ),
        ("--lua-annotations", &["test", "--lua-annotations", &old], &["suite", "annotations", &new]),
    ] {
        let run = |arguments: &[&str]| {
            let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
            weft.env_remove("WEFT_STORE").args(arguments).output().unwrap()
        };
        let (was, is) = (run(former), run(command));
        assert_eq!(was.status, is.status, "{former:?}");
        assert!(was.stdout == is.stdout, "{former:?}: {}", String::from_utf8_lossy(&was.stdout));
        let (was, is) = (String::from_utf8_lossy(&was.stderr), String::from_utf8_lossy(&is.stderr));
        let (note, rest) = was.split_once('\n').unwrap();
        assert!(note.contains(&format!("`weft test {option}` is now `weft {} {}", command[0], command[1])), "{note}");
        assert_eq!(rest, is, "{former:?}");
    }
    assert_eq!(std::fs::read(old).unwrap(), std::fs::read(new).unwrap());
    let (_, help) = weft(&["test", "--help"]);
    for option in ["--list", "--show", "--prove", "--history", "--lua-annotations"] {
        assert!(!help.contains(option), "{help}");
    }
}
