"""A table of every way to say something, in one fit; and the names of kinds in one place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from model_folders import run
from pairlearn import Judgements, PairClassifier, kinds
from pairlearn.data.simulation import simulate
from pairlearn.tables import write_items, write_pairs

SOURCE = Path(kinds.__file__).parents[1]
NEW = ("confidence", "positive", "unlabelled", "same", "comparison", "group", "triplet")


def test_no_other_module_asks_for_a_kind_by_name() -> None:
    """Risks name the kinds that they read; everything else goes over the registry."""
    names = "|".join(NEW)
    asked = rf"\b(kind|code|of|has|fills|about_items)\(\"({names})\"|kinds\.({names})\b"
    found = [
        f"{path.relative_to(SOURCE)}: {match.group()}"
        for path in SOURCE.rglob("*.py")
        if path.parent.name not in ("kinds", "paper")
        for match in re.finditer(asked, path.read_text())
    ]
    assert not found


def test_a_mixed_table_is_better_than_its_best_part(tmp_path: Path) -> None:
    shares = {"same": 1.0, "comparison": 1.0, "label": 0.2}
    made = simulate("digits", pairs=60, items=900, seed=1, also=shares)
    said = made.pairs.judgements(made.items)
    x, of = made.items.features, np.where(np.arange(900) % 3 == 0, "a", "b")
    rng = np.random.default_rng(0)
    of = np.where(made.positive & (rng.random(900) < 0.6), "a", of)
    groups = Judgements.in_groups(of, {g: float(made.positive[of == g].mean()) for g in "ab"})
    parts = {name: said[said.of(name)] for name in ("both", *shares)} | {"groups": groups}

    def accuracy(table: Judgements) -> float:
        options = {"majority": "positive" if made.positive.mean() > 0.5 else "negative"}
        if table.kinds() == ("comparison",):
            options = {"prior": float(made.positive.mean())}
        model = PairClassifier(
            model="linear", epochs=60, random_state=0, unjudged="ignore", **options
        )
        model.fit(x, table)
        return float(((model.predict(x) > 0) == made.positive).mean())

    alone = {name: accuracy(part) for name, part in parts.items()}
    mixed = accuracy(Judgements.concatenate(list(parts.values())))
    assert mixed > max(alone.values()), (mixed, alone)


def test_groups_from_files_and_from_python(tmp_path: Path) -> None:
    made = simulate(pairs=40, items=400, seed=2)
    of = np.where(made.posterior > 0.5, "up", "down")
    shares = {name: float(made.positive[of == name].mean()) for name in ("up", "down")}
    write_pairs(made.pairs[:10], tmp_path / "pairs.csv")
    write_items(made.items, tmp_path / "plain.csv")
    head, *lines = (tmp_path / "plain.csv").read_text().splitlines()
    rows = [f"{head},group", *(f"{line},{name}" for line, name in zip(lines, of, strict=True))]
    (tmp_path / "items.csv").write_text("\n".join(rows) + "\n")
    told = [f"{name},{share},0.02" for name, share in shares.items()]
    (tmp_path / "groups.csv").write_text("\n".join(["group,share,uncertainty", *told]) + "\n")
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    options = ("--groups", tmp_path / "groups.csv", "--model", "linear", "--epochs", 40, "--json")
    result = run("fit", *files, "--out", tmp_path / "model", *options, "--holdout", 0)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["features"] == made.items.features.shape[1]
    from_files = PairClassifier.load(tmp_path / "model")
    from_python = PairClassifier(model="linear", epochs=40, random_state=0)
    from_python.fit(made.items.features, None, groups=(of, shares))
    for model, x in ((from_files, made.items), (from_python, made.items.features)):
        assert ((model.predict(x) > 0) == made.positive).mean() > 0.85
    with pytest.raises(ValueError, match="group 'west' has 0 items"):
        from_python.fit(made.items.features, None, groups=(of, {"west": 0.5}))
    with pytest.raises(ValueError, match="give labels as Judgements"):
        from_python.fit(made.items.features, np.ones((3, 2)), groups=(of, shares))
