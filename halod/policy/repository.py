# SPDX-License-Identifier: Apache-2.0
"""A larger Halos policy repository: one policy among other documents, and the rings that Ring documents define.

Pure: files come in as names and bytes.

Invariants:

1. Of a document that is neither the policy nor a Ring nothing is judged; but a file whose documents cannot be
   told is a fault, as a Ring or the policy may be in it.
2. Exactly one policy: the document with the key `mcp` whose kind, if it has one, is Halos; where no document has
   it, halos.yaml at the top. It is a file of its own, as agents get that file and nothing else.
3. Everything wrong is reported at once, each fault with its file, line and column.

Source of the layout: the Halos project's policy repositories (`kind` and `name` at the top of a document, any
number of documents a file; profiles have an `mcp` of another shape).
"""

from collections.abc import Iterable
from datetime import date

import msgspec

from halod.policy.check import Checker, Fields, key_node
from halod.policy.load import MAX_BYTES, examine
from halod.policy.model import Policy, Problem
from halod.policy.warn import slips, warnings
from halod.policy.yamlpos import Broken, Document, Node, Pairs, Text, kind, read_all, shown

POLICY_KIND = "Halos"
RING_KIND = "Ring"
ROOT_FILES = ("halos.yaml", "halos.yml")


class Located(msgspec.Struct, frozen=True, order=True):
    """One fault or warning of a file of the repository; line and column start at 1."""

    file: str
    line: int
    column: int
    message: str


class Examined(msgspec.Struct, frozen=True):
    """What is known of a repository: `policy` is None when anything has a fault.

    `file` is that of the policy, or empty when there is none; faults and warnings are sorted by file and place.
    """

    policy: Policy | None
    file: str
    rings: tuple[str, ...]
    faults: list[Located]
    warnings: list[Located]


class _Candidate(msgspec.Struct):
    """A document that may be the policy, and the bytes of its file."""

    file: str
    data: bytes
    place: Node


class _Survey:
    """What the documents are: collects rings and candidates for the policy, and judges nothing else."""

    def __init__(self) -> None:
        self.faults: list[Located] = []
        self.warnings: list[Located] = []
        self.rings: dict[str, str] = {}
        self.policies: list[_Candidate] = []
        self.tops: list[_Candidate] = []
        self.strangers: list[str] = []

    def take(self, file: str, data: bytes) -> None:
        """Look through one file."""
        if len(data) > MAX_BYTES:
            limit = MAX_BYTES // 1024 // 1024
            self.faults.append(Located(file, 1, 1, f"larger than {limit} MiB; it was not read"))
            return
        for document in read_all(data):
            if document.root is None:
                self.report(file, document.problems)
            elif isinstance(document.root, Pairs):
                self._document(file, data, document, document.root)

    def report(self, file: str, problems: Iterable[Problem]) -> None:
        """Record faults of a file."""
        self.faults.extend(Located(file, p.line, p.column, p.message) for p in problems)

    def warn(self, file: str, problems: Iterable[Problem]) -> None:
        """Record warnings of a file."""
        self.warnings.extend(Located(file, p.line, p.column, p.message) for p in problems)

    def _document(self, file: str, data: bytes, document: Document, root: Pairs) -> None:
        fields: Fields = {key.text: value for key, value in root.pairs}
        named = fields.get("kind")
        what = named.text if isinstance(named, Text) and kind(named) == "text" else ""
        if what == RING_KIND:
            self._ring(file, document, root, fields)
        elif (named is None or what == POLICY_KIND) and "mcp" in fields:
            self.policies.append(_Candidate(file, data, key_node(root, "mcp")))
        elif (named is None or what == POLICY_KIND) and file in ROOT_FILES:
            self.tops.append(_Candidate(file, data, root))
        else:
            self._other(file, document, root, what)

    def _ring(self, file: str, document: Document, root: Pairs, fields: Fields) -> None:
        c = Checker(document.problems)
        if "name" not in fields:
            c.add(root, "Ring: needs a name")
        name = c.text(fields["name"], "name", limit=64) if "name" in fields else None
        if name is not None and name in self.rings:
            c.add(fields["name"], f"the ring {shown(name)} is also defined in {self.rings[name]}")
        elif name is not None:
            self.rings[name] = f"{file}:{fields['name'].line}"
        self.report(file, c.problems)

    def _other(self, file: str, document: Document, root: Pairs, what: str) -> None:
        """Leave a document alone, unless it may have been meant for this program."""
        place = key_node(root, "kind")
        if what.casefold() in {RING_KIND.casefold(), POLICY_KIND.casefold()}:
            meant = next(one for one in (RING_KIND, POLICY_KIND) if one.casefold() == what.casefold())
            said = f"kind {shown(what)} is left alone; did you mean {shown(meant)}?"
            self.warnings.append(Located(file, place.line, place.column, said))
        if any(key.text == "mcp" for key, _ in root.pairs):
            self.strangers.append(f"{file}:{place.line} has mcp and is of kind {shown(what)}")
        self.report(file, [p for p in document.problems if _is_doubtful(root, p)])


def _is_doubtful(root: Pairs, problem: Problem) -> bool:
    """Whether a fault may make this a Ring or the policy to another reader: none else is ours to report."""
    named = [value for key, value in root.pairs if key.text == "kind"]
    if problem.message.startswith(('duplicate key "kind"', 'duplicate key "mcp"')):
        return True
    if not named:
        return problem.message.startswith("merge keys") and problem.column == root.column
    return isinstance(named[0], Broken) and (problem.line, problem.column) == (named[0].line, named[0].column)


def examine_all(files: Iterable[tuple[str, bytes]], today: date) -> Examined:
    """Find and check the policy and the rings of a repository. `today` is the day by UTC.

    `files` gives each file's name, relative to the repository, and at least MAX_BYTES + 1 of its bytes.
    """
    survey = _Survey()
    for file, data in files:
        survey.take(file, data)
    candidates = sorted(
        survey.policies or survey.tops[:1], key=lambda one: (one.file not in ROOT_FILES, one.file)
    )
    policy = None
    for candidate in {
        one.file: one for one in candidates[::-1]
    }.values():  # each file once; the first one last
        policy = _policy(survey, candidate, today)
    _count(survey, candidates)

    faults = sorted(set(survey.faults))
    return Examined(
        policy=None if faults else policy,
        file=candidates[0].file if candidates else "",
        rings=tuple(survey.rings) or (policy.rings if policy is not None else ()),
        faults=faults,
        warnings=sorted(set(survey.warnings)),
    )


def _policy(survey: _Survey, candidate: _Candidate, today: date) -> Policy | None:
    """Check a policy with the rings that the repository defines."""
    rings = tuple(survey.rings) or None
    policy, root, problems = examine(candidate.data, rings)
    survey.report(candidate.file, problems)
    if policy is None or root is None:
        survey.warn(candidate.file, slips(root) if root is not None else ())
        return None
    found = warnings(policy, root, today)
    alone = sorted(set(examine(candidate.data)[2])) if rings is not None else []
    if alone:
        said = (
            f"agents get this file alone and would refuse it ({alone[0].message}); list the rings in it, too"
        )
        found.append(Problem(candidate.place.line, candidate.place.column, said))
    survey.warn(candidate.file, found)
    return policy


def _count(survey: _Survey, candidates: list[_Candidate]) -> None:
    """Report that there is no policy, or more than one."""
    if not candidates:
        hint = f"; {survey.strangers[0]}" if survey.strangers else ""
        survey.faults.append(Located("", 1, 1, f"no policy here: no YAML document has the key mcp{hint}"))
    for other in candidates[1:]:
        first = candidates[0]
        said = f"a second policy: mcp is also in {first.file}:{first.place.line}; a repository has one"
        survey.faults.append(Located(other.file, other.place.line, other.place.column, said))
