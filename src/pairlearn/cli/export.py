"""``pairlearn export``: a model as an ONNX file, checked to give the same answers."""

from __future__ import annotations

from pathlib import Path

from pairlearn.cli.command import Failed, Told, command
from pairlearn.cli.options import check_new_file


@command("export", quiet="Print nothing.")
def export(model: Path, out: Path, *, force: bool = False) -> Told:
    """Export a model to ONNX, to run where there is no pairlearn.

    The file takes features x, float32 of shape (n, d) in the order of the training, and
    gives logit and probability. A model of columns that are not all plain numbers has an
    input of n values for each: float32 for numbers and 0 or 1, NaN for a gap; strings for
    categories and texts; days since 1970-01-01 in float64 for dates. The file is written
    only if onnxruntime gives the same answers as torch.

    Parameters
    ----------
    out
        File to write: .onnx.

    \b
    Examples:
      pairlearn export model model.onnx
      pairlearn export model model.onnx --json | jq .features

    Exit codes: 0 done, 1 the answers differ, 2 wrong request.
    """  # noqa: D301
    check_new_file(out, "exported models", (".onnx",), inputs=[], force=force)
    if out.resolve().parent == model.resolve():
        raise ValueError(f"{model} holds nothing but its model: choose another folder")
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier.load(model)
    try:
        difference = classifier.export_onnx(out)
    except RuntimeError as error:
        raise Failed(error) from None
    names = [str(name) for name in getattr(classifier, "feature_names_in_", [])]
    data = {"out": out, "difference": difference, "features": names, "classes": classifier.classes_}
    taken = f"x (n, {classifier.n_features_in_})"
    if hasattr(classifier, "encoder_"):
        image = classifier.encoder_.reads("image")
        taken = "image (n, 3, 32, 32)" if image else f"{classifier.n_features_in_} columns (n,)"
    return Told(
        data,
        [
            f"{out}: {taken} to logit and probability of class {classifier.classes_[1]}",
            f"  onnxruntime and torch differ by {difference:.1e} at most",
        ],
    )
