"""The counts that README, results, docs and report quote."""

import csv
import json
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pairlearn_bench import GRIDS, Record, Tally, headline_counts
from pairlearn_bench.store import Source, read_sources
from paper_results import accurate, call, made_up, write_store

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
PAGES = [ROOT / "README.md", RESULTS / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return read_sources([RESULTS])


@pytest.fixture(scope="module")
def counts(sources: list[Source]) -> dict[str, dict[str, Tally]]:
    return {
        grid: headline_counts(grid, [r for s in sources if s.grid == grid for r in s.records])
        for grid in GRIDS
    }


def test_a_prior_that_the_likelihood_does_not_take_makes_no_cells() -> None:
    runs = []
    for factor, rival in ((0.8, 0.90), (0.9, 0.97), (1.0, 0.95), (1.1, 0.90), (1.2, 0.90)):
        for noise in (0.0, 0.01, 0.05, 0.1, 0.5):
            fields = {"prior_factor": factor, "label_noise": noise}
            runs += accurate("likelihood-abs", 0.96, 0.96, 0.96, **fields)
            runs += accurate("sconfconfdiff-abs", rival, rival, rival, **fields)
    counts = headline_counts("robustness", runs)
    # Published numbers at σ = 0.01 and 0.1 are copies; ours were all run.
    assert (counts["published"].cells, counts["own"].cells) == (3, 5)
    assert counts["reproduced"].cells == 15
    # The best published of the fifteen at σ = 0.5 is 0.977, at ε = 1.2.
    assert dict(counts["published"].margins)["MNIST at 0.2, σ = 0.5"] == pytest.approx(-0.017)
    assert counts["own"].most == pytest.approx(-0.01)
    assert (counts["own"].holds, len(counts["own"].losses)) == (0, 5)
    assert all("ε" not in name for name, _ in counts["own"].losses)


def test_cifar10_counts_on_published_images_only_and_by_itself() -> None:
    # Published at 0.2: supervised 0.895 ± 0.003, the best weakly supervised one 0.884.
    def runs(**fields: str) -> list[Record]:
        return [
            *accurate("likelihood-guided", 0.885, dataset="cifar10", **fields),
            *accurate("supervised", 0.90, dataset="cifar10", **fields),
            *accurate("confdiff-abs", 0.95, dataset="cifar10", **fields),
        ]

    proper, mixed = runs(), runs(images="published", model="resnet32")
    proper += runs(model="resnet32")
    assert headline_counts("accuracy", proper) == {}
    counts = headline_counts("accuracy", [*mixed, *proper])
    before = "cifar10-resnet32-"
    assert counts[f"{before}reproduced"].losses[0][0] == (
        "CIFAR-10, published images, ResNet-32 at 0.2, ConfDiff-ABS"
    )
    tallies = {name.removeprefix(before): (t.holds, t.cells) for name, t in counts.items()}
    assert tallies == {
        "reproduced": (0, 2),
        "guided-mirrored": (1, 1),
        **{f"guided-{n}": (0, 1) for n in ("published", "own", "supervised", "annotator")},
    }
    assert "0 of 1 cells, level in 0, behind in 0, 1 with one seed" in str(
        counts[f"{before}guided-own"]
    )


def test_methods_are_compared_on_the_seeds_that_both_have() -> None:
    runs = [*accurate("likelihood-abs", 0.9), *accurate("supervised", 0.92, 0.5, 0.5)]
    ((_, margin),) = headline_counts("accuracy", runs)["supervised"].margins
    assert margin == pytest.approx(-0.02)


def test_runs_that_end_mirrored_are_counted_and_named() -> None:
    runs = [*accurate("likelihood-abs", 0.9, 0.3), *accurate("likelihood-guided", 0.9, 0.9)]
    counts = headline_counts("limited", runs)
    assert str(counts["mirrored"]) == (
        "likelihood-abs not mirrored (accuracy of at least 0.5): 1 of 2 runs, margins -0.2000 to "
        "+0.4000, mean +0.1000 (stratified test subset)\n  not in MNIST at 0.2, seed 1: -0.2000"
    )
    assert counts["guided-mirrored"].losses == ()


def test_limited_data_by_hand(counts: dict[str, dict[str, Tally]]) -> None:
    """From the table that is printed, which is rounded."""
    best: dict[Any, float] = defaultdict(float)
    ours = {}
    with (RESULTS / "paper" / "limited.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["test_subset"] != "stratified" or row["correction"] == "guided":
                continue
            place, value = (row["dataset"], row["prior"], row["fraction"]), row["accuracy_mean"]
            if row["risk"] == "likelihood":
                ours[place] = float(value)
            else:
                best[place] = max(best[place], float(value))
    margins = [ours[place] - best[place] for place in ours]
    own = counts["limited"]["own"]
    assert own.cells == len(margins)
    assert (own.least, own.most) == pytest.approx((min(margins), max(margins)), abs=2e-6)
    assert [name for name, margin in sorted(own.margins, key=lambda m: m[1]) if margin < 0] == [
        "Kuzushiji-MNIST at 0.8, 10% of the pairs",
        "Optdigits at 0.2, 10% of the pairs",
    ]


def plain(text: str) -> str:
    """Without line breaks and links, with one way to write a minus and a fraction."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.sub(r"\s+", " ", text.replace("−", "-")))
    return re.sub(r"(?<!\d)0\.(\d)", r".\1", text)


QUOTED = """
docs/guides/choosing.md: ahead in {n[labels]} cells, level in 15 and behind in 1

docs/guides/choosing.md: | {n[own]} cells | {by[own]} |

docs/guides/choosing.md: | {n[noisy]} cells | {by[noisy]} |

docs/guides/choosing.md: | {n[limited]} cells | {by[limited]} |

docs/guides/prior.md: in {n[noisy]} cells, by {by[noisy]}

docs/research/protocol.md: | accuracy | {n[same]} cells | {n[loose]} cells | {n[wide]} cells |

bench/results/README.md: | accuracy | {n[same]} | {n[loose]} | {n[wide]} |

bench/results/README.md: in all {paper.holds} accuracy cells (6 sets × 3 priors, paper subset), by
{paper.least:.3f} ({least[paper]}) to {paper.most:.3f} ({most[paper]}). The mean is {paper.mean:.3f}

bench/results/README.md: in all {noisy_paper.holds} robustness cells, by {by[noisy_paper]}

bench/results/README.md: in all {own.holds} cells by {by[own]}

bench/results/README.md: It is ahead in {n[labels]} cells, level in 15 and behind in 1 (from
{labels.least:.3f} on {least[labels]} to {labels.most:+.3f} on {most[labels]})

bench/results/README.md: in {n[noisy]} cells (six sets, five σ), by {by[noisy]}

bench/results/README.md: none of {mirrored.cells} runs with a part of the pairs ended mirrored

bench/results/README.md: in {n[own]} cells (six data sets, three priors), by {by[own]}. With noise
it is ahead in {n[noisy]} cells; with a part of the pairs it is ahead in {n[limited]}

bench/results/README.md: ahead of the paper's methods in {n[limited]} cells, and level in the
others. With guidance it is ahead in {n[guided]} cells (five of the sets), and level in the others
"""
"""What pages say, with the numbers that the function gives."""


def test_pages_quote_the_function(counts: dict[str, dict[str, Tally]]) -> None:
    accuracy, robustness, limited = (counts[g] for g in ("accuracy", "robustness", "limited"))
    tallies = {
        "own": accuracy["own"], "labels": accuracy["supervised"], "noisy": robustness["own"],
        "paper": accuracy["published"], "noisy_paper": robustness["published"],
        "same": accuracy["reproduced"], "loose": accuracy["uncorrected"], "wide": accuracy["wide"],
        "limited": limited["own"], "guided": limited["guided-own"],
        "alone": limited["mirrored"], "mirrored": limited["guided-mirrored"],
    }  # fmt: skip
    assert [len(tallies[name].losses) for name in ("alone", "mirrored")] == [3, 0]
    words = {
        "n": {name: f"{t.holds} of {t.cells}" for name, t in tallies.items()},
        "by": {name: f"{t.least:.3f} to {t.most:.3f}" for name, t in tallies.items()},
        "least": {name: min(t.margins, key=lambda c: c[1])[0] for name, t in tallies.items()},
        "most": {name: max(t.margins, key=lambda c: c[1])[0] for name, t in tallies.items()},
    }
    for entry in QUOTED.strip().split("\n\n"):
        page, _, text = entry.format(**tallies, **words).partition(": ")
        assert plain(text) in plain((ROOT / page).read_text(encoding="utf-8")), (page, text)


def test_every_count_of_cells_on_a_page_is_known(counts: dict[str, dict[str, Tally]]) -> None:
    known = {(t.holds, t.cells) for tallies in counts.values() for t in tallies.values()}
    known.add((240, 600))  # published cells that are copies, see test_paper_compare
    known.add((12, 12))  # of the non-negative member, see test_doc_claims
    known.add((18, 26))  # level with a label on several classes, see test_doc_claims
    pattern = re.compile(r"(\d+) of (?:all )?(\d+)(?: accuracy| robustness)? (?:cells|conditions)")
    unknown = {
        (page.name, count[0])
        for page in PAGES
        for count in pattern.finditer(plain(page.read_text(encoding="utf-8")))
        if (int(count[1]), int(count[2])) not in known
    }
    assert not unknown


def test_the_table_of_the_results_page_is_made_of_the_runs(
    monkeypatch: pytest.MonkeyPatch, sources: list[Source]
) -> None:
    monkeypatch.syspath_prepend(RESULTS)
    build = import_module("build")
    monkeypatch.setattr(build, "read_sources", lambda _: sources)
    table = build.leaderboard()
    assert table.count("Likelihood-ABS ") == 8  # six sets, and CIFAR-10 on either images
    assert table in (RESULTS / "README.md").read_text(encoding="utf-8")
    page = (RESULTS / "cifar10" / "README.md").read_text(encoding="utf-8")
    for table in (build.other_priors(), build.published_images(), build.noise()):
        assert table in page


def test_the_command_prints_the_file_of_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: list[Source]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pairlearn_bench.read_sources", lambda *_: sources)
        done = call("headline", "--results", RESULTS)
    assert done.exit_code == 0, done.output
    assert done.stdout == (RESULTS / "headline.txt").read_text(encoding="utf-8")
    records = made_up("limited", (0,), datasets=("letter",))
    store = write_store(tmp_path / "limited.jsonl", records)
    as_json = json.loads(call("headline", "--store", store, "--json").stdout)
    own = headline_counts("limited", records)["own"]
    assert as_json["limited"]["own"] == own.to_dict() and own.cells == 30
    assert call("headline", "--store", "no/such.jsonl").exit_code == 2
