//! Tests the GitHub action. The test runs the last step of the action in the environment of a
//! runner, with a fake `docker`. It checks the arguments that the step passes to weft.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const ACTION: &str = include_str!("../../../action.yml");

/// Returns the script of the step that runs the suites. It is the last step of the file.
fn script() -> String {
    let (_, script) = ACTION.rsplit_once("      run: |\n").unwrap();
    script.lines().map(|line| line.strip_prefix("        ").unwrap_or(line).to_owned() + "\n").collect()
}

/// Returns the arguments of `docker run`. `pull_request` is the number of the pull request, or
/// empty for other events. `head` is the repository from which the pull request comes.
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
    // In the last case, `head` is empty, because the fork was deleted in the meantime.
    for (pull_request, head) in [("7", "stranger/repository"), ("7", "")] {
        let arguments = docker_arguments(pull_request, head);
        assert!(!arguments.contains("WEFT_AGENT_TOKEN"), "{arguments}");
        assert!(arguments.ends_with("image test nic.toml --out out --no-commands --tier smoke\n"), "{arguments}");
    }
}
