"""What `annotate export` says about annotators who disagree."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairlearn.annotators.manner import Manner
from test_annotator_words import crowd_of, write

from pairlearn.annotators import Crowd
from pairlearn_studio.cli import exchange as annotate_exchange
from studio_client import annotate


def test_rivals_weigh_the_same_and_are_said_to_be_rivals(tmp_path: Path) -> None:
    people = {"ann": "honest", "bob": "honest", "cy": "other pairs"}
    crowd = crowd_of(people, seed=1)
    assert crowd.rivals == (("ann", "bob"), ("cy",))
    assert {*crowd.weights().values()} == {1.0}
    write(tmp_path, people, seed=1)
    project = tmp_path / "project"
    assert annotate("init", project, tmp_path / "items.csv", "--pairs", 5).exit_code == 0
    assert annotate("import", project, tmp_path / "pairs.csv").exit_code == 0
    done = annotate("export", project, tmp_path / "out.csv", "--aggregate", "reliability")
    assert "reliability of cy: 1.00; contradicts ann, bob, and either may be right" in done.stdout
    assert "either side could be right: ann and bob against cy. They count the same" in done.stderr


def test_a_mean_of_doubtful_answers_is_warned_of(tmp_path: Path) -> None:
    people = {"ann": "honest", "bob": "constant", "cy": "honest", "dan": "honest"}
    write(tmp_path, people, seed=1)
    project, out = tmp_path / "project", tmp_path / "out.csv"
    assert annotate("init", project, tmp_path / "items.csv", "--pairs", 5).exit_code == 0
    assert annotate("import", project, tmp_path / "pairs.csv").exit_code == 0
    for rule in ("mean", "median"):
        done = annotate("export", project, out, "--aggregate", rule, "--force")
        assert done.stderr.count("warning") == 1 and "reliability of" not in done.stdout
        assert f"bob: gives one answer to everything. The {rule} counts these" in done.stderr
        assert "--without bob leaves them out" in done.stderr
    for options in (
        ("--aggregate", "reliability"),
        ("--aggregate", "mean", "--without", "bob"),
        (),
    ):
        assert not annotate("export", project, out, *options, "--force").stderr


@pytest.mark.parametrize("rule", ["mean", "reliability"])
def test_no_rule_counts_a_copy_less(rule: str) -> None:
    crowd = Crowd({name: Manner(name) for name in ("ann", "bob")}, copies={"bob": "ann"})
    (words,) = annotate_exchange._doubts(crowd, rule)
    assert words.endswith(f"The {rule} counts both: --without bob leaves the copies out")
