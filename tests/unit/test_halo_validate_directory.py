# SPDX-License-Identifier: Apache-2.0
"""`halo validate DIR`, and its SARIF, as a person and a program see them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halod.cli import halo
from halod.cli.sarif_policy import document
from halod.policy.repository import Located

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "tests" / "assets" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)
LARGER = ROOT / "tests" / "assets" / "policies" / "repository"


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A repository with a fault in three files and two warnings, and the working directory in it."""
    (tmp_path / "rings").mkdir()
    (tmp_path / "rings" / "ga.yaml").write_text("kind: Ring\nname: ga\n---\nkind: Ring\n")
    (tmp_path / "halos.yaml").write_text(
        "org: acme\nring: [ga]\nmcp:\n  servers:\n"
        "    - {id: a, url: 'https://a.example/', rings: [gaa], headers: {Authorization: Bearer CANARY}}\n"
    )
    (tmp_path / "odd name.yaml").write_bytes(b"\xff\xfe\x00CANARY")
    (tmp_path / "folder").symlink_to("rings")
    monkeypatch.chdir(tmp_path)
    return tmp_path


BROKEN = """\
halos.yaml:5:50: unknown ring "gaa"; did you mean "ga"?
halos.yaml:5:81: headers: Authorization: expected a ${VAR} reference alone; this is a credential in clear text: \
have it replaced, and keep the new one in a variable
odd name.yaml:1:1: the file is not UTF-8 here
rings/ga.yaml:4:1: Ring: needs a name
folder:1:1: warning: a link to a directory is not followed
halos.yaml:2:1: warning: "ring" is left alone; did you mean "rings"?
"""


def test_a_repository_is_valid_and_says_what_it_has(capsys):
    """One line on stdout with the policy's file, and exit 0."""
    assert halo.main(["validate", str(LARGER)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{LARGER}/halos.yaml: valid, 2 servers, 1 denied, 4 rings\n"
    assert err == ""


def test_every_fault_of_every_file_is_a_line(broken, capsys):
    """Each with its file as one would open it from here, and exit 2."""
    assert halo.main(["validate", "."]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == BROKEN + ".: 4 faults\n"
    assert halo.main(["validate", str(broken) + "/"]) == 2
    told = capsys.readouterr().err
    assert told == "".join(f"{broken}/{line}\n" for line in BROKEN.splitlines()) + f"{broken}/: 4 faults\n"
    assert "CANARY" not in err


def test_json_of_a_directory_has_the_file_of_each_problem(broken, capsys):
    """And the rings that the repository defines."""
    assert halo.main(["validate", ".", "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["file"], report["valid"], report["rings"]) == ("halos.yaml", False, ["ga"])
    assert [problem["file"] for problem in report["problems"]] == [
        "halos.yaml",
        "halos.yaml",
        "odd name.yaml",
        "rings/ga.yaml",
    ]
    assert report["problems"][-1] == {
        "line": 4,
        "column": 1,
        "message": "Ring: needs a name",
        "file": "rings/ga.yaml",
    }
    assert [warning["file"] for warning in report["warnings"]] == ["folder", "halos.yaml"]


def test_a_directory_without_a_policy(tmp_path, capsys):
    """The wrong directory is not a valid policy."""
    assert halo.main(["validate", str(tmp_path)]) == 2
    expected = f"{tmp_path}:1:1: no policy here: no YAML document has the key mcp\n{tmp_path}: 1 fault\n"
    assert capsys.readouterr().err == expected


# --- SARIF --------------------------------------------------------------------------------------------------


def sarif(capsys, *words):
    """The exit code and the run of a SARIF log that is valid by its schema and alone on stdout."""
    code = halo.main(["validate", "--format", "sarif", *words])
    out, err = capsys.readouterr()
    assert err == ""
    log = json.loads(out)
    VALIDATOR.validate(log)
    return code, log["runs"][0]


def test_sarif_has_a_result_for_each_fault_and_warning(broken, capsys):
    """With rule, level and place; files beneath the working directory are relative to the base id of the source."""
    code, run = sarif(capsys, ".")
    assert code == 2
    assert "CANARY" not in json.dumps(run)
    results = run["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [
        *[("policy-fault", "error")] * 4,
        *[("policy-warning", "warning")] * 2,
    ]
    for one in results:
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
    place = results[2]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "odd%20name.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1, "startColumn": 1},
    }
    assert results[0]["message"]["text"] == 'Unknown ring "gaa"; did you mean "ga"?'


def test_sarif_of_a_file(capsys, tmp_path, monkeypatch):
    """A valid policy has no result; one elsewhere on the machine is an absolute URI."""
    monkeypatch.chdir(tmp_path)
    for name in (LARGER, LARGER / "halos.yaml"):
        code, run = sarif(capsys, str(name))
        assert (code, run["results"]) == (0, [])
    (tmp_path / "halos.yaml").write_text("org: 5\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    for name in ("../halos.yaml", str(tmp_path / "halos.yaml")):
        code, run = sarif(capsys, name)
        artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        assert (code, artifact) == (2, {"uri": f"file://{tmp_path}/halos.yaml"})


def test_fingerprints_do_not_follow_lines():
    """What moves down stays the same result; a second one of its kind is another."""

    def prints(*rows):
        results = document([Located("a.yaml", *row) for row in rows], [], "/work")["runs"][0]["results"]
        return [result["partialFingerprints"]["haloFault/v1"] for result in results]

    first = prints((1, 1, "x"), (2, 1, "x"), (3, 1, "y"))
    assert len(set(first)) == 3
    assert prints((11, 3, "x"), (12, 1, "x"), (13, 1, "y")) == first


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(Located, st.text(min_size=1), st.integers(1), st.integers(1), st.text(min_size=1)),
        max_size=3,
    )
)
def test_any_fault_is_valid_sarif(faults):
    """Whatever files are called."""
    VALIDATOR.validate(json.loads(json.dumps(document(faults, faults, "/work"))))


# --- as a process, and fuzz ---------------------------------------------------------------------------------


def test_as_a_process_no_name_or_byte_gives_a_traceback(tmp_path):
    """Names that are not UTF-8, in every format, and an encoding that has no such characters."""
    folder = os.fsencode(tmp_path) + b"/\xfe"
    try:
        os.mkdir(folder)
    except OSError:  # macOS takes no name that is not UTF-8
        folder = os.fsencode(tmp_path)
    (Path(os.fsdecode(folder)) / "ü\x1b.yaml").write_bytes(b"\x00")
    code = "import sys; from halod.cli.halo import main; sys.exit(main())"
    for form in ("text", "json", "sarif"):
        done = subprocess.run(
            [sys.executable, "-c", code, "validate", "--format", form, folder],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
        assert b"a fault inside" not in done.stderr
        assert b"\x1b" not in done.stdout + done.stderr


SOURCES = [path.read_bytes() for path in sorted(LARGER.rglob("*.yaml"))]
PIECES = st.sampled_from(
    [b"---\n", b"kind: Ring\n", b"mcp:\n", b"\t", b": ", b"*a", b"&a ", b"\xff", b"\x00", b"[", b"'"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(range(len(SOURCES))), max_size=4),
    st.lists(st.tuples(st.integers(0, 5000), PIECES), max_size=5),
    st.sampled_from(["text", "json", "sarif"]),
)
def test_a_damaged_repository_never_gives_a_traceback(tmp_path_factory, capsys, chosen, damage, form):
    """Exit 0 or 2 whatever its files hold, and in text every line names a place."""
    folder = tmp_path_factory.mktemp("repository")
    for number, index in enumerate(chosen):
        data = SOURCES[index]
        for at, piece in damage:
            data = data[: at % (len(data) + 1)] + piece + data[at % (len(data) + 1) :]
        (folder / f"{number}.yaml").write_bytes(data)
    code = halo.main(["validate", str(folder), "--format", form])
    out, err = capsys.readouterr()
    assert code in {0, 2}
    if form == "text":
        lines = (out + err).splitlines()
        assert all(
            re.match(rf"{re.escape(str(folder))}\S*:\d+:\d+: .", line) for line in err.splitlines()[:-1]
        )
        assert lines[-1].startswith(str(folder))
    else:
        assert err == ""
        found = json.loads(out)
        if form == "sarif":
            VALIDATOR.validate(found)
