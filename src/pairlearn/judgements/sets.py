"""Sets of classes as text: "cat", or "cat|dog"; "" where a statement names no class.

A statement is about a set S of classes: an item is in S or not, which is a problem of two classes
of its own. A name that contains ``|`` or a quotation mark is quoted as in CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    Floats,
    Indices,
    Mask,
    RowError,
    TableError,
    as_text,
    first_rows,
    quote,
    whole_number,
)
from pairlearn.randomness import stream, uniform

Sets = NDArray[np.str_]


def split_set(text: str) -> tuple[str, ...]:
    """The names in a set, sorted.

    Examples
    --------
    >>> split_set("dog | cat"), split_set('"a|b"'), split_set("")
    (('cat', 'dog'), ('a|b',), ())
    """
    if not text.strip():
        return ()
    try:
        (cells,) = csv.reader([text], delimiter="|", skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise ValueError(f"about is {quote(text)}, which cannot be read: {error}") from None
    names = {cell.strip() for cell in cells}
    if "" in names:
        raise ValueError(f"about is {quote(text)}: there is an empty name in it")
    return tuple(sorted(names))


def join_set(names: Iterable[str]) -> str:
    """The text of a set of names, which `split_set` reads.

    Examples
    --------
    >>> join_set(["dog", "cat"]), join_set(["a|b"])
    ('cat|dog', '"a|b"')
    """
    file = io.StringIO()
    csv.writer(file, delimiter="|", lineterminator="").writerow(sorted(names))
    return file.getvalue()


def read_sets(values: Any) -> Sets:
    """A column of sets, each written in one way; RowError for one that cannot be read."""
    text = as_text("about", values)
    found, place = np.unique(text, return_inverse=True)
    written = []
    for number, cell in enumerate(found.tolist()):
        try:
            written.append(join_set(split_set(cell)) if cell.strip() else "")
        except ValueError as error:
            raise RowError(int((place == number).argmax()), str(error)) from None
    return np.asarray(written, np.str_)[place.reshape(text.shape)]


def names_in(about: Sets | None) -> tuple[str, ...]:
    """The names of classes that occur in a column of sets, sorted."""
    sets = [] if about is None else np.unique(about).tolist()
    return tuple(sorted({name for text in sets for name in split_set(text)}))


def members_of(about: Sets, classes: Sequence[str]) -> Mask:
    """Mask (n, K) of the classes in each set, none in "".

    Examples
    --------
    >>> members_of(np.array(["b", "a|c", ""]), ["a", "b", "c"]).astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    """
    sets, place = np.unique(about, return_inverse=True)
    known = {name: k for k, name in enumerate(classes)}
    masks = np.zeros((len(sets), len(classes)), bool)
    for number, text in enumerate(sets.tolist()):
        names, problem = split_set(text), ""
        masks[number, [known[name] for name in names if name in known]] = True
        if unknown := [quote(name) for name in names if name not in known]:
            problem = f"about names class {unknown[0]}, and the classes are {', '.join(classes)}"
        elif masks[number].all():
            problem = f"about is {quote(text)}, all classes: it says nothing"
        if problem:
            raise TableError(f"{problem} (rows: {(place == number).sum()})")
    return np.asarray(masks[place.reshape(-1)])


def check_classes(classes: Iterable[Any]) -> tuple[str, ...]:
    """Names of at least two classes as text; ValueError if they are not such.

    Examples
    --------
    >>> check_classes([0, 1, 2])
    ('0', '1', '2')
    """
    names = tuple(str(name) for name in classes)
    if len(names) < 2 or len(set(names)) < len(names) or "" in names:
        raise ValueError(f"classes must be two or more different names; got {list(names)}")
    return names


def groups(count: int) -> tuple[str, ...]:
    """Names of classes that have none.

    Examples
    --------
    >>> groups(2)
    ('group 1', 'group 2')
    """
    return tuple(f"group {number + 1}" for number in range(count))


def resolve_classes(
    classes: Any, about: Sets | None, labels: NDArray[Any] | None, positive: Any = None
) -> NDArray[Any] | None:
    """The classes of a task, of two the positive one last; None for two that no set names.

    ``classes`` are names, the number of classes, or None for those that sets and labels name.
    """
    found = np.empty(0, np.str_) if labels is None else np.unique(labels)
    names = sorted({*names_in(about), *(str(whole_number(v)) for v in found.tolist())})
    if classes is None:
        if about is None and len(found) <= 2:
            return None
        names = [f"not {names[0]}", *names] if len(names) == 1 else names
    elif np.ndim(classes) == 0:
        if len(names) > classes:
            raise ValueError(f"classes is {classes}, and {len(names)} are named: {names[:10]}")
        names += groups(classes - len(names))
    # Classes of labels keep their type.
    chosen = found if len(names) == len(found) else np.array(names)
    chosen = np.asarray(classes) if np.ndim(classes) else chosen
    if positive is None:
        return chosen if len(chosen) else None
    last = chosen.astype(np.str_) == str(positive)
    if len(chosen) != 2 or not last.any():
        raise ValueError(f"positive is one of two classes; got {positive!r} of {chosen.tolist()}")
    return chosen[np.argsort(last, kind="stable")]


def propose_sets(
    predictions: Any, ends: Any, share_uniform: float = 0.1, seed: int = 0
) -> tuple[Indices, Floats]:
    """Choose one class to ask about for each pair, from a model's predictions.

    Class k is drawn with the probability

        q_k = (1 − u)(p_k(x) + p_k(x'))/2 + u/K

    which depends on the items and the model only. It must not depend on the true classes, nor on
    the annotator, who may know more than the features: that biases what is learnt.

    Parameters
    ----------
    predictions : array of shape (N, K)
        Probabilities of the classes of each item, of a quick model.
    ends : array of int, shape (n, 2)
        Positions of x and x' among the items.
    share_uniform : float
        Share u of questions about a class drawn uniformly; above 0, so that no class is never
        asked about.
    seed : int

    Returns
    -------
    about : array of int, shape (n,)
        Which class to ask about.
    q : array of shape (n,)
        The probability with which it was chosen, for the column `q`.

    Examples
    --------
    >>> about, q = propose_sets([[0.9, 0.1, 0.0], [0.9, 0.1, 0.0]], [[0, 1]] * 4, 0.3)
    >>> about.tolist(), q.round(2).tolist()
    ([0, 0, 0, 0], [0.73, 0.73, 0.73, 0.73])
    """
    p, ends = np.asarray(predictions, np.float64), np.asarray(ends, np.int64)
    if p.ndim != 2 or p.shape[1] < 2:
        raise ValueError(f"predictions must have shape (N, K); got {p.shape}")
    for row in first_rows(~((p >= 0).all(1) & (np.abs(p.sum(1) - 1) < 1e-3))):
        raise ValueError(f"predictions of an item sum to one; row {row} is {p[row].tolist()}")
    if not 0 < share_uniform <= 1:
        raise ValueError(f"share_uniform must lie in (0, 1]; got {share_uniform:g}")
    chances = (1 - share_uniform) * p[ends].mean(1) + share_uniform / p.shape[1]
    draws = uniform(stream(seed, "about"), len(ends))
    about: Indices = (draws[:, None] >= chances.cumsum(1)[:, :-1]).sum(1)
    return about, chances[np.arange(len(ends)), about]
