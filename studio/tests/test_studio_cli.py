"""The commands `annotate …`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pairlearn.io import read_pairs
from pairlearn_studio import Answer, Project, Store
from studio_client import annotate, annotate_json, refusal


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "pumps.csv"
    path.write_text("id,age,name\n" + "".join(f"{k},{k},n{k}\n" for k in range(6)))
    return path


@pytest.fixture
def project(tmp_path: Path, items: Path) -> Path:
    folder = tmp_path / "pumps"
    assert annotate("init", folder, items, "--overlap", 2, "--annotators", "ann,bob").exit_code == 0
    return folder


def answer_all(folder: Path) -> None:
    with Store.open(Project.load(folder)) as store:
        for who in store.annotators():
            for pair in range(1, 16):
                judged = Answer(pair / 20, 0.1, key="k", seconds=3)
                answer = judged if pair > 1 else Answer(cant_say=True, key="k")
                store.submit(who.id, pair, answer).result()


def test_init(tmp_path: Path, items: Path) -> None:
    report = annotate_json(
        "init", tmp_path / "p", items, "--pairs", 7, "--overlap", 2, "--annotators", "ann, bob",
        "--title", "Pumps", "--positive", "will fail", "--negative", "will hold",
        "--columns", "age", "--seed", 3, "--address", "https://x.example",
        "--answers", "each", "--hide-ids", "--language", "fr",
        "--positive-means", "Stops.",
    )  # fmt: skip
    project = Project.load(tmp_path / "p")
    assert (report["items"], report["pairs"], report["overlap"]) == (6, 7, 2)
    names = (project.title, project.positive_name, project.negative_name)
    assert names == ("Pumps", "will fail", "will hold")
    assert (project.columns, project.plan.pairs, project.plan.seed) == (("age",), 7, 3)
    assert (project.answers, project.hide_ids, project.language) == ("each", True, "fr")
    assert project.positive_means == "Stops."
    with Store.open(project) as store:
        for name, link in report["links"].items():
            who = store.by_token(link.removeprefix("https://x.example/p/a/"))
            assert who is not None and who.name == name
        assert store.is_supervisor(report["supervisor"].removeprefix("https://x.example/p/s/"))
    (tmp_path / "ages.csv").write_text("id,age\n" + "".join(f"{k},{k}\n" for k in range(6)))
    result = annotate("init", tmp_path / "q", tmp_path / "ages.csv")
    assert Project.load(tmp_path / "q").answers == "graded"
    assert "6 items, 15 pairs, overlap 1" in result.stdout
    assert "supervisor  http://127.0.0.1:8337/q/s/" in result.stdout
    assert "the classes have no definitions" in result.stderr
    assert "already exists and is not empty" in refusal("init", tmp_path / "q", items)
    twice = tmp_path / "twice.csv"
    twice.write_text("id,age\n1,3\n1,4\n")
    for arguments, message in (
        ((tmp_path / "none.csv",), "does not exist"),
        ((items, "--pairs", 99), "6 items make 15 different pairs"),
        ((items, "--address", "x.example"), "--address is 'x.example': give one such as"),
        ((twice,), f"{twice}, item 2: id '1' is in row 1 already"),
        ((items, "--annotators", "x" * 81), "name is"),
        ((items, "--annotators", "ann, bob,ann"), "--annotators names 'ann' twice"),
    ):
        assert message in refusal("init", tmp_path / "r", *arguments)
    assert not (tmp_path / "r").exists()


def test_links(project: Path) -> None:
    links = annotate_json("link", project, "cy", "di")
    assert set(links) == {"cy", "di"}
    renewed = annotate_json("link", project, "cy", "--renew")
    assert renewed["cy"] != links["cy"]
    with Store.open(Project.load(project)) as store:
        assert store.by_token(links["cy"].rsplit("/", 1)[1]) is None
        assert store.by_token(renewed["cy"].rsplit("/", 1)[1]) is not None
    assert "/s/" in annotate_json("link", project, "--supervisor")["supervisor"]
    assert "'cy' already exists" in refusal("link", project, "cy")
    unknown = refusal("link", project, "ed", "--renew")
    assert "there is no annotator 'ed'; there are ann, bob" in unknown
    assert "give names of annotators" in refusal("link", project)
    assert annotate("retire", project, "cy").exit_code == 0
    assert "there is no annotator 'ed'" in refusal("retire", project, "ed")
    assert "'cy' has retired already" in refusal("retire", project, "di", "cy")


def test_status(project: Path) -> None:
    assert "0 answers to 0 of 15 pairs of 6 items" in annotate("status", project).stdout
    before = annotate_json("status", project)["annotators"][0]
    assert before["drift_z"] is None  # never NaN, which is not JSON
    answer_all(project)
    report = annotate_json("status", project)
    assert (report["answers"], report["cant_say"], report["pairs_answered"]) == (30, 2, 15)
    # s = pair/20 with c = 0.1 is feasible from (1 − 0.01)/2 to 0.9: pairs 10 to 15.
    assert report["infeasible"] == 2 * 8
    ann = report["annotators"][0]
    assert (ann["annotator"]["name"], ann["done"]) == ("ann", 15)
    assert ann["words"] == "–"
    text = annotate("status", project).stdout
    assert "15/15" in text
    table = text.splitlines()[1:]
    assert max(map(len, table)) <= 80
    names = ["annotator", "done", "say", "seconds", "fit", "drift", "how", "they", "answer"]
    assert table[1].split() == names
    assert "within ±3" in " ".join(text.split())
    assert "is not a project" in refusal("status", project.parent)


def test_export(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    assert "no answers yet" in refusal("export", project, out)
    answer_all(project)
    report = annotate_json("export", project, out)
    assert (report["rows"], report["cant_say"]) == (28, 2)
    assert report["answers"] == "graded"
    assert "already exists" in refusal("export", project, out)
    table = read_pairs(out)
    assert len(table) == 28 and table.annotator is not None
    assert annotate_json("export", project, out, "--without", "bob", "--force")["rows"] == 14
    assert set(np.asarray(read_pairs(out).annotator).tolist()) == {"ann"}
    everybody = refusal("export", project, out, "--without", "ann,bob", "--force")
    assert "--without ann,bob: these are all annotators with answers" in everybody
    assert "no annotator with this name has answered" in refusal(
        "export", project, out, "--without", "cy", "--force"
    )
    lines = tmp_path / "answers.jsonl"
    assert "graded answers" in annotate("export", project, lines).stdout
    assert annotate_json("export", project, lines, "--force")["rows"] == 30
    first = json.loads(lines.read_text().splitlines()[0])
    assert (first["annotator"], first["cant_say"], first["level"]) == ("ann", True, "")
    assert {"note", "seconds", "at", "level"} < first.keys()
    assert "pairs are .csv" in refusal("export", project, tmp_path / "pairs.txt")


def test_import(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text("left,right,similarity,difference\n0,1,0.8,0.1\n3,2,0.4,0.6\n")
    assert "judged.csv, row 1 does not say who judged" in refusal("import", project, path)
    report = annotate_json("import", project, path, "--annotator", "cy")
    assert (report["new"], report["annotators_added"]) == (2, 1)
    assert "2 there already" in annotate("import", project, path, "--annotator", "cy").stdout
    path.write_text("left,right,similarity\n0,1,0.8\n0,99,0.8\n")
    message = refusal("import", project, path, "--annotator", "cy")
    assert "judged.csv, row 2: '99' is not among the items" in message


def test_label_studio(project: Path, tmp_path: Path) -> None:
    names = annotate_json("label-studio", project, tmp_path / "ls")
    assert [Path(name).name for name in names] == ["config.xml", "tasks.json"]
    assert "already exists" in refusal("label-studio", project, tmp_path / "ls")
    data = [task["data"] for task in json.loads((tmp_path / "ls" / "tasks.json").read_text())]
    assert {row["left"] for row in data} <= {f"age: {k}\nname: n{k}" for k in range(6)}
    reserved = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"}
    assert not reserved & set(data[0])
    half = {"from_name": "similarity", "value": {"number": 50}}
    answered, empty = ({"completed_by": 1, "result": result} for result in ([half], []))
    export = [{"data": row, "annotations": [answered]} for row in data]
    export.append({"data": data[0], "annotations": [empty]})
    (tmp_path / "export.json").write_text(json.dumps(export))
    report = annotate_json("import", project, tmp_path / "export.json")
    assert (report["new"], report["empty"]) == (15, 1)
    text = annotate("import", project, tmp_path / "export.json").stdout
    assert "left out: 0 cancelled, 1 empty, 0 superseded" in text
    named = refusal("import", project, tmp_path / "export.json", "--annotator", "x")
    assert "names its annotators" in named


def test_serve_stays_on_this_machine_unless_told(project: Path) -> None:
    assert "(--public)" in refusal("serve", project, "--host", "0.0.0.0")
    assert "is not a project" in refusal("serve", project.parent)
