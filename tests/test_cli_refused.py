"""Wrong requests, unusable files, and outputs that must not be replaced."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from model_folders import fitted, run, simulated
from pairlearn.simulation import simulate

BOTH = "left,right,similarity,difference\n"
FILES = {
    "ranked.csv": "left,right,preference\n1,2,left\n",
    "same.csv": "left,right,similarity\n1,2,0.5\n",
    "apart.csv": "left,right,difference\n1,2,0.5\n",
    "stranger.csv": BOTH + "0,999999,0.5,0.1\n",
    "loud.csv": BOTH + "1,2,1.25,0\n3,4,0.5,0.1\n5,6,0.5,0.1\n",
    "there.html": "precious",
    "there.csv": "precious",
    "there.onnx": "precious",
    "known.csv": "id,class\n118,1\n119,-1\n",
}
FIT = "fit items.csv pairs.csv --out new --epochs 1"
JUDGED = "evaluate model items.csv pairs.csv"
REFUSED = [
    ("check none.csv", "none.csv does not exist"),
    ("check pairs.csv --items none.csv", "none.csv does not exist"),
    ("check pairs.csv --prior 7", "prior must lie in (0, 1); got 7"),
    ("check pairs.csv --majority none", "none"),
    ("plan --within 0 --accuracy 0.9", "--within must lie in (0, 0.5); got 0"),
    ("plan --within nan --accuracy 0.9 --prior 0.3", "--within must lie in (0, 0.5); got nan"),
    ("plan --within .1 --accuracy 0.9", "pass --prior, or --pilot with judged pairs"),
    ("plan --within .1 --accuracy 0.9 --prior 3", "prior must lie in (0, 1); got 3"),
    ("plan --within .1 --accuracy 0.9 --pilot none.csv", "none.csv"),
    ("simulate new --prior 2", "prior must lie in (0, 1); got 2"),
    ("simulate new --overlap 0.9", "overlap must lie in (0, 0.45] for gaussians"),
    ("simulate new --also label", "'label' is not NAME=SHARE, such as label=0.1"),
    ("simulate new --from spirals", "spirals"),
    ("simulate new --pairs 0", "--pairs"),
    ("simulate items.csv", "items.csv is a file; give a folder"),
    ("simulate .", "items.csv already exists: choose another folder, or --force"),
    ("split pairs.csv a.csv a.csv", "a.csv is given twice: write the two parts to two files"),
    ("split pairs.csv a.csv b.csv --share 1", "--share must lie in (0, 1); got 1"),
    ("split pairs.csv pairs.csv b.csv --force", "pairs.csv is an input of this command"),
    ("split ranked.csv a.csv b.csv", "its items recur too often to be split"),
    ("compare items.csv pairs.csv --risks magic", "risk 'magic' is unknown"),
    ("compare items.csv pairs.csv --folds 1", "folds must be a whole number of at least 2; got 1"),
    (
        "compare items.csv pairs.csv --prior 2",
        "'prior' parameter of PairClassifier must be",
    ),
    ("compare items.csv stranger.csv", "stranger.csv, row 1: right 999999 is not among the items"),
    ("compare items.csv loud.csv", "similarity is 1.25"),
    ("report model items.csv pairs.csv r.html --threshold 1", "must lie in (0, 1)"),
    ("report model items.csv pairs.csv there.html", "there.html already exists"),
    ("report model items.csv pairs.csv items.csv --force", "reports are .html"),
    ("report none items.csv pairs.csv r.html", "none: there is no such folder"),
    ("report model items.csv loud.csv r.html", "similarity is 1.25"),
    ("report model items.csv stranger.csv r.html", "999999"),
    ("report model items.csv same.csv r.html", "1 rows with a similarity or a"),
    ("predict model items.csv --out items.csv --force", "items.csv is an input of this command"),
    ("predict model items.csv --out linked.csv --force", "linked.csv is an input of this command"),
    ("predict model items.csv --out there.csv", "there.csv already exists: choose another file"),
    ("predict model items.csv --out folder.csv --force", "folder.csv is a folder; give a file"),
    ("predict model items.csv --out there.csv/p.csv", "cannot be written: "),
    ("predict model items.csv --out p.txt", "'.txt'; predictions are .csv or .parquet"),
    ("predict model items.csv --out p.csv --threshold 2", "threshold must lie in (0, 1); got 2"),
    ("predict model none.csv --out p.csv", "none.csv does not exist"),
    ("predict model items.csv --ids none.npy --out p.csv", "ids is for .npy features; items.csv"),
    ("predict none items.csv --out p.csv", "none: there is no such folder"),
    ("predict items.csv items.csv --out p.csv", "items.csv: is a file; a model is a folder"),
    ("predict folder.csv items.csv --out p.csv", "holds no model: it has no config.json"),
    ("export model m.pt", "m.pt has the suffix '.pt'; exported models are .onnx"),
    ("export model there.onnx", "there.onnx already exists: choose another file, or --force"),
    ("export model model/m.onnx", "model may hold only the model: choose another folder"),
    ("export none m.onnx", "none: there is no such folder"),
    ("demo --out demo.xyz", "demo.xyz has the suffix '.xyz'; figures are .png, .svg or .pdf"),
    (f"{JUDGED} --threshold 1", "--threshold must lie in (0, 1); got 1"),
    (f"{JUDGED} --at-least 95", "--at-least must lie in (0, 1); got 95"),
    (f"{JUDGED} --confidence 95", "confidence must lie in (0, 1); got 95"),
    (f"{JUDGED} --prior 3", "prior must lie in (0, 1); got 3"),
    (f"{JUDGED} --positive 1", "--positive names a class of --labelled"),
    (f"{JUDGED} --cost 1", "cost must be two finite numbers, (false positive, false neg"),
    (f"{JUDGED} --cost=-1,2", "cost must be two finite numbers, (false positive, false neg"),
    (f"{FIT} --holdout 1", "--holdout must lie in [0, 1); got 1"),
    (f"{FIT} --positive a", "--positive names a class of --labelled: pass --labelled"),
    (
        f"{FIT} --prior 7",
        "'prior' parameter of PairClassifier must be",
    ),
    (
        f"{FIT} --target-prior 0",
        "'target_prior' parameter of PairClassifier",
    ),
    (f"{FIT} --annotator-prior 0.5", "annotator_prior is the prior to shift from, and needs"),
    (
        f"{FIT} --learning-rate=-1",
        "'learning_rate' parameter of TrainingOptions must be",
    ),
    (f"{FIT} --risk guess", "risk 'guess' is unknown"),
    (f"{FIT} --risk supervised", "risk 'supervised' reads classes, not judgements"),
    (f"{FIT} --device abacus", "device=abacus is unknown; give auto, cpu or cuda"),
    (f"{FIT} --prior 0.8 --majority negative", "prior 0.8 makes the positive class the"),
    (f"{FIT} --model forest", "forest"),
    (f"{FIT} --epochs 0", "--epochs"),
    (f"{FIT} --ids ids.npy", "ids is for .npy features"),
]


# A command about given.csv, what is wrong with it, and what it holds.
PAIRS, EVALUATE = "fit items.csv given.csv --out new", "evaluate model items.csv given.csv"
KNOWN, PREDICT = f"{FIT} --labelled given.csv", "predict model given.csv --out p.csv"
PERCENT = BOTH + "".join(f"{k},{k + 1},{90 - k},0.1\n" for k in range(20))
GIVEN = [
    (PAIRS, ": no column 'right'; the columns are 'left'", "left,similarity\n1,0.5\n"),
    (PAIRS, ": no column of judgements", "left,right\n1,2\n"),
    (PAIRS, "row 1: similarity is 'half', not a number", BOTH + "1,2,half,0\n"),
    (PAIRS, "row 1: similarity is '0,7', not a number: write 0.7", BOTH + '1,2,"0,7",0\n'),
    (PAIRS, "is '1,234', not a number", BOTH + '1,2,"1,234",0\n'),
    (
        *(PAIRS, "given.csv: triplet 4 must be two rows with one left, two rights, one closer"),
        "left,right,closer,triplet\n1,2,yes,4\n1,3,yes,4\n",
    ),
    (PAIRS, "self-pair: Items are paired with themselves", BOTH + "1,1,0.5,0\n"),
    (
        PAIRS,
        "unknown-item: 1 of the ids are not among the 120 items: add these ",
        BOTH + "1,none,0.5,0\n",
    ),
    (PAIRS, "State the larger class (--majority).", "left,right,similarity\n1,2,0.5\n"),
    (
        PAIRS,
        "fit needs the class prior (--prior), or some judgements of similarity.",
        "left,right,difference\n1,2,0.5\n",
    ),
    (
        PAIRS,
        "fit needs the class prior (--prior), or some judgements of similarity.",
        "left,right,preference\n1,2,left\n",
    ),
    (
        PAIRS,
        "pass noisy=True, or --noisy. (row 1)",
        BOTH + "1,2,1.2,-1.1\n3,4,0.5,0.1\n",
    ),
    (PAIRS, "The similarity column is on another scale", PERCENT),
    (PAIRS, "--similarity-scale=0,100, or map the answers to [0, 1].", PERCENT),
    (f"{PAIRS} --noisy", "--similarity-scale=0,100, or map the answers to [0, 1].", PERCENT),
    (EVALUATE, "row 2: right 'none' is not among the items in ", BOTH + "1,2,1,0\n1,none,1,0\n"),
    (
        EVALUATE,
        " has 0 rows with a similarity or a difference, and",
        "left,right,preference\n1,2,left\n",
    ),
    (
        EVALUATE,
        "give some differences, or the prior (prior=, or --prior)",
        "left,right,similarity\n1,2,0.5\n2,3,0.4\n",
    ),
    (
        EVALUATE,
        "give some similarities, or the prior (prior=, or --prior)",
        "left,right,difference\n1,2,0.5\n2,3,0.4\n",
    ),
    (
        EVALUATE,
        ", row 1: similarity is 1.5, outside [0, 1] (similarity_scale",
        BOTH + "1,2,1.5,0\n2,3,0.5,0\n",
    ),
    (EVALUATE, ": no column 'right'", "left,similarity\n1,0.5\n"),
    (KNOWN, "{}: no column 'class'; the columns are 'id', 'kind'", "id,kind\n1,a\n"),
    (KNOWN, "{} has a header but no rows", "id,class\n"),
    (KNOWN, "{}, row 2: id 'x' is not among the items", "id,class\n1,a\nx,b\n"),
    (KNOWN, "{}, row 2: id 1 is in row 1 already; ids are unique", "id,class\n1,a\n1,b\n"),
    (KNOWN, "{}, row 1: class is empty; every row needs it", "id,class\n1,\n"),
    (KNOWN, "a difference is about a class, or a set of classes", "id,class\n1,0\n2,1\n3,2\n"),
    (KNOWN, "{}: the classes are all 'a': give items of both classes", "id,class\n1,a\n2,a\n"),
    (KNOWN, "{}: the classes are 'a' and 'b': say which one is positive", "id,class\n1,a\n2,b\n"),
    (
        f"{KNOWN} --positive c",
        "are 'a' and 'b': the positive class c is neither",
        "id,class\n1,a\n2,b\n",
    ),
    (PREDICT, "{} lacks the feature 'x2' that the model was fitted to", "id,x1\n1,0.5\n"),
    (PREDICT, "{} lacks 2 features 'x1', 'x2' that the model was fitted", "id,a,b\n1,0.5,2\n"),
    (PREDICT, "{}: no column 'id'; the columns are 'x1', 'x2'", "x1,x2\n1,2\n"),
    (PREDICT, "{} has a header but no rows", "id,x1,x2\n"),
    (PREDICT, "{}, row 1: x2 is 'three', not a number", "id,x1,x2\n1,2,three\n"),
    (PREDICT, "{}, row 1: feature 'x2' is missing; fill it in or drop the", "id,x1,x2\n1,2,\n"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items, pairs and a model that has not seen them; and files that are wrong."""
    path = tmp_path_factory.mktemp("commands")
    simulated(path, seed=0, pairs=60, missing=0.4, annotators=2)
    fitted(simulate(pairs=200, prior=0.3, seed=1)).save(path / "model")
    for name, text in FILES.items():
        (path / name).write_text(text)
    (path / "folder.csv").mkdir()
    (path / "linked.csv").symlink_to(path / "items.csv")
    return path


@pytest.mark.parametrize(("line", "message", "given"), [*((*row, "") for row in REFUSED), *GIVEN])
def test_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str, given: str
) -> None:
    """One line that names the command, exit code 2, and nothing is written."""
    monkeypatch.chdir(folder)
    (folder / "given.csv").write_text(given)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = run(*shlex.split(line))
    assert (result.exit_code, result.stdout) == (2, "")
    error = " ".join(result.stderr.replace("│", " ").split())
    assert message.replace("{}", "given.csv").strip() in error
    assert error.startswith((f"pairlearn {line.split()[0]}: ", "Usage: "))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
