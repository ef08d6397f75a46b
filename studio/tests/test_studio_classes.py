"""Projects of several classes: what is asked about each pair, by whom it is answered, and how it
goes out again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from browser import PHONE, live_studio, make_project, press, scan, settled, snapshot, watch_shifts
from chat_server import Handler, chat_server, choice, text_of
from pairlearn import PairClassifier
from pairlearn.io import read_pairs
from pairlearn_studio import Answer, Plan, Project, ProjectError, Store
from pairlearn_studio.ask import ModelError, Seat, by_items, by_pairs, fill, item_model, pair_model
from pairlearn_studio.choosing import choose_sets
from pairlearn_studio.exchange import export_table
from pairlearn_studio.items import ItemView
from pairlearn_studio.records import WHETHER_SAME, Known, answer_of
from pairlearn_studio.stopping import propose
from studio_client import annotate, annotate_json, refusal, studio_of
from studio_store import make

CLASSES = {"cat": "It purrs.", "dog": "It barks.", "cow": ""}
GRADED: dict[str, Any] = {"answers": "graded", "classes": CLASSES, "question_difference": ""}
NUMBERS: dict[str, Any] = {"similarity": None, "difference": None}


# ---- the question ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"classes": {"cat": "", "dog": ""}}, "name three or more"),
        ({"classes": CLASSES, "answers": "exact"}, "with graded answers"),
        (GRADED | {"question_difference": "Which one?"}, "needs {class}"),
        ({"about": ("cat",)}, "need classes"),
        ({"labels": True}, "need classes"),
        (GRADED | {"about": ("bird",)}, "about names class 'bird'"),
        (GRADED | {"about": ("cat|dog|cow",)}, "all classes"),
        (GRADED | {"known": (Known("a", "b", "left surely", about="bird"),)}, "'bird' is none of"),
        (GRADED | {"known": (Known("a", "b", "left surely"),)}, "is no answer about ''"),
        (GRADED | {"known": (Known("a", "b", left_class="cat", right_class="x"),)}, "'x' is none"),
        ({"known": (Known("a", "b", "same surely"),)}, "is no answer about"),
    ],
)
def test_classes_that_cannot_be(words: Any, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        Project(Path("p"), "text", "items", Plan(3), **words)


def test_a_question_names_its_set_and_the_file_keeps_it(tmp_path: Path) -> None:
    project = make(tmp_path, **GRADED, about=(" dog | cat ",), labels=True, same_share=0.5)
    again = Project.load(tmp_path)
    assert again == project and again.about == ("cat|dog",) and again.title == "Cat, dog or cow?"
    asked = project.asked("cat|dog")
    assert asked["question"] == "Which one is more likely “cat” or “dog”?"
    assert project.level_words("both negative", "cow") == "Neither “cow”"
    assert project.level_words("same probably", "") == "Same, probably"
    own = Project(
        Path("p"), "text", "i", Plan(3), **(GRADED | {"question_difference": "More {class}?"})
    )
    assert own.asked("cow")["question"] == "More cow?"


@pytest.mark.parametrize(
    ("about", "left", "right", "answer"),
    [
        ("cat", "cat", "dog", "left surely"),
        ("cat|dog", "cow", "dog", "right surely"),
        ("cat|dog", "cat", "dog", "both positive"),
        ("cow", "cat", "dog", "both negative"),
        ("", "cat", "cat", "same surely"),
        ("", "cat", "dog", "different surely"),
    ],
)
def test_the_answer_that_two_classes_give(about: str, left: str, right: str, answer: str) -> None:
    assert answer_of(about, left, right) == answer


# ---- which set is asked about ------------------------------------------------------------------


def test_sets_are_drawn_with_the_probability_that_is_stored() -> None:
    """By the mixture that the theory names, computed here by hand."""
    p = np.array([[0.8, 0.2, 0.0], [0.6, 0.0, 0.4], [0.1, 0.1, 0.8]])
    rng = np.random.default_rng(0)
    ends = np.array([rng.choice(3, 2, replace=False) for _ in range(20_000)])
    project = Project(Path("p"), "text", "items", Plan(3), **GRADED, same_share=0.25)
    asked = choose_sets(project, ends, 7, p)
    same = [one for one in asked if one == ("", 1.0)]
    assert abs(len(same) / len(asked) - 0.25) < 0.01
    names = list(CLASSES)
    for (i, j), (about, q) in zip(ends.tolist(), asked, strict=True):
        if about:
            k = names.index(about)
            assert q == pytest.approx(0.9 * (p[i, k] + p[j, k]) / 2 + 0.1 / 3)
    # Weighted by 1/q, every class is asked about as often.
    weight = Counter[str]()
    for about, q in asked:
        weight[str(about)] += 1 / q
    shares = [weight[name] / (len(asked) - len(same)) for name in names]
    assert shares == pytest.approx([1, 1, 1], abs=0.08)
    assert choose_sets(project, ends[:50], 8, p) != asked[:50]


def test_without_predictions_or_with_named_sets_all_are_as_likely() -> None:
    ends = np.zeros((9000, 2), np.int64)
    for words, sets in (({}, list(CLASSES)), ({"about": ("cat|dog", "cow")}, ["cat|dog", "cow"])):
        project = Project(Path("p"), "text", "items", Plan(3), **GRADED, **words)
        asked = choose_sets(project, ends, 0)
        counts = Counter(about for about, _ in asked)
        assert {q for _, q in asked} == {1 / len(sets)} and counts.keys() == {*sets}
        assert min(counts.values()) > 0.94 * 9000 / len(sets)
    one = Project(Path("p"), "text", "items", Plan(3), **GRADED, about=("cow",))
    assert {*choose_sets(one, ends, 0)} == {("cow", 1.0)}
    assert choose_sets(Project(Path("p"), "text", "i", Plan(3)), ends[:2], 0) == [(None, 1.0)] * 2


def test_only_pairs_that_nobody_has_seen_get_another_question(tmp_path: Path) -> None:
    project = make(tmp_path, items=12, pairs=30, **GRADED, same_share=0.2)
    with Store.create(project) as store:
        ann, _ = store.add_annotator("ann")
        for _ in range(5):
            task = store.next_task(ann.id)
            assert task is not None
            level = "same surely" if task.about == "" else "left surely"
            store.submit(ann.id, task.pair, Answer(0.5, level=level)).result()
        shown = store.next_task(ann.id)
        assert shown is not None
        before = {pair.id: pair.about for pair in store.pairs()}
        fixed = {answer.pair for answer in store.answers()} | {shown.pair}
        store.carry_out(lambda changes: changes.ask_about(dict.fromkeys(before, ("cat|cow", 0.75))))
        for pair in store.pairs():
            kept = pair.id in fixed or before[pair.id] == ""
            assert pair.about == (before[pair.id] if kept else "cat|cow")
        qs = {row[0] for row in store.rows("SELECT q FROM pair WHERE about = 'cat|cow'")}
        assert qs == {0.75} and store.next_task(ann.id) == shown
        store.extend(10)
        assert {pair.about for pair in store.pairs()} <= {"", *CLASSES, "cat|cow"}


# ---- people ------------------------------------------------------------------------------------


def test_answers_and_labels_go_out_as_statements_about_sets(tmp_path: Path) -> None:
    words = GRADED | {"about": ("cat", "cow"), "labels": True, "same_share": 0.3}
    with studio_of(tmp_path / "p", pairs=40, **words) as studio:
        ann = studio.visit()
        named = 0
        for number in range(30):
            task = ann.task()
            about = task["about"]
            assert task["asked"]["question"]
            assert ("same surely" in task["levels"]) == (about == "")
            wrong = "left surely" if about == "" else "same surely"
            assert ann.answer(**NUMBERS, level=wrong).status_code == 400
            if number % 3 == 0:
                reply = ann.answer(**NUMBERS, classes=["cat", "cow"])
                named += 1
            else:
                level = "same probably" if about == "" else "right probably"
                reply = ann.answer(**NUMBERS, level=level)
            assert reply.status_code == 200, reply.text
        for classes in (["cat"], ["cat", "bird"], ["cat", "dog", "cow"]):
            assert ann.answer(**NUMBERS, classes=classes).status_code == 400
        own = ann.client.get(f"{ann.home}/api/answers").json()["answers"]
        assert {one["answer"] for one in own} >= {"“cat” · “cow”", "Right, probably"}
        boss = studio.visit("boss")
        assert "Asked about" in boss.client.get("/answers").text
    report = annotate_json("export", tmp_path / "p", tmp_path / "pairs.csv")
    assert report["rows"] == 30 + named
    table = read_pairs(tmp_path / "pairs.csv")
    assert table.of("label").sum() == 2 * named and table.sets[table.of("label")].tolist() == [
        *["cat", "cow"] * named
    ]
    soft = ~table.of("label")
    sets, q = table.sets[soft], np.asarray(table.q)[soft]
    assert {*sets.tolist()} == {"", "cat", "cow"} and {*q[sets != ""].tolist()} == {0.5}
    assert np.isnan(table.difference[table.sets == ""]).all()
    assert annotate("export", tmp_path / "p", tmp_path / "all.jsonl").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert sum(line["classes"] == ["cat", "cow"] for line in lines) == named
    with studio.store() as store:
        assert Counter(answer.annotator for answer in store.answers()) == {"ann": 30}


def test_labels_are_practice_and_checks(tmp_path: Path) -> None:
    table = tmp_path / "known.csv"
    table.write_text(
        "left,right,use,about,left_class,right_class,answer\n"
        "M-001,M-002,practice,,cat,dog,\nM-003,M-004,practice,cow,cat,dog,\n"
        "M-005,M-006,practice,,,,same surely\nM-007,M-008,check,cat|dog,cow,dog,\n"
    )
    with pytest.raises(AssertionError, match="column 'answer'"):
        bare = tmp_path / "bare.csv"
        bare.write_text("left,right\nM-001,M-002\n")
        make_project(tmp_path / "q", pairs=5, **GRADED)
        annotate_json("known", tmp_path / "q", bare)
    _, tokens, _ = make_project(tmp_path / "p", pairs=20, qualify=1.0, **GRADED)
    assert annotate_json("known", tmp_path / "p", table, "--share", "0.5")["practice"] == 3
    from studio_client import serving

    with serving(tmp_path / "p", tokens) as studio:
        ann = studio.visit()

        def practise(level: str) -> Any:
            return ann.post(f"{ann.home}/api/practice", {"level": level}).json()

        assert practise("left probably")["right"]
        reply = practise("both positive")
        assert not reply["right"] and reply["answer"] == "Neither “cow”"
        assert reply["start"]["pair"]["asked"]["question"] == "Are they of the same kind?"
        assert practise("same surely")["right"]
        for level in ("left surely", "both negative", "same probably"):
            practise(level)
        while (task := ann.task()) is not None:
            level = "right surely" if task["about"] == "cat|dog" else "left surely"
            assert ann.answer(**NUMBERS, level=level).status_code == 200
    assert "1 of 1 known pairs right" in annotate("status", tmp_path / "p").stdout


def test_a_page_asks_each_question_with_its_answers(browser: Browser, tmp_path: Path) -> None:
    words = GRADED | {"same_share": 0.5, "labels": True}
    _, tokens, boss = make_project(tmp_path / "p", pairs=12, **words)
    with (
        live_studio(tmp_path / "p") as studio,
        browser.new_context(**PHONE, bypass_csp=True) as context,
    ):
        page = context.new_page()
        page.goto(f"{studio.url}/a/{tokens['ann']}")
        page.wait_for_url("**/annotate/*")
        settled(page, begin=False)
        for text in ("one of 3 classes", "It purrs.", "cow"):
            expect(page.locator("#start")).to_contain_text(text)
        assert scan(page) == []
        snapshot(page, "classes-start")
        settled(page)
        seen = set()
        for number in range(10):
            same = page.locator("#asked").inner_text() == "Are they of the same kind?"
            if same not in seen:
                seen.add(same)
                assert scan(page) == []
                snapshot(page, f"classes-{'same' if same else 'set'}")
                for width, height in ((1440, 900), (1280, 720), (320, 568)):
                    page.set_viewport_size({"width": width, "height": height})
                    snapshot(page, f"classes-{'same' if same else 'set'}-{width}")
                page.set_viewport_size(PHONE["viewport"])
                page.reload()  # resizing has shifted everything
                settled(page, number)
                watch_shifts(page)
            shown = page.locator("[data-level]:visible:enabled").evaluate_all(
                "(all) => all.map((one) => one.dataset.level)"
            )
            assert (set(shown) == WHETHER_SAME.keys()) == same
            if number == 9:
                page.locator("#left-class").select_option("cat")
                page.locator("#name-classes").tap()
                expect(page.locator("#status")).to_contain_text("both items")
                page.locator("#right-class").select_option("dog")
                page.locator("#name-classes").tap()
            else:
                press(page, "7")
            settled(page, number + 1)
            assert page.evaluate("window.shifts") < 0.02
        assert seen == {True, False}
        page.goto(f"{studio.url}/s/{boss}")
        page.wait_for_url("**/supervisor")
        assert scan(page) == []
    with Store.open(Project.load(tmp_path / "p")) as store:
        answers = store.answers()
    assert answers[-1].classes == ("cat", "dog")
    for answer in answers[:-1]:
        assert answer.level == ("same surely" if answer.about == "" else "right surely")


# ---- models ------------------------------------------------------------------------------------


def posteriors(item: ItemView) -> dict[str, float]:
    """A hash of the item's number, sharpened: every class is the likeliest of some items."""
    rng = np.random.default_rng(int(item.title[1:]))
    return dict(zip(CLASSES, rng.dirichlet([0.3] * 3).tolist(), strict=True))


def of_pair(first: ItemView, second: ItemView, about: str) -> Any:
    p, q = posteriors(first), posteriors(second)
    if not about:
        return sum(p[name] * q[name] for name in CLASSES)
    r, r_prime = (sum(one[name] for name in about.split("|")) for one in (p, q))
    return r * r_prime + (1 - r) * (1 - r_prime), r_prime - r


def test_functions_and_endpoints_agree_about_pairs_and_items(tmp_path: Path) -> None:
    project = make(tmp_path, items=20, pairs=24, **GRADED, same_share=0.3)

    def answers_of_classes(handler: Handler) -> bool:
        """Logprobs of one who knows the posteriors of every item."""
        question = text_of(handler.body["messages"][-1]["content"])
        numbers = [int(json.loads(line)["x"]) for line in lines_of(question)]
        p = [posteriors(ItemView("table", f"i{number}")) for number in numbers]
        if len(p) == 1:
            tokens = dict(zip("ABC", p[0].values(), strict=True))
        elif "same class" in question:
            same = sum(p[0][name] * p[1][name] for name in CLASSES)
            tokens = {"Same": same, "Different": 1 - same}
        else:
            about = question.split("A: item A is “")[1].split("”,")[0].replace("” or “", "|")
            s, c = of_pair(*(ItemView("table", f"i{n}") for n in numbers), about)
            tokens = {"A": (1 - s - c) / 2, "B": (1 - s + c) / 2, "Same": s}
        top = [{"token": t, "logprob": float(np.log(max(v, 1e-12)))} for t, v in tokens.items()]
        best = max(top, key=lambda one: one["logprob"])
        content = [{**best, "top_logprobs": top}]
        handler.send(200, {"choices": [choice(str(best["token"]), {"content": content})]})
        return True

    with Store.create(project) as store, chat_server() as server:
        server.always = answers_of_classes
        view = store.items.view
        judges = {
            "pairs": by_pairs(pair_model(of_pair), view),
            "items": by_items(item_model(posteriors, CLASSES), view),
        }
        for name, judge in judges.items():
            seat = Seat(store, name)
            assert len(fill(seat.open_pairs(), judge, seat.keep, seat.skip).judgements) == 24
        for per in ("pair", "item"):
            line = ["--endpoint", server.base_url, "--model-name", "m", "--name", f"chat {per}"]
            report = annotate_json("ask", tmp_path, *line, "--per", per)
            assert (report["judged"], report["skipped"]) == (24, [])
        system = server.bodies[0]["messages"][0]["content"]
        assert "one of “cat”, “dog” or “cow”" in system and "“cat” means: It purrs." in system
        by_pair: dict[int, list[Any]] = {}
        for answer in store.answers():
            by_pair.setdefault(answer.pair, []).append(answer)
        for group in by_pair.values():
            assert len(group) == 4
            numbers = np.array([answer.numbers for answer in group], np.float64)
            np.testing.assert_allclose(numbers, numbers[:1].repeat(4, 0), atol=1e-6)
            assert np.isnan(numbers[0, 1]) == (group[0].about == "")


def lines_of(question: str) -> list[str]:
    found = [line.split(": ", 1)[1] for line in question.splitlines() if line.startswith("Item")]
    return [line for line in found if line.startswith("{")]


def test_what_functions_must_return() -> None:
    view = ItemView("table", "i1")
    for answer in (0.5, {"cat": 1.0}, {"cat": 0.5, "dog": 0.2, "cow": 0.2}, dict.fromkeys(CLASSES)):
        with pytest.raises(ModelError, match=r"numbers for cat, dog, cow|the sum must be 1"):
            item_model(lambda item, answer=answer: answer, CLASSES)(view)
    assert item_model(lambda item: None, CLASSES)(view).posterior is None
    with pytest.raises(ModelError, match="return numbers for similarity, or"):
        pair_model(lambda first, second, about: (0.5, 0.1))(view, view, "")


def test_a_question_that_changed_while_a_model_answers(tmp_path: Path) -> None:
    project = make(tmp_path, pairs=6, **GRADED)
    with Store.create(project) as store:
        seat = Seat(store, "slow")
        pairs = seat.open_pairs()
        store.carry_out(lambda changes: changes.ask_about({pairs[0].id: ("cat|dog", 0.5)}))
        judge = by_pairs(pair_model(of_pair), store.items.view)
        filled = fill(pairs, judge, seat.keep, seat.skip)
        ((pair, reason),) = filled.skipped
        assert pair == pairs[0] and "the pair is now asked about another class" in reason
        again = fill(Seat(store, "slow").open_pairs(), judge, seat.keep, seat.skip)
        assert len(again.judgements) == 1
        assert {one.about for one in store.answers() if one.pair == pair.id} == {"cat|dog"}


def test_a_quick_model_proposes_and_a_fit_finds_the_classes(tmp_path: Path) -> None:
    """Three groups of points: the proposals are own classes, and no class is forgotten."""
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0], [4, 0], [0, 4]])
    y = rng.integers(3, size=90)
    x = centres[y] + rng.normal(size=(90, 2))
    rows = "".join(f"i{k},{a:.3f},{b:.3f}\n" for k, (a, b) in enumerate(x))
    (tmp_path / "points.csv").write_text(f"id,a,b\n{rows}")
    classes = ["--class", "cat=x", "--class=dog=y", "--class=cow=z", "--same", "0.1"]
    line = ("init", tmp_path / "p", tmp_path / "points.csv", "--pairs", 160, *classes)
    assert "no definitions" not in annotate(*line).stderr
    names = list(CLASSES)

    def knows(first: ItemView, second: ItemView, about: str) -> Any:
        p, q = (np.full(3, 0.05) + 0.85 * (np.arange(3) == y[int(v.title[1:])]) for v in
                (first, second))  # fmt: skip
        if not about:
            return float(p @ q)
        k = [names.index(name) for name in about.split("|")]
        r, r_prime = float(p[k].sum()), float(q[k].sum())
        return r * r_prime + (1 - r) * (1 - r_prime), r_prime - r

    with Store.open(Project.load(tmp_path / "p")) as store:
        assert propose(store) == {}
        seat, judge = Seat(store, "one"), by_pairs(pair_model(knows), store.items.view)
        fill(seat.open_pairs()[:80], judge, seat.keep, seat.skip)
        chosen = propose(store)
        store.carry_out(lambda changes: changes.ask_about(chosen))
        own = 0
        rest = Seat(store, "one").open_pairs()
        for pair in rest:
            ends = {names[y[int(item[1:])]] for item in (pair.left, pair.right)}
            own += pair.about in ends
            assert pair.about == "" or chosen[pair.id][0] == pair.about
        asked = sum(pair.about != "" for pair in rest)
        assert own > 0.8 * asked  # drawn uniformly it would be 0.56
        fill(rest, judge, seat.keep, seat.skip)
        table = export_table(store.drawn(store.answers())).table.located(store.items.ids)
    model = PairClassifier(model="linear", classes=names, random_state=0).fit(x, table)
    assert (model.predict(x) == np.array(names)[y]).mean() > 0.9


def test_commands_about_classes(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("id,x\na,1\nb,2\nc,3\nd,4\n")
    line = ("init", tmp_path / "p", tmp_path / "items.csv")
    assert "name three or more" in refusal(*line, "--class", "cat", "--class", "dog")
    made = annotate(*line, "--class=cat=It purrs.", "--class=dog", "--class=cow", "--about=dog|cat")
    assert "the classes have no definitions: give --class NAME=…" in made.stderr
    project = Project.load(tmp_path / "p")
    assert project.classes == {"cat": "It purrs.", "dog": "", "cow": ""}
    assert project.about == ("cat|dog",)
    judged = tmp_path / "judged.csv"
    judged.write_text(
        "left,right,similarity,difference,about,label\na,b,0.5,0.1,cow,\na,b,0.9,,,\nc,,,,,dog\n"
    )
    count = annotate_json("import", tmp_path / "p", judged, "--annotator", "ann")
    assert (count["new"], count["pairs_added"]) == (3, 3)
    assert annotate_json("import", tmp_path / "p", judged, "--annotator", "ann")["same"] == 3
    annotate_json("export", tmp_path / "p", tmp_path / "out.csv")
    assert read_pairs(tmp_path / "out.csv").sets.tolist() == ["cow", "", "dog"]
    judged.write_text("left,right,similarity,about\na,b,0.5,bird\n")
    assert "about names class 'bird'" in refusal(
        "import", tmp_path / "p", judged, "--annotator", "ann"
    )
    assert "several classes" in refusal("label-studio", tmp_path / "p", tmp_path / "ls")
    Store.create(make(tmp_path / "two")).close()
    assert "has two classes: leave out" in refusal(
        "import", tmp_path / "two", judged, "--annotator", "a"
    )
