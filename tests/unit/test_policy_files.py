# SPDX-License-Identifier: Apache-2.0
"""The files of a policy repository: what is read, what is not, and in which order."""

import os
import socket
from pathlib import Path

import pytest

from halod.cli import halo, policy_files
from halod.cli.policy_files import Directory, printable


def read(path: Path) -> tuple[dict[str, bytes], list[str], list[str]]:
    """The files, what is wrong, and what is doubtful."""
    directory = Directory(str(path))
    files = dict(directory.files())
    faults, warnings = (
        [f"{one.file}:{one.line}:{one.column}: {one.message}" for one in sorted(some)]
        for some in (directory.faults, directory.warnings)
    )
    return files, faults, warnings


def write(path: Path, text: str = "x: 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_files_at_every_depth_in_order(tmp_path: Path):
    """Both suffixes in any case; other files and names with a dot in front are not looked at."""
    for name in ("b.yaml", "a/z.yml", "a/b/c.YAML", "a.json", "README.md", ".git/x.yaml", "a/.hidden.yaml"):
        write(tmp_path / name, name)
    files, faults, warnings = read(tmp_path)
    assert list(files.items()) == [(name, name.encode()) for name in ("a/b/c.YAML", "a/z.yml", "b.yaml")]
    assert (faults, warnings) == ([], [])


def test_links_out_of_the_directory_are_refused(tmp_path: Path):
    """Also one to a sibling whose name begins like the directory's, and one through another link."""
    inside = tmp_path / "repo"
    write(tmp_path / "repo-secret" / "x.yaml", "CANARY")
    write(inside / "ok.yaml")
    (inside / "absolute.yaml").symlink_to(tmp_path / "repo-secret" / "x.yaml")
    (inside / "relative.yaml").symlink_to("../repo-secret/x.yaml")
    (inside / "chain.yaml").symlink_to("relative.yaml")
    (inside / "folder").symlink_to(tmp_path / "repo-secret")
    (inside / "through.yaml").symlink_to("folder/x.yaml")
    files, faults, warnings = read(inside)
    assert list(files) == ["ok.yaml"]
    assert faults == [
        f"{name}.yaml:1:1: a link that leads out of the directory; it was not read"
        for name in ("absolute", "chain", "relative", "through")
    ]
    assert warnings == ["folder:1:1: a link to a directory is not followed"]


def test_a_link_in_the_directory_counts_once(tmp_path: Path):
    """It is read where its file is not, as in a mounted configuration map; else the file itself is enough."""
    write(tmp_path / "..data" / "halos.yaml", "mcp:\n")
    write(tmp_path / "real.yaml")
    (tmp_path / "halos.yaml").symlink_to("..data/halos.yaml")
    (tmp_path / "again.yaml").symlink_to("real.yaml")
    files, faults, warnings = read(tmp_path)
    assert files == {"real.yaml": b"x: 1\n", "halos.yaml": b"mcp:\n"}
    assert (faults, warnings) == ([], [])


def test_the_directory_itself_may_be_a_link(tmp_path: Path):
    """As a checkout that is replaced as a whole."""
    write(tmp_path / "checkout" / "a.yaml")
    (tmp_path / "current").symlink_to("checkout")
    assert list(read(tmp_path / "current")[0]) == ["a.yaml"]


def test_what_is_no_file_is_a_fault_and_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """FIFO, socket, dangling link, link to itself, link to a directory: none keeps us or costs the rest."""
    write(tmp_path / "ok.yaml")
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub.yaml").symlink_to("sub")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("socket.yaml")  # relative: the path of a socket is short
        files, faults, _ = read(tmp_path)
    assert list(files) == ["ok.yaml"]
    assert [line.partition(" ")[0] for line in faults] == [
        f"{name}.yaml:1:1:" for name in ("fifo", "gone", "loop", "socket", "sub")
    ]


def test_a_directory_that_goes_away_is_a_fault(tmp_path: Path):
    """Whatever the reason, it is said and nothing is raised."""
    files, faults, _ = read(tmp_path / "gone")
    assert (files, faults) == ({}, [":1:1: cannot be listed: No such file or directory"])


def test_what_may_not_be_read_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file and a directory without rights; the rest is read. Refused here, as root is refused nothing."""
    write(tmp_path / "a.yaml")
    write(tmp_path / "b.yaml")
    write(tmp_path / "shut" / "c.yaml")
    doors = {"open": os.open, "scandir": os.scandir}

    def refuse(name):
        def door(path, *rest):
            if path.endswith(("a.yaml", "shut")):
                raise PermissionError(13, "CANARY")
            return doors[name](path, *rest)

        return door

    monkeypatch.setattr(os, "open", refuse("open"))
    monkeypatch.setattr(os, "scandir", refuse("scandir"))
    files, faults, _ = read(tmp_path)
    assert list(files) == ["b.yaml"]
    assert faults == [
        "a.yaml:1:1: cannot be read: Permission denied",
        "shut:1:1: cannot be listed: Permission denied",
    ]


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Too many levels end in a fault; a large file is read up to the limit."""
    monkeypatch.setattr(policy_files, "MAX_DEPTH", 2)
    monkeypatch.setattr(policy_files, "MAX_BYTES", 9)
    write(tmp_path / "a/b/ok.yaml", "x" * 50)
    write(tmp_path / "a/b/c/d/deep.yaml")
    files, faults, _ = read(tmp_path)
    assert files == {"a/b/ok.yaml": b"x" * 10}
    assert faults == ["a/b/c:1:1: more than 2 levels of directories; it was not read"]


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("MAX_FILES", 2, "more than 2 YAML files"),
        ("MAX_NAMES", 4, "more than 4 files and directories"),
        ("MAX_TOTAL", 1024 * 1024, "more than 1 MiB of YAML"),
    ],
)
def test_what_is_too_large_is_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit, value, said
):
    """One line that says so, for every form of output: half of the findings would mislead."""
    write(tmp_path / "halos.yaml", "mcp: {servers: [5]}\n")
    for name in ("a/x.yaml", "b/y.yaml"):
        write(tmp_path / name, "# " + "x" * 600_000 + "\n")
    assert Directory(str(tmp_path)).too_large == ""
    monkeypatch.setattr(policy_files, limit, value)
    for form in ("text", "json", "sarif"):
        assert halo.main(["validate", "--format", form, str(tmp_path)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == (
            f"halo: error: {tmp_path} is no policy repository: it has {said};"
            " name the directory of the policy alone\n"
        )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("größe 1.yaml", "größe 1.yaml"),
        ("a\nb.yaml", r"a\x0ab.yaml"),
        ("\x1b[31m.yaml", r"\x1b[31m.yaml"),
        (os.fsdecode(b"\xff.yaml"), r"\xff.yaml"),
        ("a\u202eb.yaml", r"a\u{202e}b.yaml"),
    ],
)
def test_names_are_shown_on_one_line(tmp_path: Path, name: str, shown: str):
    """Whatever a repository calls its files: a terminal is not steered by it."""
    assert printable(name) == shown
    try:
        (tmp_path / name).write_bytes(b"x: 1\n")
    except OSError:  # macOS takes no name that is not UTF-8
        return
    assert list(read(tmp_path)[0]) == [shown]
