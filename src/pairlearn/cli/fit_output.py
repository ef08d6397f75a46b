"""What ``pairlearn fit`` prints: its summary, and warnings, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairlearn.cli.command import as_options, baseline, counted
from pairlearn.cli.pairs import by_kind

if TYPE_CHECKING:
    from pairlearn.annotators import Crowd
    from pairlearn.cli.fit import Request, TrainingData
    from pairlearn.estimators import PairClassifier

SHOWN = 3
"""Annotators with the same habits that are named."""
FEW = 10
"""Pairs under which an accuracy says little."""
HABITS = ("answers", "guesses", "lean_same", "lean_right", "confidence", "spread")
"""Attributes of each annotator in the JSON."""
REPEATED_BY_TRAINING = {
    "PriorMismatchWarning": {"prior-disagrees", "majority-unclear"},
    "FewPairsWarning": {"few-pairs"},
    "UntouchedWarning": {"untouched"},
    "KnownClassesWarning": {"contradicted-classes"},
    "RivalsWarning": {"rival-annotators"},
    "SidesWarning": {"reversed-annotator", "contrary-annotators"},
}
"""Findings of which the training itself warns, with the remedy."""
LEARNT = {
    "outlying-annotator": "many answers of {names} do not fit the pairs, and count less or not at "
    "all: talk to them",
    "leaning-annotator": "a habit shifts the answers of {names}, which is taken back: ask how the "
    "question was understood",
}
"""What to say where training itself finds what `check` finds."""
SUPERSEDED = {*LEARNT, "rival-annotators"}
"""Findings of `check` that training knows better, once it has learnt how annotators answer.
Habits and guesses also explain answers that are not feasible."""


def crowd_of(classifier: PairClassifier, caught: Sequence[Any]) -> Crowd:
    """The annotators as training learnt them, and the rivals whom it warned of."""
    from pairlearn.annotators import Crowd

    rivals = sum((getattr(warning.message, "groups", ()) for warning in caught), ())
    return Crowd({manner.name: manner for manner in classifier.annotators_}, {}, rivals=rivals)


def warnings_of(
    request: Request,
    data: TrainingData,
    crowd: Crowd,
    caught: Sequence[Any],
    accuracy: dict[str, Any] | None,
) -> list[str]:
    """Notes about the files, findings of `check`, and warnings of the training, each once."""
    from pairlearn.annotators.answers import listed

    doubts = {code: text for code, text in data.doubts.items() if code != "few-pairs"}
    learnt = [doubt for doubt in crowd.doubts() if doubt.code in LEARNT]
    if crowd.manners:
        superseded = SUPERSEDED | ({"infeasible"} if learnt else set())
        doubts = {code: text for code, text in doubts.items() if code not in superseded}
    for warning in caught:
        for code in REPEATED_BY_TRAINING.get(warning.category.__name__, ()):
            doubts.pop(code, None)
    texts = [*data.items.notes, *request.notes, *doubts.values()]
    if doubts:
        texts[-1] += f"; {request.check_command} says what to do"
    for doubt in learnt:
        names = listed([name or "the annotator" for name in doubt.names])
        texts.append(f"{doubt.code}: {LEARNT[doubt.code].format(names=names)}")
    texts += [as_options(str(warning.message)) for warning in caught]
    if accuracy is not None and accuracy["pairs"] < FEW:
        texts.append(
            f"the accuracy is measured on {counted(accuracy['pairs'], 'pair')}: so few say "
            "little, whatever the range; judge some dozens more"
        )
    return texts


def summary_of(classifier: PairClassifier, data: TrainingData, crowd: Crowd) -> dict[str, Any]:
    """Counts of the data and facts about the training, for JSON."""
    from pairlearn.annotators.crowd import words_of
    from pairlearn.estimators.parameters import model_of
    from pairlearn.kinds import KINDS

    encoder, counts = data.items.encoder, data.statements
    return {
        "judgements": data.rows,
        "features": len(data.items.names),
        "items": data.judged,
        "both": counts["both"],  # these four as in 0.2
        **{f"{name}_only": counts[name] for name in ("similarity", "difference", "preference")},
        "labelled": sum(counts[kind.name] for kind in KINDS if kind.states),
        "statements": {name: count for name, count in counts.items() if count},
        "columns": encoder and {column.name: column.kind for column in encoder.columns},
        "trained": model_of(classifier),
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
        "shift": classifier.shift_,
        "epochs": classifier.n_iter_,
        "loss": classifier.history_[classifier.n_iter_ - 1]["risk"],
        "seconds": sum(row["seconds"] for row in classifier.history_),
        "unjudged": classifier.unjudged_,
        "annotators": [
            {"annotator": manner.name, "in_words": words_of(manner, crowd.rivals)}
            | {name: getattr(manner, name) for name in HABITS}
            for manner in classifier.annotators_
        ],
    }


def text_of(summary: dict[str, Any], request: Request, encoder: object) -> list[str]:
    """Lines of the summary."""
    kinds = by_kind(summary["statements"])
    shifted = "" if request.target_prior is None else f", shifted to {request.target_prior:g}"
    chosen = " (chosen by --model auto)" * (request.model == "auto")
    text = [
        f"learnt from {counted(summary['judgements'], 'judgement')} of {summary['items']:,} items "
        f"with {counted(summary['features'], 'feature')}: {kinds}",
        *([] if encoder is None else [f"  columns: {encoder}"]),
        "  {trained}{chosen}, {epochs} epochs in {seconds:.1f} s; {seconds_in_all:.1f} s with "
        "reading, choosing and measuring".format(**summary, chosen=chosen),
        "  loss {loss:.4f}, share of positives among the judged items {prior:.3f}".format(**summary)
        + shifted,
    ]
    if summary["unjudged"]:
        text.append("  and from {unjudged:,} items that nobody judged".format(**summary))
    if summary["accuracy"] is not None:
        text += _accuracy_text(summary["accuracy"], summary["prior"])
    elif summary["not_measured"]:
        text.append(f"  accuracy not measured: {summary['not_measured']}")
    names_by_habit: dict[str, list[str]] = {}
    for row in summary["annotators"]:
        names_by_habit.setdefault(row["in_words"], []).append(row["annotator"] or "the annotator")
    for habit, names in names_by_habit.items():
        who = ", ".join(names) if len(names) <= SHOWN else f"{len(names)} annotators"
        text.append(f"  {who}: {habit}")
    return [*text, f"model: {summary['model']}"]


def _accuracy_text(accuracy: dict[str, Any], prior: float) -> list[str]:
    answers = "{held_out:,} answers about " * (accuracy["pairs"] < accuracy["held_out"])
    dropped = "; {dropped:,} about a held-out and another item left out" * bool(accuracy["dropped"])
    capped = "; of a stream no more than that is held out" * accuracy["capped"]
    line = (
        "{value:.3f} (95%: {low:.3f} to {high:.3f}) as the annotators see it,\n"
        f"  on {answers}{{pairs:,}} pairs of held-out items, by a model fitted to {{training:,}} "
        f"other judgements{dropped}{capped}; {baseline(prior)}"
    ).format(**accuracy)
    return [f"  {accuracy['sentence']}", f"  accuracy {line}"]
