# SPDX-License-Identifier: Apache-2.0
"""An entry as text: what is written is what every reader of YAML reads."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy.importing import entry


@given(
    st.dictionaries(
        st.sampled_from(["owner", "reason", "args"]),
        st.text(max_size=40)
        | st.sampled_from(["1.10", "on", "1e3", "0x1f", "2027-01-01", "~", "12:30", "a: b", "#x", "é"]),
    )
)
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back_by_every_reader(fields):
    """By YAML 1.1 (PyYAML) as texts, too."""
    fields = {key: [value] if key == "args" else value for key, value in fields.items()}
    fields = {"id": "x", **fields, "package": {"type": "npm", "identifier": "@a/b", "version": "1.2.3"}}
    text = entry.to_yaml(fields, ["a comment"])
    try:
        assert yaml.safe_load(text) == [fields]
    except yaml.YAMLError:
        assert entry.problems(fields)
    assert json.loads(entry.to_json(fields)) == fields


@given(st.text(max_size=100))
def test_every_name_gives_an_id(name):
    """One that a policy takes."""
    made = entry.entry_id(name)
    assert entry.problems({"id": made, "url": "https://acme.example/"}) == []
