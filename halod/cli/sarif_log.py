# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a SARIF 2.1.0 log: one run of one program, with its rules and results.

Source: OASIS SARIF 2.1.0, sections 3.13 to 3.52. Pure. What the results are is for `sarif` (a status) and
`sarif_policy` (faults of a policy) to say.
"""

from typing import Any, Final

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

Object = dict[str, Any]
Rules = tuple[tuple[str, str, str, str], ...]
"""Of each rule its id, its level (`error`, `warning` or `note`), its title, and what it means."""


def log(driver: Object, invocation: Object, results: list[Object], more: Object) -> Object:
    """Give the log of one run; `more` is what else the run has."""
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
        **more,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def driver(name: str, version: str, rules: Rules) -> Object:
    """Describe the program and its rules."""
    return {
        "name": name,
        "semanticVersion": version,
        "rules": [
            {
                "id": rule,
                "name": "".join(word.capitalize() for word in title.split()),
                "shortDescription": {"text": title},
                "fullDescription": {"text": text},
                "defaultConfiguration": {"level": level},
            }
            for rule, level, title, text in rules
        ],
    }


def result(rules: Rules, rule: str, text: str) -> Object:
    """Give a result of a rule, at the rule's level and without a place."""
    index = next(number for number, known in enumerate(rules) if known[0] == rule)
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": rules[index][1],
        "message": {"text": text},
    }


def place(uri: str, base: str, line: int, column: int) -> list[Object]:
    """Give the `locations` of a result: a file beneath a base id, and a place in it where the line is known."""
    artifact = {"uri": uri, **({"uriBaseId": base} if base else {})}
    location: Object = {"artifactLocation": artifact}
    if line:
        location["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return [{"physicalLocation": location}]
