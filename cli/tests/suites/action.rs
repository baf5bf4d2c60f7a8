//! The GitHub action: what its last step passes to weft, by an environment as a runner makes it and
//! a fake docker.
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const ACTION: &str = include_str!("../../../action.yml");

/// The script of the step that runs the suites: the last one of the file.
fn script() -> String {
    let (_, script) = ACTION.rsplit_once("      run: |\n").unwrap();
    script.lines().map(|line| line.strip_prefix("        ").unwrap_or(line).to_owned() + "\n").collect()
}

/// The arguments of `docker run`, for an event with this pull request.
fn docker_arguments(pull_request: &str, head: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let docker = folder.path().join("docker");
    fs::write(&docker, "#!/bin/sh\necho \"$@\"\n").unwrap();
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()])
        .env("PATH", path)
        .env("GITHUB_WORKSPACE", folder.path())
        .env("GITHUB_STEP_SUMMARY", folder.path().join("summary"))
        .env("GITHUB_REPOSITORY", "owner/repository")
        .env("WEFT_AGENT_TOKEN", "secret")
        .envs([("IMAGE", "image"), ("TARGET", "nic.toml"), ("OUT", "out"), ("ARGUMENTS", "--tier smoke")])
        .envs([("PULL_REQUEST", pull_request), ("HEAD", head)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_token_and_commands_stay_out_of_pull_requests_from_forks() {
    for (pull_request, head) in [("", ""), ("7", "owner/repository")] {
        let arguments = docker_arguments(pull_request, head);
        assert!(arguments.contains("--env WEFT_AGENT_TOKEN --env WEFT_AGENT_TOKEN_FOR"), "{arguments}");
        assert!(arguments.ends_with("image test nic.toml --out out --tier smoke\n"), "{arguments}");
    }
    // The last one is of a fork that was deleted meanwhile.
    for (pull_request, head) in [("7", "stranger/repository"), ("7", "")] {
        let arguments = docker_arguments(pull_request, head);
        assert!(!arguments.contains("WEFT_AGENT_TOKEN"), "{arguments}");
        assert!(arguments.ends_with("image test nic.toml --out out --no-commands --tier smoke\n"), "{arguments}");
    }
}
