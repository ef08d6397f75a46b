"""``pairlearn export``: a model as an ONNX file, checked to give the same answers.

Exit codes: 0 all is well, 1 the exported file gives other answers, 2 the request was wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import ForceOption, JsonOption, ModelArgument, QuietOption
from pairlearn.cli.refusals import check_new_file, load_model, refusing

__all__ = ["export"]

DIFFERS = 1


def export(
    model: ModelArgument,
    out: Annotated[Path, typer.Argument(help="File to write: .onnx.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Export a model to ONNX, to run where there is no pairlearn.

    The file takes features x, float32 of shape (n, d) in the order of the training, and
    gives logit and probability. It is written only if onnxruntime gives the same answers
    as torch.

    \b
    Examples:
      pairlearn export model model.onnx
      pairlearn export model model.onnx --json | jq .features

    Exit codes: 0 done, 1 the answers differ, 2 wrong request.
    """  # noqa: D301
    with refusing("export"):
        check_new_file(out, "exported models", (".onnx",), inputs=[], force=force)
        if out.resolve().parent == model.resolve():
            raise ValueError(f"{model} holds nothing but its model: choose another folder")
        classifier = load_model(model)
        try:
            difference = classifier.export_onnx(out)
        except RuntimeError as error:
            typer.echo(f"pairlearn export: {error}", err=True)
            raise typer.Exit(DIFFERS) from None
    names = [str(name) for name in getattr(classifier, "feature_names_in_", [])]
    if as_json:
        told = {"out": str(out), "difference": difference, "features": names}
        typer.echo(json.dumps(told | {"classes": classifier.classes_.tolist()}))
    elif not quiet:
        typer.echo(
            f"{out}: x (n, {classifier.n_features_in_}) to logit and probability of class "
            f"{classifier.classes_[1]}"
        )
        typer.echo(f"  onnxruntime and torch differ by {difference:.1e} at most")
