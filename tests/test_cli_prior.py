"""The command `prior`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pairlearn.cli.prior import prior

app = typer.Typer()
app.command()(prior)

# mean(s) = .68, as at a prior of .2 or .8
TABLE = """left,right,similarity,difference,weight
a,b,0.9,,1
c,d,0.5,,1
e,f,0.64,,1
g,h,0.68,,1
i,j,,0.1,1
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(TABLE)
    return path


def test_both_sides_where_the_majority_is_not_known(pairs: Path) -> None:
    result = run(pairs)
    assert result.exit_code == 0
    assert "share of positives: 0.200 (95% interval" in result.stdout
    assert "or: 0.800" in result.stdout
    assert "from 4 similarities with mean 0.680" in result.stdout


def test_classes_of_equal_size_are_said_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [f"a{k},b{k},{0.3 + 0.38 * (k % 2):.2f}" for k in range(60)]
    path.write_text("\n".join(["left,right,similarity", *rows, ""]))
    first, second = run(path).stdout.splitlines()
    found = re.fullmatch(r"share of positives: 0.500 \(95% interval (.+) to (.+)\)", first)
    assert found is not None
    assert float(found[1]) + float(found[2]) == pytest.approx(1)
    assert second == "from 60 similarities with mean 0.490"
    assert run(path, "--majority", "negative").stdout.startswith(first[:44])


@pytest.mark.parametrize(("majority", "value"), [("positive", 0.8), ("negative", 0.2)])
def test_one_side_where_it_is(pairs: Path, majority: str, value: float) -> None:
    result = run(pairs, "--majority", majority)
    assert f"{value:.3f}" in result.stdout
    assert "or:" not in result.stdout
    told = json.loads(run(pairs, "--majority", majority, "--json").stdout)
    assert told["majority"] == majority
    assert told["value"] == pytest.approx(value)
    assert told["low"] < value < told["high"]
    assert told["if_reversed"]["value"] == pytest.approx(1 - value)
    assert float(run(pairs, "--majority", majority, "--quiet").stdout) == pytest.approx(value)


def test_weights_count(pairs: Path) -> None:
    # Weighted 3 : 1 : 3 : 1 the mean is (2.7 + .5 + 1.92 + .68)/8 = .725, the root √.45.
    rows = TABLE.replace("0.9,,1", "0.9,,3").replace("0.64,,1", "0.64,,3")
    pairs.write_text(rows)
    told = json.loads(run(pairs, "--majority", "positive", "--json").stdout)
    assert told["mean_similarity"] == pytest.approx(0.725)
    assert told["value"] == pytest.approx((1 + 0.45**0.5) / 2)


def test_recurring_items_widen_the_interval(pairs: Path) -> None:
    rows = "".join(f"hub,{k},{0.9 if k < 9 else 0.6}\n" for k in range(30))
    alone = "".join(f"{k},{k + 50},{0.9 if k < 9 else 0.6}\n" for k in range(30))
    widths = []
    for table in (rows, alone):
        pairs.write_text("left,right,similarity\n" + table)
        told = json.loads(run(pairs, "--majority", "positive", "--json").stdout)
        widths.append(told["high"] - told["low"])
    assert widths[0] != widths[1]


def test_wrong_requests(pairs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("left,right,difference\na,b,0.5\n")
    for arguments, message in (
        ((tmp_path / "none.csv",), "none.csv"),
        ((pairs, "--quiet"), "--quiet prints one number: say --majority positive or negative"),
        ((pairs, "--confidence", 1), "confidence must lie in (0, 1)"),
        ((other,), "similarity has no value"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
