"""Instances: read from arrays, data frames or ids, standardised, and recognised later.

A model does better on the items that it was trained on than on others. So a fitted model keeps two
hashes of each training item, one of its features and one of its features and its id. Items without
ids are recognised by their features.
"""

from __future__ import annotations

import math
import warnings
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn.columns import (
    Floats,
    Ids,
    Indices,
    Mask,
    as_ids,
    check_unique,
    find_rows,
    first_rows,
    locate_errors,
    whole_number,
    whole_numbers,
    without_gaps,
)
from pairlearn.estimators.features import FeatureStep, is_frame

LARGEST = float(np.finfo(np.float32).max)
CHUNK = 1 << 22  # numbers at a time, so that no second copy of a large table is made


def instances_of_pairs(
    pairs: Any, preprocessor: Any, step: FeatureStep
) -> tuple[NDArray[Any], Indices, NDArray[Any] | None]:
    """Instances (N, ...) of pairs, the rows (n, 2) of both ends among them, and their ids.

    Pairs are (n, 2, d, ...), or (n, 2) ids that a preprocessor knows. Equal features are the same
    instance, so that pairs are dependent as they are by a common id.
    """
    _refuse_sparse("pairs", pairs)
    array = np.asarray(pairs)
    if array.ndim == 2 and preprocessor is None:
        raise ValueError(
            f"pairs of shape {array.shape} are ids and need a preprocessor that knows their "
            "features: an array whose rows they are, a table with an index, or a function"
        )
    array = _checked("pairs", array) if array.ndim > 2 else array
    known, ends = distinct_items("pairs", array, as_they_are=callable(preprocessor))
    return (
        (known, ends, None) if array.ndim > 2 else (look_up(preprocessor, known, step), ends, known)
    )


def number_items(name: str, pairs: Any) -> Indices:
    """Items (n, 2) of pairs, numbered from 0; pairs are ids (n, 2), or features (n, 2, d, ...)."""
    items, ends = distinct_items(name, pairs)
    for row in first_rows((items == -1)[ends].any(1)) if items.ndim == 1 else []:
        raise ValueError(f"{name} has no second item in row {row}, −1: leave out such rows")
    return ends


def distinct_items(
    name: str, pairs: Any, *, as_they_are: bool = False
) -> tuple[NDArray[Any], Indices]:
    """Distinct ids or features of pairs, and which of them (n, 2) each pair is about.

    Ids are those of tables, or ``as_they_are``.
    """
    array = np.asarray(as_array(name, pairs))
    if array.ndim < 2 or array.shape[1] != 2:
        raise ValueError(
            f"{name} must have shape (n, 2, d, ...), or (n, 2) with ids and a preprocessor; "
            f"got {array.shape}"
        )
    if not array.size:
        nothing = "is empty" if not len(array) else "has instances without features"
        raise ValueError(f"{name} {nothing}: there is nothing to learn from")
    if array.ndim > 2:
        features = array.reshape(-1, *array.shape[2:])
        first, ends = same_rows(features)
        items = features[first] if len(first) < len(features) else features
    else:
        ids = array if as_they_are else _as_in_tables(array)
        items, ends = np.unique(ids, return_inverse=True)
    return items, ends.reshape(-1, 2).astype(np.int64)


def read_instances(name: str, x: Any, preprocessor: Any, step: FeatureStep) -> NDArray[Any]:
    """Features (m, d, ...) of instances, or of ids (m,)."""
    x = as_array(name, x)
    _refuse_sparse(name, x)
    if is_item_table(x):
        return look_up(x, np.asarray(x.ids), step)
    if is_frame(x):
        return _checked(name, step.numbers(x))
    array = np.asarray(x)
    if array.ndim == 1 and preprocessor is not None:
        return look_up(preprocessor, as_known(array, preprocessor), step)
    if array.ndim < 2:
        raise ValueError(f"{name} must have shape (m, d, ...); got {array.shape}")
    return _checked(name, array)


def as_known(ids: NDArray[Any], preprocessor: Any) -> NDArray[Any]:
    """Ids as tables have them; for a function, as they are."""
    return ids if callable(preprocessor) else _as_in_tables(ids)


def _as_in_tables(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as integers, or as text if any is."""
    ids = whole_numbers(ids)
    if ids.dtype.kind in "Of":
        missing = np.array([whole_number(one) == "" for one in ids.flat]).reshape(len(ids), -1)
        for row in first_rows(missing.any(1)):
            raise ValueError(f"an id is missing in row {row}: drop the row")
    if ids.dtype.kind == "O" and 0 < sum(isinstance(one, str) for one in ids.flat) < ids.size:
        return np.array([str(whole_number(one)) for one in ids.flat]).reshape(ids.shape)
    return ids


def _checked(name: str, features: NDArray[Any], ids: NDArray[Any] | None = None) -> NDArray[Any]:
    """Features as finite numbers within float32."""
    features = checked_numbers(name, features)
    if features.dtype.kind != "f":
        return features
    if max(features.max(initial=0), -features.min(initial=0)) <= LARGEST:  # false for NaN
        return features
    rows = features.reshape(len(features), -1)
    for row in first_rows(~(abs(rows) <= LARGEST).all(1)):
        which = f"row {row}" if ids is None else f"the row of id {_plain_id(ids, row)!r}"
        if np.isfinite(rows[row]).all():
            raise ValueError(f"{name} are too large for float32 in {which}: rescale them")
        raise ValueError(f"{name} hold NaN or infinity in {which}: fill them in, or drop the row")
    return features


def look_up(preprocessor: Any, ids: NDArray[Any], step: FeatureStep) -> NDArray[Any]:
    """Features (m, d, ...) of ids (m,), distinct or not, by a preprocessor of `PairClassifier`."""
    if callable(preprocessor):
        features = np.asarray(preprocessor(ids))
        if features.ndim < 2 or len(features) != len(ids):
            raise ValueError(
                f"preprocessor must give features (m, d, ...) of m ids; for {len(ids)} ids it "
                f"gave an array of shape {features.shape}"
            )
        return _checked("features of the preprocessor", features, ids)
    known, where = _known_ids(preprocessor)
    rows = find_rows(ids, known)
    for row in first_rows(rows < 0):
        raise ValueError(f"id {_plain_id(ids, row)!r} is not among the {where} of the preprocessor")
    if is_item_table(preprocessor):
        features = step.of_table(preprocessor, rows)
    elif not is_frame(preprocessor):
        features = np.asarray(preprocessor)[rows]
    elif step.names is None:
        # The columns are learnt from all items, also from those without a judgement.
        features = step.numbers(preprocessor)[rows]
    else:
        features = step.numbers(_take(preprocessor, rows))
    return _checked("features of the preprocessor", features, ids)


def _known_ids(preprocessor: Any) -> tuple[Ids, str]:
    """Ids that a table has in a column or an index, or the numbers of rows; and what they are."""
    if is_item_table(preprocessor):
        return np.asarray(preprocessor.ids), "ids"
    if not is_frame(preprocessor):
        array = np.asarray(preprocessor)
        if array.ndim < 2:
            raise ValueError(
                "preprocessor must have shape (m, d, ...), or be a table with ids or a function; "
                f"got {type(preprocessor).__name__} of shape {array.shape}"
            )
        return np.arange(len(array)), f"{len(array)} rows"
    in_column = "id" in getattr(preprocessor, "column_names", preprocessor.columns)
    if not in_column and not hasattr(preprocessor, "index"):
        raise ValueError("the preprocessor is a table without an index: give it a column 'id'")
    name, values = ("id", preprocessor["id"]) if in_column else ("index", preprocessor.index)
    with locate_errors():
        known = as_ids(name, np.asarray(values))
        check_unique(name, known)
    return known, "ids" if in_column else "index"


def _take(frame: Any, rows: Indices) -> Any:
    """These rows of a data frame."""
    if hasattr(frame, "iloc"):
        return frame.iloc[rows]
    return frame.take(rows) if hasattr(frame, "take") else frame[rows]


def is_item_table(x: Any) -> bool:
    """Whether an object has ids and features of items, as an `ItemTable` does."""
    return hasattr(x, "ids") and hasattr(x, "features")


def as_array(name: str, values: Any) -> Any:
    """Lists and tensors, also those with a gradient, as arrays; other objects as they are."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    try:
        return np.asarray(values) if isinstance(values, (list, tuple)) else values
    except ValueError:
        raise ValueError(f"{name} has rows of several lengths: give all the same") from None


def _refuse_sparse(name: str, values: Any) -> None:
    if hasattr(values, "toarray") and hasattr(values, "tocsr"):
        raise TypeError(f"{name} is sparse, and dense data is required: use .toarray()")


def checked_numbers(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """An array as real numbers; objects and text are converted if they are numbers."""
    if values.dtype.kind in "fiub":
        return values
    try:
        if values.dtype.kind == "c":
            raise ValueError("complex numbers")
        return without_gaps(values).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from None


def _plain_id(ids: NDArray[Any], row: int) -> Any:
    return ids[row : row + 1].tolist()[0]


def feature_scale(features: NDArray[Any], weight: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature, or of each channel of images (N, C, H, W).

    Constant features get the scale one. Instances (N, H, W) without channels are standardised as a
    whole.
    """
    channels = 1 if features.ndim == 3 else features.shape[1]
    view = features.reshape(len(features), channels, -1)
    total = weight.sum() * view.shape[2]

    def mean_of(power: int, about: Floats) -> Floats:
        result = np.zeros(channels)
        for part in chunks(view):
            centred = view[part] - about[:, None]
            result += weight[part] @ (centred**power).sum(-1)
        mean: Floats = result / total
        return mean

    about = view[int((weight > 0).argmax())].mean(-1, dtype=np.float64)
    mean = about + mean_of(1, about)
    scale = np.sqrt(mean_of(2, mean))
    scale[scale <= 10 * np.finfo(np.float64).eps * np.abs(mean)] = 1.0
    shape = (channels,) + (1,) * (features.ndim - 2)
    return mean.reshape(shape), scale.reshape(shape)


def standardise(features: NDArray[Any], mean: Floats, scale: Floats) -> NDArray[np.float32]:
    """(features − mean)/scale in float32, computed in float64."""
    result = np.empty(features.shape, dtype=np.float32)
    for part in chunks(features):
        result[part] = (features[part] - mean) / scale
    return result


def chunks(features: NDArray[Any]) -> list[slice]:
    """Slices of the rows with about `CHUNK` numbers each."""
    rows = max(1, CHUNK // max(1, int(np.prod(features.shape[1:]))))
    return [slice(start, start + rows) for start in range(0, len(features), rows)]


#: Begin of the warning where all pairs have items of the training.
NO_ACCURACY = "this is not an accuracy"


class DependentPairsWarning(UserWarning):
    """The ends of the pairs were not drawn independently, which makes the accuracy wrong."""


class SeenItemsWarning(UserWarning):
    """A model is measured on items that it was trained on."""


def row_hashes(features: Any, ids: Any = None, dtype: Any = np.float64) -> Indices:
    """64-bit hashes of the features of items in a dtype, and of their ids as text."""
    rows = np.asarray(features).reshape(len(features), math.prod(np.shape(features)[1:]))
    names = [b""] * len(rows) if ids is None else [str(i).encode() for i in np.asarray(ids)]
    hashes = [b""]
    for part in chunks(rows):
        ready = rows[part].astype(dtype, order="C") + dtype(0)  # −0 is 0
        hashes += [
            blake2b(row.tobytes() + name, digest_size=8).digest()
            for row, name in zip(ready, names[part], strict=True)
        ]
    return np.frombuffer(b"".join(hashes), "<i8").astype(np.int64)


def same_rows(features: Any) -> tuple[Indices, Indices]:
    """Indices of the first of each set of equal rows, and which of these each row equals."""
    _, first, which = np.unique(row_hashes(features), return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[which.reshape(-1)].astype(np.int64)


def fingerprints(features: Any, ids: Any = None) -> Indices:
    """Hashes (m, 2) of features, and of features and ids (0 without ids).

    Features are compared in float32, as tables of items have them.
    """
    rows = row_hashes(features, dtype=np.float32)
    named = np.zeros_like(rows) if ids is None else row_hashes(features, ids, np.float32)
    return np.stack([rows, named], 1)


def places_of(kept: Indices, features: Any, ids: Any = None) -> Indices:
    """Places of items among `fingerprints` (k, 2), −1 where they are not.

    Where both sides have ids, these must be equal too.
    """
    if kept.ndim != 2 or kept.shape[1] != 2 or kept.dtype != np.int64:
        raise ValueError(
            "fingerprints of items must be int64 of shape (k, 2); got "
            f"{kept.dtype} of shape {kept.shape}: fit the model again"
        )
    if not len(kept):
        return np.full(len(features), -1)
    named = ids is not None and bool(kept[:, 1].any())
    hashes = row_hashes(features, ids if named else None, np.float32)
    known = kept[:, int(named)]
    order = np.argsort(known)
    place = order[np.searchsorted(known, hashes, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[place] == hashes, place, -1)


def check_labelled(new: Mask) -> None:
    """Warn of labelled items that are not ``new``; raise where fewer than two are."""
    if new.all():
        return
    seen = (
        f"fit was trained on {int((~new).sum()):,} of the {len(new):,} labelled items, and is "
        "right more often on those than on new ones"
    )
    if new.sum() < 2:
        raise ValueError(
            f"{seen}: give the classes of two or more items drawn at random from those that fit "
            "has not seen"
        )
    warnings.warn(f"{seen}: those are left out", SeenItemsWarning, stacklevel=4)


def doubt_of_seen(new: Mask) -> str | None:
    """Warning that not all pairs are ``new``, without items seen in training."""
    if new.all():
        return None
    seen = f"the model was trained on items of {(~new).sum():,} of the {len(new):,} pairs"
    if new.sum() < 2:
        return (
            f"{NO_ACCURACY}: {seen}, and does better on those than on new ones. Split by items "
            "before training: `pairlearn split`, hold_out_items, or cv=ItemKFold()"
        )
    return f"{seen}, and does better on those: only the other {new.sum():,} are measured"
