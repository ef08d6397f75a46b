"""Numbers and names that the pages of the site state are those of the files they come from."""

from __future__ import annotations

import ast
import csv
import json
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
DOCS, PAPER = ROOT / "docs", ROOT / "bench" / "results" / "paper"
PUBLISHED = ROOT / "bench" / "src" / "pairlearn_bench" / "published"
DATASETS = {
    "MNIST": "mnist",
    "Kuzushiji-MNIST": "kmnist",
    "Fashion-MNIST": "fashion-mnist",
    "Optdigits": "optdigits",
    "Pendigits": "pendigits",
    "Letter": "letter",
}
METHODS = {
    "Sconf-ABS": ("sconf", "", "abs"),
    "ConfDiff-ABS": ("confdiff", "", "abs"),
    "Convex(0.5)-ABS": ("convex", "0.5", "abs"),
    "SconfConfDiff-ABS": ("sconfconfdiff", "", "abs"),
    "non-negative": ("nonnegative", "", "none"),
    "likelihood-abs": ("likelihood", "", "abs"),
    "supervised": ("supervised", "", "none"),
}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tables_of(page: str) -> Iterator[list[list[str]]]:
    """The Markdown tables of a page, as rows of cells; the first row is the heading."""
    for block in re.findall(r"(?:^\|.*\|\n)+", (DOCS / page).read_text(encoding="utf-8"), re.M):
        rows = [line.strip("|").split("|") for line in block.splitlines()]
        yield [[cell.strip(" *") for cell in row] for row in rows if set("".join(row)) - set(" -:")]


def table_with(page: str, text: str) -> list[list[str]]:
    (found,) = [table for table in tables_of(page) if text in " ".join(table[0])]
    return found


def page_text(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def number(cell: str) -> float:
    return float(cell.replace("−", "-"))


@pytest.fixture(scope="module")
def accuracy() -> dict[tuple[str, ...], float]:
    keys = ("dataset", "prior", "risk", "gamma", "correction", "test_subset")
    return {
        tuple(row[key] for key in keys): float(row["accuracy_mean"])
        for row in rows_of(PAPER / "accuracy.csv")
    }


def test_the_methods_by_data_set(accuracy):
    heading, *rows = next(t for t in tables_of("guides/choosing.md") if "Letter" in t[0])
    assert len(rows) == len(METHODS)
    for name, *cells in rows:
        method = METHODS[name.split(",")[0]]
        for dataset, cell in zip(heading[1:], cells, strict=True):
            stated = accuracy[DATASETS[dataset], "0.2", *method, "stratified"]
            assert number(cell) == pytest.approx(stated, abs=0.00051), (name, dataset)


def test_the_corrections(accuracy):
    heading, *rows = table_with("guides/choosing.md", "MNIST, prior 0.2")
    for name, *cells in rows:
        risk = name.lower().replace("(0.5)", "")
        gamma = "0.5" if risk == "convex" else ""
        for correction, cell in zip(heading[1:], cells, strict=True):
            key = ("mnist", "0.2", risk, gamma, correction.lower(), "stratified")
            assert number(cell) == pytest.approx(accuracy[key], abs=0.00051), key


def test_the_two_test_subsets(accuracy):
    published = {
        (row["dataset"], row["prior"], row["risk"], row["gamma"], row["correction"]): row
        for row in rows_of(PUBLISHED / "accuracy.csv")
    }
    heading, *rows = table_with("research/protocol.md", "paper − stratified")
    assert len(rows) == 12
    for name, prior, told, *cells in rows:
        dataset, method = name.split(", ")
        key = (DATASETS[dataset], prior, *METHODS[method])
        if told != "–":
            assert number(told) == pytest.approx(float(published[key]["accuracy_mean"]))
        paper, stratified = accuracy[*key, "paper"], accuracy[*key, "stratified"]
        for cell, value in zip(cells, (paper, stratified, paper - stratified), strict=True):
            assert number(cell) == pytest.approx(value, abs=0.00051), name
    assert heading[2] == "published"


def test_noise():
    stated = {
        (row["dataset"], row["risk"], float(row["label_noise_std"])): float(row["accuracy_mean"])
        for row in rows_of(PAPER / "robustness.csv")
        if row["correction"] == "abs"
        and row["test_subset"] == "stratified"
        and float(row["prior_factor"]) == 1
    }
    heading, *rows = next(t for t in tables_of("guides/choosing.md") if "σ" in t[1][0])
    assert len(rows) == 4
    for name, *cells in rows:
        method, sigma = name.split(", σ = ")
        for dataset, cell in zip(heading[1:], cells, strict=True):
            key = (DATASETS[dataset], METHODS[method][0], float(sigma))
            assert number(cell) == pytest.approx(stated[key], abs=0.00051), key


def test_the_lead_under_noise():
    best, likelihood = defaultdict(float), {}
    for row in rows_of(PAPER / "robustness.csv"):
        cell = (row["dataset"], row["label_noise_std"])  # the likelihood takes no prior
        if row["test_subset"] != "stratified":
            continue
        if row["risk"] == "sconfconfdiff":
            best[cell] = max(best[cell], float(row["accuracy_mean"]))
        elif row["correction"] == "abs":
            likelihood[cell] = float(row["accuracy_mean"])
    leads = [likelihood[cell] - best[cell] for cell in best]
    pattern = r"in (\d+) of \1 cells, by (0\.\d+) to (0\.\d+)"
    stated = re.search(pattern, page_text("guides/prior.md"))
    assert int(stated[1]) == len(leads)
    assert [float(stated[2]), float(stated[3])] == pytest.approx(
        [min(leads), max(leads)], abs=0.00051
    )


def test_where_relu_fails():
    least = defaultdict(lambda: 1.0)
    for row in rows_of(PAPER / "gamma.csv"):
        if row["correction"] == "relu" and row["test_subset"] == "stratified":
            least[row["dataset"]] = min(least[row["dataset"]], float(row["accuracy_mean"]))
    text = page_text("theory/corrections.md")
    for name in ("MNIST", "Kuzushiji-MNIST", "Optdigits"):
        (stated,) = re.findall(rf"(0\.\d\d) on {name}", text)
        assert float(stated) == pytest.approx(least[DATASETS[name]], abs=0.0051), name


def test_the_non_negative_member_as_a_training_loss(accuracy):
    behind = [
        accuracy[data, prior, "sconfconfdiff", "", "abs", "stratified"]
        - accuracy[data, prior, "nonnegative", "", "none", "stratified"]
        for data in DATASETS.values()
        for prior in ("0.2", "0.8")
    ]
    assert min(behind) > 0
    stated = f"less accurate than SconfConfDiff-ABS in {len(behind)} of 12 cells at priors 0.2 and"
    stated += f" 0.8, by {min(behind):.3f} to {max(behind):.3f} ("
    assert stated in page_text("theory/family.md")


def test_the_shift_to_another_prior():
    changes = defaultdict(lambda: defaultdict(list))
    for run in pq.read_table(ROOT / "bench" / "results" / "runs" / "accuracy.parquet").to_pylist():
        for name in ("", "annotator_"):
            before = run[f"accuracy_{name}stratified"]
            change = run[f"accuracy_{name}stratified_shifted"] - before
            cell = (run["dataset"], run["prior"])
            if run["prior"] != 0.5:
                changes[name or run["method"]][cell].append(change)
    mean = {name: fmean(map(fmean, cells.values())) for name, cells in changes.items()}
    text = page_text("theory/prior.md")
    assert f"annotator itself by {mean['annotator_']:+.3f} on average" in text
    assert f"likelihood by {mean['likelihood-abs']:+.4f}" in text
    assert f"SconfConfDiff-ABS by −{-mean['sconfconfdiff-abs']:.3f}" in text
    assert f"ConfDiff-ABS by −{-mean['confdiff-abs']:.3f} (" in text


def test_copies_in_the_published_noise_tables():
    tables = defaultdict(dict)
    for row in rows_of(PUBLISHED / "robustness.csv"):
        key = tuple(row[name] for name in row if not name.startswith(("accuracy", "label_noise")))
        tables[key][float(row["label_noise_std"])] = (row["accuracy_mean"], row["accuracy_std"])
    cells = sum(len(table) for table in tables.values())
    for table in tables.values():
        assert table[0.01] == table[0.0]
        assert table[0.1] == table[0.05]
    assert (cells, 2 * len(tables)) == (600, 240)
    assert "240 of 600" in (DOCS / "research/protocol.md").read_text(encoding="utf-8")


def test_variances_of_the_members():
    relative = {
        row["member"]: float(row["relative"])
        for row in rows_of(ROOT / "bench" / "results" / "theory" / "variance-members.csv")
    }
    heading, cells = table_with("theory/family.md", "non-negative")
    names = {"non-negative": "nonnegative", "Convex(½)": "convex-0.5"}
    for name, cell in zip(heading, cells, strict=True):
        value = relative[names.get(name, name.lower())]
        assert float(cell) == pytest.approx(value, rel=0.02), name


NUMBER = r"\d(?:[\d.,]*\d)?(?: (?:of|to) \d(?:[\d.,]*\d)?)?"
CLAIM = re.compile(rf'\[({NUMBER})\]\(([^)#\s]+)(?:#[^)\s]*)?(?: "([^"]*)")?\)')


def linked_number(text: str, place: str) -> str:
    """The number at a place of a file, which the title of a link names.

    "row: column" is a cell, in the first row with these words below a heading with this column;
    "words … words" is what stands between the words; "part > place" is a place below the part.
    """
    *parts, last = place.split(" > ")
    start = 0
    for part in parts:
        start = text.index(part, start) + len(part)
    if "…" in last:
        before, after = (re.escape(words).replace(r"\ ", r"\s+") for words in last.split("…"))
        return re.search(rf"{before}({NUMBER}){after}", text[start:])[1]
    row, column = last.rsplit(": ", 1)
    heading, end = [], 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        cells = [one.strip(" *`") for one in re.split(r"\||\s{2,}", line.strip()) if one.strip()]
        if column in cells and not any(re.fullmatch(r"[\d.]+", one) for one in cells):
            heading = cells
        elif end > start and heading and set(row.split()) <= set(re.split(r"[\s|*]+", line)):
            unnamed = max(0, len(cells) - len(heading))  # the heading may leave out the first
            return re.search(NUMBER, cells[heading.index(column) + unnamed])[0]
    raise LookupError(place)


def test_places_in_files():
    text = "| a | b |\n|--|--|\n| x | 1.5 ± 0.1 |\nthen\n  p  q\n x  2  3 of 4\nit is 0.7, or 0.8\n"
    assert linked_number(text, "x: b") == "1.5"
    assert linked_number(text, "then > x: q") == "3 of 4"
    assert linked_number(text, "it is …,") == "0.7"
    with pytest.raises(LookupError):
        linked_number(text, "y: b")


def test_numbers_that_are_links_are_those_of_the_place():
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    claims = [(page, *one) for page in pages for one in CLAIM.findall(page.read_text("utf-8"))]
    assert len(claims) > 30
    for page, number_, target, place in claims:
        text = (page.parent / target).read_text(encoding="utf-8")
        assert number_ == linked_number(text, place), (page.name, number_, target, place)


def test_the_numbers_of_the_readme():
    """Its table is that of the results, and its first story the one that the tutorial tells."""
    measured = (PAPER / "siblings.md").read_text(encoding="utf-8")
    rows = {
        "**pairlearn**": "Likelihood-soft",
        "labels": "Likelihood-label",
        "soft labels": "Likelihood-confidence",
        "PU learning (`nnpu-relu`)": "nnPU-ReLU",
        "preferences": "Likelihood-comparison",
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = [[cell.strip() for cell in line.split("|")[1:-1]] for line in readme.splitlines()]
    stated = [cells for cells in stated if cells and cells[0] in rows]
    assert len(stated) == len(rows)
    for name, *_, few, some, many in stated:
        for count, cell in zip(("100", "300", "1,000"), (few, some, many), strict=True):
            assert cell == linked_number(measured, f"{rows[name]}: {count} answers"), name
    words = (
        r"between (0\.\d{3}) and (1\.\d{3}), if the doctors are calibrated; "
        r"the classifier is right on (\d+) of (\d+) new"
    )
    low, high, right, new = re.search(words, " ".join(readme.split())).groups()
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    evaluated = tutorial.partition("pairlearn evaluate")[2]
    shown = f"The model is right on {float(low):.1%} to {float(high):.1%} of new items"
    assert shown in evaluated
    assert f"{right} of {new} right" in tutorial


def test_links_between_files_lead_somewhere():
    for page in (
        *ROOT.glob("*.md"),
        *ROOT.glob("bench/results/**/*.md"),
        *ROOT.glob("bench/speed/*.md"),
    ):
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists() or "auto_gallery" in link, (page, link)


def test_what_pairs_are_worth():
    page = (DOCS / "guides" / "asking.md").read_text(encoding="utf-8")
    page = page.partition("## Are pairs worth it?")[2].partition("\n## ")[0]
    measured = (ROOT / "bench" / "speed" / "worth.txt").read_text(encoding="utf-8")
    stated = re.findall(r"\b0\.\d{3}\b|\b\d+ of \d+\b", page)
    assert len(stated) > 5
    assert not [one for one in stated if one not in measured]


def rounded(cell: str, value: float) -> bool:
    """Whether a printed number, whatever stands behind it, is this one, rounded."""
    digits = re.match(r"[+−]?[\d,.]+", cell)[0].replace(",", "")
    return number(digits) == pytest.approx(value, abs=0.5001 * 10 ** -len(digits.partition(".")[2]))


def compared(part: str, rival: str) -> tuple[str, list[str], int]:
    """Of pairs less a rival: the mean with its interval over data sets, the verdicts, the cells."""
    rows = [row for row in rows_of(PAPER / f"{part}.csv") if row["rival"] == rival]
    by_set = defaultdict(list)
    for row in rows:
        by_set[row["dataset"]].append(float(row["difference"]))
    means = np.array([fmean(values) for values in by_set.values()])
    half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / len(means) ** 0.5
    numbers = (fmean(float(row["difference"]) for row in rows), means.mean() - half)
    mean, low, high = (f"{v:+.4f}".replace("-", "−") for v in (*numbers, means.mean() + half))
    return f"{mean} {low} to {high}", [row["verdict"] for row in rows], len(rows)


@pytest.mark.parametrize(
    ("rival", "pattern", "verdict"),
    [
        (
            "likelihood-confidences",
            r"The difference is (\S+) on average \(95% interval over data sets (.*?)\), and (none) "
            r"of the (18)",
            "ahead",
        ),
        ("likelihood-confidence", r"by (\S+) \((.*?); significantly in (\d+) of (\d+)\)", "ahead"),
        ("annotator", r"its own accuracy: (\S+) \((.*?)\), level in (all) (\d+)", "level"),
    ],
)
def test_pairs_beside_single_items(rival: str, pattern: str, verdict: str) -> None:
    found, verdicts, cells = compared("fair", rival)
    said = re.search(pattern, page_text("results/fair.md"))
    assert said is not None
    mean, interval, count, of = said.groups()
    assert f"+{mean.lstrip('+')} {interval}".replace("+−", "−") == found
    words = {"none": 0, "all": cells}
    assert (words.get(count) if count in words else int(count)) == verdicts.count(verdict)
    assert int(of) == cells


def test_the_first_sentence_of_the_results() -> None:
    found, verdicts, _ = compared("fair", "likelihood-confidences")
    readme = " ".join((PAPER.parent / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"of each item\*\*: the difference is (\S+) on average \(95% interval over the six data "
        r"sets (.*?)\), level in (\d+) of (\d+) cells",
        readme,
    )
    assert said is not None
    assert f"{said[1]} {said[2]}" == found
    assert (int(said[3]), int(said[4])) == (verdicts.count("level"), len(verdicts))


def test_the_likelihood_beside_risks_whose_assumptions_hold() -> None:
    said = re.search(
        r"by (\S+) of SconfConfDiff-ABS and by (\S+) of ConfDiff-ABS on average, and in all (\d+) "
        r"cells.*Pairs and soft labels of both items are level here",
        page_text("results/fair.md"),
    )
    assert said is not None
    for k, rival in enumerate(("sconfconfdiff-abs", "confdiff-abs")):
        found, verdicts, cells = compared("calibrated", rival)
        assert found.startswith(f"+{said[k + 1]} ")
        assert verdicts == ["ahead"] * cells and cells == int(said[3])
    assert set(compared("calibrated", "likelihood-confidences")[1]) == {"level"}


def test_pairs_with_noise_beside_soft_labels_with_noise() -> None:
    verdicts = compared("fair-noise", "likelihood-confidences")[1]
    assert sorted(verdicts) == ["ahead", *["level"] * 5]
    assert "in one of six cells and level in the others" in page_text("results/fair.md")
    assert compared("fair-noise", "annotator")[0].startswith("−")


def test_a_part_of_the_pairs_beside_soft_labels() -> None:
    found, verdicts, _ = compared("fair-limited", "likelihood-confidences")
    page = page_text("results/fair.md")
    assert verdicts == ["level"] * 36 and "level in all 36 cells" in page
    said = re.search(
        r"On average pairs are (\S+) lower \(95% interval (.*?)\), and (\S+) ahead", page
    )
    assert said is not None and f"−{said[1]} {said[2]}" == found
    assert compared("fair-limited", "likelihood-confidence")[0].startswith(f"+{said[3]} ")


def test_pairs_beside_other_methods() -> None:
    page = page_text("results/fair.md")
    for rival, pattern in (
        ("mcl", r"MCL is (\S+) behind\*\* \(significantly in (\d+) of 18\)"),
        ("glws-similarity", r"from similarities alone \((\S+) behind on average\)"),
        ("nnpu-ascent", r"ascent step is (\S+) behind\*\* \(in (\d+) of 18\)"),
    ):
        found, verdicts, _ = compared("fair-rivals", rival)
        said = re.search(pattern, page)
        assert said is not None and found.startswith(f"+{said[1]} ")
        assert (said.re.groups == 1) or int(said[2]) == verdicts.count("ahead")
    for rival in ("glws-similarity", "glws-difference"):
        assert compared("fair-rivals", rival)[1] == ["level"] * 18


def test_questions_about_several_classes() -> None:
    said = (PAPER.parent / "headline.txt").read_text(encoding="utf-8")
    tallies = dict(re.findall(r"^classes, (\S+): (.*)$", said, re.MULTILINE))
    for name, counts in (
        ("all-soft-confidences", "ahead in 1 of 26 cells, level in 25, behind in 0"),
        ("all-soft-confidences", "mean +0.0010; 95% over data sets -0.0000 to +0.0020"),
        ("half-soft-label", "ahead in 5 of 26 cells, level in 15, behind in 6"),
        ("half-soft-proposed", "margins +0.0004 to"),
        ("half-soft-random", "margins +0.0013 to"),
        ("half-hard-label", "ahead in 0 of 26 cells, level in 18, behind in 8"),
        ("proposed-hard-label", "ahead in 0 of 26 cells, level in 3, behind in 23"),
    ):
        assert counts in tallies[name]
    for name, stated in (("half-soft-proposed", "0.041"), ("half-soft-random", "0.052")):
        assert rounded(stated, float(re.findall(r"mean (\S+);", tallies[name])[0]))
        assert stated in page_text("results/classes.md")


def test_the_page_on_same_alone() -> None:
    mean, expert = defaultdict(list), {}
    for row in rows_of(PAPER.parent / "same.csv"):
        if row["source"] == "ours, CPU":
            mean[row["dataset"], row["method"], row["setting"]].append(float(row["accuracy"]))
            expert[row["dataset"]] = float(row["expert_accuracy"])
    noisy = "expert, 30% uniform"
    sets = "mnist", "fashion-mnist"
    ours, known = (
        [fmean(mean[name, method, noisy]) for name in sets]
        for method in ("ours", "ours, share known")
    )
    loss = [expert[name] - own for name, own in zip(sets, known, strict=True)]
    page = page_text("results/classes.md")
    assert "from {:.2f} and {:.2f} to {:.2f} and {:.2f}".format(*ours, *known) in page
    assert "{:.2f} and {:.2f} below the expert".format(*loss) in page
    runs = pq.read_table(PAPER.parent / "runs" / "classes.parquet").to_pylist()
    for name, published, stated in zip(sets, (0.970, 0.836), (0.05, 0.04), strict=True):
        own = [
            run["accuracy_stratified"]
            for run in runs
            if (run["dataset"], run["method"], run["pairs"]) == (name, "classes-same-true", 10_000)
        ]
        assert len(own) == 5
        assert published - fmean(own) == pytest.approx(stated, abs=0.005)
    assert "by about 0.05 on MNIST and 0.04 on Fashion-MNIST" in page


def test_guidance_beside_two_starts() -> None:
    rows = rows_of(PAPER.parent / "runs" / "starts.csv")
    plain, second, guided = (
        [float(row[f"accuracy_{name}"]) < 0.5 for row in rows]
        for name in ("first", "second", "guided")
    )
    better = [
        b if float(row["loss_second"]) < float(row["loss_first"]) else a
        for row, a, b in zip(rows, plain, second, strict=True)
    ]
    prevented = sum(a and not g for a, g in zip(plain, guided, strict=True))
    caused = sum(g and not a for a, g in zip(plain, guided, strict=True))
    assert caused == 0 and stats.binomtest(0, prevented).pvalue < 0.001
    text = " ".join((PAPER.parent / "README.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"{len(rows)} tables of 40 or 90 pairs, a small network) {sum(plain)} plain trainings "
        f"ended mirrored and {sum(guided)} guided ones. Guidance prevented {prevented} failures",
        f"did as well, with {sum(better)} failures",
        f"On {len(rows)} harder tables of other data sets, {sum(guided)} runs with guidance "
        f"and {sum(plain)} without it ended mirrored",
    ):
        assert sentence in text


def test_scaling(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench" / "speed")
    scaling = import_module("scaling")
    page, folder = "guides/scaling.md", scaling.FOLDER
    keys = ("read_seconds", "epoch_seconds", "other_seconds", "total_seconds", "cpu_seconds")
    for size, *cells in table_with(page, "read, s")[1:]:
        pairs = 10 ** "⁰¹²³⁴⁵⁶⁷⁸".index(size[-1])
        for key, cell in zip((*keys, "peak_mib", "file_mib"), cells, strict=True):
            stated = scaling.least(folder / "pairs.csv", "pairs", {}, key)[pairs]
            assert rounded(cell, stated), (size, key)
    for size, *cells in table_with(page, "MLP: ms a step")[1:]:
        models = int(size.split()[0].replace(",", ""))
        for what, unit, first in (("linear", 1000, 0), ("mlp", 1, 3)):
            if cells[first]:
                only = {"what": f"{what}, CPU"}
                step, memory = (
                    scaling.least(folder / "fleets.csv", "models", only, key)[models]
                    for key in ("cpu_ms_per_step", "memory_gib")
                )
                stated = (step, unit * step / models, 1024 * memory)
                assert all(map(rounded, cells[first:][:3], stated)), (size, what)
    lines = scaling.cost_model(folder)
    rows = [
        ("pairs: cpu_seconds", 1, 1e6),
        *(("pairs: peak_mib", 1, 2**20), ("linear, CPU: cpu_ms_per_step", 1, 1)),
        *(("linear, CPU: memory_gib", 1024, 1024), ("mlp, CPU: cpu_ms_per_step", 1, 1)),
        *(("mlp, CPU: memory_gib", 1024, 1024), ("mlp, H200, float32: memory_gib", 1024, 1024)),
    ]
    for (name, fixed, each), (_, a, b, held, *cells) in zip(
        rows, table_with(page, "predicted")[1:], strict=True
    ):
        stated = lines[name]
        assert rounded(a, fixed * stated["fixed"]) and rounded(b, each * stated["each"]), name
        if held != "–":
            unit = 1 if "GiB" in cells[0] else fixed
            assert rounded(cells[0], unit * stated["predicted"]), name
            assert rounded(cells[1], unit * stated["measured"]), name
            assert rounded(cells[2], 100 * stated["error"]), name


def test_hard_answers():
    measured = (ROOT / "bench" / "speed" / "annotators.txt").read_text(encoding="utf-8")
    _, *rows = table_with("guides/disagree.md", "calibration error")
    for (_, *cells), (crowd, choice) in zip(
        rows, product(("hard, drawn", "hard, likeliest"), (0, 1)), strict=True
    ):
        for data, first in (("soft", 0), ("letter", 2)):
            line = measured.split(f"\n{data}, 2,000 pairs")[1].split(f"{crowd}  ")[1]
            columns = line.splitlines()[0].split()
            assert cells[first : first + 2] == [columns[choice], columns[10 + choice]], crowd


def test_annotators_corrected_and_not():
    measured = (ROOT / "bench" / "speed" / "annotators.txt").read_text(encoding="utf-8")
    crowds = (
        *("ideal", "a fifth random", "leaning to same", "leaning left", "three, mixed"),
        *("careful, constant, random", "two of four careful"),
    )
    _, *rows = table_with("guides/disagree.md", "simulated set: ideal")
    for crowd, (_, *cells) in zip(crowds, rows, strict=True):
        for data, first in (("soft", 0), ("letter", 3)):
            lines = measured.split(f"\n{data}, 2,000 pairs")[1].splitlines()
            (line,) = [one for one in lines[1:17] if one.strip().startswith(f"{crowd}  ")]
            ideal, auto, _, holds = line.split(crowd, 1)[1].split()[:4]
            assert cells[first : first + 2] == [ideal, auto], crowd
            assert int(cells[first + 2]) / 10 == pytest.approx(
                float(holds.strip("%")) / 100, abs=0.001
            )


# ---- the walk through the architecture --------------------------------------------------------

PAGE = DOCS / "extend" / "architecture.md"
NAMES = sorted(set(re.findall(r"`((?:pairlearn\.)?[a-z_]+(?:\.[A-Za-z_]+)+)`", PAGE.read_text())))


def test_the_walk_is_short():
    stops = re.findall(r"^(\d+)\. ", PAGE.read_text(), re.M)
    assert stops == [str(k) for k in range(1, len(stops) + 1)]
    assert 10 < len(stops) <= 15


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name):
    pkgutil.resolve_name(f"pairlearn.{name.removeprefix('pairlearn.')}")


ACCURACIES = re.compile(
    r"\b0\.[5-9]\d\d(?: to [01]|(?<=between 0....) and [01]| \(0)\.\d{3}\b"
    r"|\b[5-9]\d\.\d% to \d+\.\d%"
)
CONDITION = re.compile(
    r"assum|calibrated|given what they know|whatever the annotators|however reliable", re.IGNORECASE
)


def without_condition(text: str) -> list[str]:
    """Sections with an interval of an accuracy, and no word about its condition."""
    found = []
    for section in re.split(r"^#{1,3} ", text, flags=re.MULTILINE):
        blocks = re.split(r"^```|\n\n", section, flags=re.MULTILINE)
        shown = any(
            ACCURACIES.search(block) and re.search(r"\baccuracy\b|right on", block)
            for block in blocks
        )
        if shown and not CONDITION.search(section):
            found.append(section.partition("\n")[0])
    return found


def shown_text(page: Path) -> str:
    """The text that a reader sees: of a notebook, the cells and what they printed."""
    if page.suffix != ".ipynb":
        return page.read_text("utf-8")
    shown: list[list[str]] = []
    for cell in json.loads(page.read_text("utf-8"))["cells"]:
        shown += [cell["source"], *(one.get("text", []) for one in cell.get("outputs", []))]
    return "\n\n".join("".join(lines) for lines in shown)


def test_every_interval_has_its_condition_beside_it():
    """On the pages of the site, on those of the benchmarks that it shows, and in the notebook."""
    pages = [
        *(ROOT / "README.md", DOCS / "first_steps.ipynb", ROOT / "bench" / "speed" / "README.md"),
        *(*DOCS.rglob("*.md"), *(ROOT / "bench" / "results").rglob("README.md")),
    ]
    texts = {page: shown_text(page) for page in pages}
    assert sum(bool(ACCURACIES.search(text)) for text in texts.values()) > 5
    assert not {page: found for page, text in texts.items() if (found := without_condition(text))}
    assert without_condition("# It\n\nThe accuracy is 0.930 (0.900 to 0.950).") == ["It"]
    assert without_condition("# It\n\nright on 93.0% to 100.0% of items") == ["It"]
    assert not without_condition("# It\n\naccuracy 0.930 to 0.950\n\nIt assumes calibration.")


def test_every_picture_of_an_accuracy_has_its_condition_beside_it():
    """Pages of the gallery compute their intervals when the site is built."""
    scripts = [page.read_text("utf-8") for page in DOCS.glob("gallery/*.py")]
    measured = [one for one in scripts if re.search(r"\b(?:estimate_accuracy|evaluate)\(", one)]
    assert len(measured) > 1
    assert all(CONDITION.search(ast.get_docstring(ast.parse(one))) for one in measured)
