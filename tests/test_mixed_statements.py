"""Tables of several kinds of statement in one fit; and the names of kinds in one place."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, plain, run
from pairlearn import Judgements, PairClassifier
from pairlearn.estimators import learning
from pairlearn.estimators.fit_input import Table, with_groups
from pairlearn.estimators.measuring import FitCheckpoints, HeldAccuracy, fit_and_measure
from pairlearn.io import write_items, write_pairs
from pairlearn.judgements import kinds
from pairlearn.simulation import simulate
from tables import pair_ids

SOURCE = Path(kinds.__file__).parents[2]
NEW = ("confidence", "positive", "unlabelled", "same", "comparison", "group", "triplet")


WORDS = ("positive", "same", "confidence")  # which mean other things, too
NAMING = {
    "risks/siblings.py": set(NEW),  # risks say which kinds they read
    "judgements/table.py": set(NEW),  # makes shares of groups, and rows that state nothing
    "cli/fit.py": {"group"},  # items are in groups by a column of that name,
    "io/pairs.py": {"group"},  # which is no feature
}


def test_no_other_module_mentions_a_kind_by_name() -> None:
    """As a text; where the name is a common word, as one by which a table is asked."""
    names = {name for name in NEW if name not in WORDS} | {"closer"}
    asked = (
        rf"\b(kind|code|of|has|fills|about_items)\(\"({'|'.join(NEW)})\"|kinds\.({'|'.join(NEW)})\b"
    )
    mentions = []
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if path.parent.name != "kinds" and place not in list(NAMING)[:2]:
            texts = {
                n.value
                for n in ast.walk(ast.parse(path.read_text()))
                if isinstance(n, ast.Constant)
            }
            mentions += [(place, name) for name in texts & names - NAMING.get(place, set())]
            mentions += [(place, match.group()) for match in re.finditer(asked, path.read_text())]
    assert not mentions


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"closer": ["yes", "no", "yes"], "triplet": [1, 1, 2]}, "triplet 2 must be two rows"),
        ({"closer": ["yes", "yes", ""], "triplet": [1, 1, np.nan]}, "triplet 1 must be two rows"),
        (
            {"closer": ["", "yes", "no"], "triplet": [np.nan, 4, 4]},
            "triplet 4 .* with one left, two",
        ),
        ({"share": [0.3, 0.3, 0.5], "group": [0, 7, 7]}, "group 7 has a share of 0.3 and 0.5"),
    ],
    ids=["one row", "two closer", "two lefts", "two shares"],
)
def test_statements_that_do_not_go_together_are_refused(
    columns: dict[str, list[float]], message: str, tmp_path: Path
) -> None:
    single = "group" in columns
    ends = np.array([[0, 1], [0, 2], [3, 1]])
    positions = np.where([[False, single]], -1, ends)
    with pytest.raises(ValueError, match=message):
        Judgements.from_columns(positions, columns)
    rows = [row for row in zip(ends, *columns.values(), strict=True) if row[1]]
    lines = [f"{a},{'' if single else b},{u},{v},," for (a, b), u, v in rows]
    pairs = tmp_path / "pairs.csv"
    head = f"left,right,{','.join(columns)},similarity,difference"
    pairs.write_text("\n".join([head, *lines, "0,3,,,0.5,0.1"]))
    (tmp_path / "items.csv").write_text("id,x\n0,1\n1,2\n2,5\n3,4\n")
    result = run("fit", tmp_path / "items.csv", pairs, "--out", tmp_path / "model")
    assert result.exit_code == 2 and re.search(message, " ".join(result.output.split()))


def test_groups_beside_groups_of_a_table_are_their_own() -> None:
    shares = Judgements.in_groups(["a", "a", "-", "-"], {"a": 0.9})
    both = with_groups(shares, (["-", "-", "b", "b"], {"b": 0.1}))
    assert both.values.tolist() == [[0.9, 0], [0.9, 0], [0.1, 1], [0.1, 1]]


@pytest.mark.parametrize(
    ("shares", "measured"),
    [((0.5, 0.5), False), ((0.52, 0.5), False), ((0.62,), True), ((0.45, 0.56), True)],
)
def test_groups_tell_the_side_by_their_shares(shares, measured, tmp_path: Path) -> None:
    """Else the accuracy would be that of the model or of its mirror image, whichever is better."""
    data = simulate(pairs=60, items=120)
    judged = Judgements.from_pairs(pair_ids(data.pairs), data.pairs.answers() * [1, np.nan])
    groups = Judgements.in_groups(np.arange(120) % 2, dict(enumerate(shares)))
    table = Table.of(data.items.features, Judgements.concatenate([judged, groups]))
    model = PairClassifier(model="linear", epochs=2, random_state=0)
    result = fit_and_measure(model, table, FitCheckpoints(tmp_path / "model", 1e9))
    assert isinstance(result, HeldAccuracy) if measured else "classes are swapped" in str(result)


@pytest.mark.parametrize(("annotators", "trainings"), [(1, 2), (3, 5)])
def test_a_fit_trains_the_model_to_measure_the_one_to_keep_and_three_for_annotators(
    annotators: int, trainings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, train = [], learning.train

    def count(*args: Any, **options: Any) -> Any:
        calls.append(len(args[1]))
        return train(*args, **options)

    monkeypatch.setattr(learning, "train", count)
    data = simulate(pairs=120, annotators=annotators)
    table = Table.of_items(data.items, data.pairs.located(data.items.ids))
    model = PairClassifier(model="linear", epochs=20, random_state=0)
    fit_and_measure(model, table, FitCheckpoints(tmp_path / "model", 1e9))
    assert len(calls) == trainings
    scores = model.fitted_.fold_log_odds
    assert (scores is None) == (annotators == 1)
    assert scores is None or np.isfinite(scores).all()


def test_a_mixed_table_is_better_than_its_best_part(tmp_path: Path) -> None:
    shares = {"same": 1.0, "comparison": 1.0, "label": 0.2}
    data = simulate("digits", pairs=60, items=900, seed=1, also=shares)
    judged = data.pairs.located(data.items.ids)
    x, of = data.items.features, np.where(np.arange(900) % 3 == 0, "a", "b")
    rng = np.random.default_rng(0)
    of = np.where(data.positive & (rng.random(900) < 0.6), "a", of)
    groups = Judgements.in_groups(of, {g: float(data.positive[of == g].mean()) for g in "ab"})
    parts = {name: judged[judged.of(name)] for name in ("both", *shares)} | {"groups": groups}

    def accuracy(table: Judgements) -> float:
        options = {"majority": "positive" if data.positive.mean() > 0.5 else "negative"}
        if table.kinds() == ("comparison",):
            options = {"prior": float(data.positive.mean())}
        model = PairClassifier(
            model="linear", epochs=30, random_state=0, unjudged="ignore", **options
        )
        model.fit(x, table)
        return float(((model.predict(x) > 0) == data.positive).mean())

    alone = {name: accuracy(part) for name, part in parts.items()}
    mixed = accuracy(Judgements.concatenate(list(parts.values())))
    assert mixed > max(alone.values()), (mixed, alone)


def test_groups_from_files_and_from_python(tmp_path: Path) -> None:
    data = simulate(pairs=40, items=400, seed=2)
    of = np.where(data.posterior > 0.5, "up", "down")
    shares = {name: float(data.positive[of == name].mean()) for name in ("up", "down")}
    write_pairs(data.pairs[:10], tmp_path / "pairs.csv")
    write_items(data.items, tmp_path / "plain.csv")
    head, *lines = (tmp_path / "plain.csv").read_text().splitlines()
    rows = [f"{head},group", *(f"{line},{name}" for line, name in zip(lines, of, strict=True))]
    (tmp_path / "items.csv").write_text("\n".join(rows) + "\n")
    groups = [f"{name},{share},0.02" for name, share in shares.items()]
    (tmp_path / "groups.csv").write_text("\n".join(["group,share,uncertainty", *groups]) + "\n")
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    options = ("--groups", tmp_path / "groups.csv", "--model", "linear", "--epochs", 40)
    summary = answer("fit", *files, "--out", tmp_path / "model", *options, "--holdout", 0)
    assert summary["features"] == data.items.features.shape[1]
    assert summary["statements"] == {"both": 10, "group": 2}
    from_files = PairClassifier.load(tmp_path / "model")
    from_python = PairClassifier(model="linear", epochs=40, random_state=0)
    from_python.fit(data.items.features, None, groups=(of, shares))
    for model, x in ((from_files, data.items), (from_python, data.items.features)):
        assert ((model.predict(x) > 0) == data.positive).mean() > 0.85
    for line, message in (("up,0.3", "row 2: group 'up' is in row 1"), ("w,1", "'w' has 0 items")):
        (tmp_path / "groups.csv").write_text(f"group,share\nup,0.5\n{line}\n")
        refused = run("fit", *files, "--out", tmp_path / "other", *options)
        assert refused.exit_code == 2 and message in refused.output
        assert "groups.csv" in refused.output
    with pytest.raises(ValueError, match="group 'west' has 0 items"):
        from_python.fit(data.items.features, None, groups=(of, {"west": 0.5}))
    with pytest.raises(ValueError, match="give labels as Judgements"):
        from_python.fit(data.items.features, np.ones((3, 2)), groups=(of, shares))


HEAD = "left,right,similarity,difference,label,confidence,positive\n"


CASES = {
    "labels alone": (
        "0,,,,positive,,\n1,,,,negative,,\n" * 3,
        "no pairs 6 known classes a model can learn: everything",
        "6 judgements of 2 items with 1 feature: 6 known classes",
    ),
    "one class": (
        "0,,,,positive,,\n" * 3,
        "error one-value: All known classes are 1, and there are no pairs",
        "one-value: All known classes are 1",
    ),
    "positives": (
        "0,,,,,,yes\n1,,,,,,yes\n",
        "The table has only known positives, which do not show how frequent the classes are",
        "needs-prior: The table has only known positives",
    ),
    "out of range": (
        "0,1,0.9,0.1,,,\n1,,,,,1.7,\n",
        "{}, row 2: confidence is 1.7, outside [0, 1]",
        "{}, row 2: confidence is 1.7, outside [0, 1]",
    ),
    "similarities and classes": (
        "".join(f"{k},{k + 1},0.9,,,,\n{k},,,,positive,,\n" for k in range(0, 20, 2)),
        "10 similarities, 10 known classes a model can learn: hardly anything",
        "20 judgements of 20 items with 1 feature: 10 similarities, 10 known classes",
    ),
    "few pairs": (
        "".join(f"{k},{k + 1},0.9,0.05,,,\n" for k in range(0, 20, 2)),
        "10 similarities with differences",
        "The model is right on 0.0% to 100.0% of new items",
    ),
    "two in a row": (
        "left,right,similarity,comparison\n"
        + "".join(f"{k},{19 - k},0.{k},right\n" for k in range(9)),
        "9 similarities, 9 comparisons",
        "9 similarities, 9 comparisons",
    ),
    "counts": (
        "0,1,0.9,0.1,,,\n0,,,,,0.9,\n1,,,,negative,,\n" * 4,
        "4 similarities with differences, 4 known classes, 4 confidences",
        "4 similarities with differences, 4 known classes, 4 confidences",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_messages_about_statements_on_items(case: str, tmp_path: Path) -> None:
    pairs, items = tmp_path / "said.csv", tmp_path / "items.csv"
    rows, check, fit = CASES[case]
    pairs.write_text(HEAD * (not rows.startswith("left")) + rows)
    items.write_text("id,x\n" + "".join(f"{k},{k**2 % 7}\n" for k in range(20)))
    quick = ("--model", "linear", "--epochs", 1, "--out", tmp_path / "model", "--holdout", 0.3)
    for result, text in ((run("check", pairs), check), (run("fit", items, pairs, *quick), fit)):
        assert text.format(pairs) in plain(result.output), result.output
