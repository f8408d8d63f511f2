# SPDX-License-Identifier: Apache-2.0
"""The words that choose a package: each listed option chooses its own package, whatever a document holds."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy.importing import choose, naming
from halod.policy.importing.model import Candidate, ImportRefused, Server
from tests.support.registry import DIGEST, MCPB, NUGET, OTHER, PYPI, loaded, npm, oci, server, why_not

NOTES = "ghcr.io/acme/notes-mcp"


def options(*packages):
    return list(naming.options(loaded(server(*packages)).packages).values())


def chosen(document, which):
    return choose.choose_package(loaded(document), which).candidate.number


@pytest.mark.parametrize(
    ("packages", "listed"),
    [
        ([npm()], ["npm"]),
        ([npm(), PYPI, NUGET, oci()], ["npm", "pypi", "nuget", "oci"]),
        ([npm(), npm(identifier="other")], ["npm=@acme/notes-mcp", "npm=other"]),
        (
            [npm(), npm(version="1.0.25"), MCPB],
            ["npm=@acme/notes-mcp@1.0.26", "npm=@acme/notes-mcp@1.0.25"],
        ),
        ([npm(), npm(registryBaseUrl="https://packages.acme.example/npm/")], ["1", "2"]),
        ([npm(), npm(), npm(version="2.0.0")], ["1", "2", "npm=@acme/notes-mcp@2.0.0"]),
        (
            [PYPI, {**PYPI, "identifier": "time--mcp-pypi"}],
            [f"pypi={PYPI['identifier']}", "pypi=time--mcp-pypi"],
        ),
        (
            [oci(identifier=f"{NOTES}:1"), oci(identifier=f"{NOTES}:2"), oci(identifier=f"{NOTES}:2@sha256:{DIGEST}")],
            [f"oci={NOTES}:1", f"oci={NOTES}:2", f"oci={NOTES}:2@sha256:{DIGEST}"],
        ),
        ([oci(identifier=f"{NOTES}@sha256:{one}") for one in (DIGEST, OTHER)],
         [f"oci={NOTES}@sha256:{one}" for one in (DIGEST, OTHER)]),
        ([npm(), "nonsense", npm(identifier="a b"), npm(identifier="${x}")], ["npm=@acme/notes-mcp", "3"]),
        ([npm(identifier="x" * 300), npm(identifier="\u202e")], ["1", "2"]),
    ],
)  # fmt: skip
def test_the_shortest_words_that_say_which(packages, listed):
    """Type, identifier, version; the number where words do not tell, or would not be pasted as they are."""
    assert options(*packages) == [f"--package {words}" for words in listed]


def test_two_versions_can_each_be_chosen():
    """By the words of the list, which the advice points to."""
    two = server(npm(), npm(version="1.0.25"))
    for which in ("", "npm", "npm=@acme/notes-mcp"):
        error = why_not(choose.choose_package, loaded(two), which)
        assert error.message == "there are 2 packages to choose from"
        assert error.advice == "choose one with the --package that stands beside it"
        assert error.rows[1].endswith('"1.0.25"  --package npm=@acme/notes-mcp@1.0.25')
    assert chosen(two, "npm=@acme/notes-mcp@1.0.25") == chosen(two, "2") == 2
    for which in (
        "npm=@acme/notes-mcp@",
        "npm=@acme/notes-mcp@1",
        "npm=",
        "pypi=@acme/notes-mcp",
        "3",
        "0x1",
    ):
        why_not(choose.choose_package, loaded(two), which)


def test_another_base_is_told_in_the_list():
    """It is why the two cannot be told apart by name, and why one of them cannot be pinned."""
    two = server(npm(), npm(registryBaseUrl="https://packages.acme.example/npm/"))
    assert why_not(choose.choose_package, loaded(two)).rows[1] == (
        '  package 2: "npm" "@acme/notes-mcp" "1.0.26" (of another registryBaseUrl than the public one)  --package 2'
    )
    assert chosen(two, "1") == 1
    assert "registryBaseUrl" in why_not(choose.choose_package, loaded(two), "2").message


def test_an_image_is_named_by_as_much_as_is_needed():
    """Name, tag and digest; what is given of them has to be the same."""
    document = server(
        oci(identifier=f"{NOTES}:1@sha256:{DIGEST}"), oci(identifier=f"{NOTES}:2@sha256:{OTHER}")
    )
    for which in (f"{NOTES}:1", f"{NOTES}@sha256:{DIGEST}", f"{NOTES}:1@sha256:{DIGEST}"):
        assert chosen(document, f"oci={which}") == 1
    assert chosen(document, f"oci={NOTES}:2") == 2
    for which in (NOTES, f"{NOTES}:3", f"{NOTES}:1@sha256:{OTHER}", "ghcr.io/acme/other"):
        why_not(choose.choose_package, loaded(document), f"oci={which}")


@pytest.mark.parametrize("which", ["mcpb", "cargo", "go", "mcpb=https://x.example/mcp.mcpb", "1"])
def test_what_cannot_be_pinned_is_chosen_by_nothing(which):
    """Not by its number either, and it is listed without an option."""
    document = loaded(server(MCPB, npm()))
    assert "cannot be pinned yet" in why_not(choose.choose_package, document, which).message
    assert "--package" not in why_not(choose.choose_package, document, "npm=none").rows[0]


NAMES = st.sampled_from(["a", "A", "a-b", "a_b", "@s/a", "@s/a@1.0.0", "a@1", "docker.io/a/b", "docker.io/a/b:1",
                         f"docker.io/a/b:1@sha256:{DIGEST}", f"a/b@sha256:{DIGEST}", "1", "="])  # fmt: skip
CANDIDATES = st.builds(
    Candidate,
    number=st.just(0),
    type=st.sampled_from([*naming.SUPPORTED, *choose.KNOWN_ONLY, "", "1", "deb"]),
    identifier=NAMES | st.text(max_size=6),
    version=st.sampled_from(["", "1", "1.0.0", "2.0.0"]) | st.text(max_size=4),
    base=st.sampled_from(["", "https://x.example/"]),
    fault=st.sampled_from(["", "", "", "it is not right"]),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(CANDIDATES, max_size=7))
def test_each_listed_option_chooses_exactly_its_package(packages):
    """Also as a shell would hand it on, and through the command's own chooser."""
    numbered = [Candidate(number, one.type, one.identifier, one.version, one.base, fault=one.fault)
                for number, one in enumerate(packages, 1)]  # fmt: skip
    whole = Server(name="a/b", version="1", packages=tuple(numbered))
    listed = naming.options(whole.packages)
    assert set(listed) == {one for one in numbered if one.type in naming.SUPPORTED and not one.fault}
    for one, option in listed.items():
        flag, which = shlex.split(option)
        assert flag == "--package"
        assert naming.fitting(whole.packages, which) == [one]
        assert f"  {choose.row(one)}  {option}" in choose.rows(whole)
        said = ""
        try:
            assert choose.choose_package(whole, which).candidate is one
        except ImportRefused as refused:
            said = refused.message
        assert "to choose from" not in said
        assert "no such package" not in said
