"""Run the shell steps of action.yml as GitHub's runner does.

usage: action.py [--given STEP.OUTPUT=VALUE]... [INPUT=VALUE]...

The environment must have GITHUB_WORKSPACE, GITHUB_ACTION_PATH and GITHUB_STEP_SUMMARY, as on a
runner. --given sets an output of the step with the id STEP and skips that step. The exit status is
that of the first step that fails, as on a runner, or 0.
"""

import os
import re
import subprocess
import sys
import tempfile

import yaml

KEPT = ("PATH", "HOME", "LANG", "DOCKER_HOST", "DOCKER_CONFIG")
GITHUB = ("GITHUB_WORKSPACE", "GITHUB_ACTION_PATH", "GITHUB_STEP_SUMMARY")


def inputs_of(action, given):
    """The values of all inputs: the given values, and the defaults of the others."""
    declared = action["inputs"]
    for name in given:
        if name not in declared:
            sys.exit(f"action.yml has no input {name}")
    for name, declaration in declared.items():
        if declaration.get("required") and name not in given:
            sys.exit(f"action.yml requires the input {name}")
    return {name: given.get(name, declaration.get("default", "")) for name, declaration in declared.items()}


def evaluate(text, inputs, outputs):
    """The text with its ${{ }} expressions replaced: inputs and the outputs of earlier steps."""

    def value(match):
        parts = match[1].strip().split(".")
        if len(parts) == 2 and parts[0] == "inputs":
            return inputs[parts[1]]
        if parts[0] == "github" and parts[1] == "event":
            return ""  # the event is a push: it has no pull request
        if len(parts) == 4 and parts[0] == "steps" and parts[2] == "outputs":
            return outputs[parts[1]][parts[3]]
        sys.exit(f"action.yml: .ci/action.py does not support the expression {match[0]}")

    return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))


def run(step, environment, inputs, outputs):
    """Run one step, return its status, and store its GITHUB_OUTPUT in `outputs`."""
    if step["shell"] != "bash":
        sys.exit(f"action.yml: .ci/action.py does not support the shell {step['shell']}")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "step.sh")
        output = os.path.join(folder, "output")
        open(output, "w").close()
        with open(script, "w") as file:
            file.write(evaluate(step["run"], inputs, outputs))
        own = {name: evaluate(text, inputs, outputs) for name, text in step.get("env", {}).items()}
        status = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            env={**environment, **own, "GITHUB_OUTPUT": output},
            cwd=environment["GITHUB_WORKSPACE"],
        ).returncode
        if "id" in step:
            with open(output) as file:
                outputs[step["id"]] = dict(line.rstrip("\n").split("=", 1) for line in file)
    return status


def main(words):
    outputs, given = {}, {}
    while words:
        word = words.pop(0)
        if word == "--given":
            name, value = words.pop(0).split("=", 1)
            step, output = name.split(".")
            outputs.setdefault(step, {})[output] = value
        else:
            name, value = word.split("=", 1)
            given[name] = value
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update((name, os.environ[name]) for name in GITHUB)
    with open(os.path.join(environment["GITHUB_ACTION_PATH"], "action.yml")) as file:
        action = yaml.safe_load(file)
    inputs = inputs_of(action, given)
    for step in action["runs"]["steps"]:
        if step.get("id") in outputs:
            print(f"replaced: {step['name']}", flush=True)
            continue
        print(f"step: {step['name']}", flush=True)
        status = run(step, environment, inputs, outputs)
        if status:
            return status
    return 0


sys.exit(main(sys.argv[1:]))
