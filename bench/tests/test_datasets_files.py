"""Reading data files, and refusing damaged ones: tiny files in the true layouts."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairlearn_bench.data import (
    Dataset,
    DatasetCorruptError,
    DatasetNotFoundError,
    DatasetSpec,
    cache_folder,
    content_digest,
    data_folder,
    get_spec,
    load,
    load_cifar10h,
    write_npz_atomically,
)

MNIST = replace(get_spec("mnist"), n_train=12, n_test=5, digest=None)
LETTER = replace(get_spec("letter"), n_train=24, n_test=6, digest=None)
CIFAR = replace(get_spec("cifar10"), n_train=200, n_test=100, digest=None)


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """An empty data folder and an empty cache for each test."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PAIRLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PAIRLEARN_DATA", raising=False)


def parts(spec: DatasetSpec) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {}
    for part, n in (("train", spec.n_train), ("test", spec.n_test)):
        arrays[f"x_{part}"] = rng.integers(0, 256, (n, *spec.shape)).astype(np.uint8)
        arrays[f"y_{part}"] = rng.integers(0, spec.n_classes, n).astype(np.uint8)
    return arrays


def pooled(spec: DatasetSpec) -> dict[str, np.ndarray]:
    arrays = parts(spec)
    return {k: np.concatenate([arrays[f"{k}_train"], arrays[f"{k}_test"]]) for k in "xy"}


def assert_holds(dataset: Dataset, arrays: dict[str, np.ndarray]) -> None:
    for key in "xy":
        assert np.array_equal(getattr(dataset, key), arrays[key])


def local(spec: DatasetSpec, data: Path | None = None) -> Dataset:
    return load(spec, data, download=False)


@pytest.mark.parametrize(
    "arrays",
    [
        parts(LETTER),
        pooled(LETTER),
        *(
            {name: array.astype(dtype) for name, array in pooled(LETTER).items()}
            for dtype in (np.int64, np.float64)
        ),
    ],
    ids=["two parts", "one", "int64", "float64"],
)
def test_a_set_as_one_or_as_two_parts_of_any_type_of_number(tmp_path, arrays):
    np.savez(tmp_path / "data/letter.npz", **arrays)
    dataset = local(LETTER, str(tmp_path / "data"))
    assert dataset.x.dtype == dataset.y.dtype == np.uint8
    assert_holds(dataset, pooled(LETTER))


@pytest.mark.parametrize("value", [0.5, 256.0, np.nan])
def test_values_that_are_no_bytes(tmp_path, value):
    arrays = pooled(LETTER)
    arrays["x"] = arrays["x"].astype(float)
    arrays["x"][3, 4] = value
    np.savez(tmp_path / "data/letter.npz", **arrays)
    with pytest.raises(DatasetCorruptError, match="x has values that are not whole numbers"):
        local(LETTER, tmp_path / "data")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_test": None}, "but not y_test"),
        ({"x_train": np.zeros((12, 784), np.uint8)}, "must match|dimension"),
        ({"x_train": np.zeros((11, 28, 28), np.uint8)}, "x_train has 11 rows and y_train has 12"),
        ({"y_train": np.zeros(13, np.uint8)}, "y_train has 13 labels instead of 12"),
        ({"y_test": np.full(5, 10, np.uint8)}, "the label 10"),
        ({"y_test": np.array(list("abcde"))}, "y_test is a <U1 array"),
    ],
)
def test_wrong_arrays(tmp_path, change, message):
    arrays = {name: a for name, a in (parts(MNIST) | change).items() if a is not None}
    path = tmp_path / "data/mnist.npz"
    np.savez(path, **arrays)
    with pytest.raises(DatasetCorruptError, match=message) as caught:
        local(MNIST, tmp_path / "data")
    assert str(path) in str(caught.value)
    assert "x_train (12, 28, 28), y_train (12,), x_test (5, 28, 28)" in str(caught.value)


def test_object_arrays_are_never_unpickled(tmp_path):
    arrays = pooled(LETTER) | {"y": np.array([None] * 30, dtype=object)}
    np.savez(tmp_path / "data/letter.npz", **arrays)
    with pytest.raises(DatasetCorruptError, match="cannot be read as an npz file"):
        local(LETTER, tmp_path / "data")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_npz_atomically(tmp_path / "a.npz", {"y": arrays["y"]})
    assert not list(tmp_path.glob("*a.npz*"))


def test_published_content_is_verified_in_any_row_order(tmp_path):
    arrays = pooled(LETTER)
    spec = replace(LETTER, digest=content_digest(arrays["x"], arrays["y"], pooled=True))
    np.savez(tmp_path / "data/letter.npz", x=arrays["x"][::-1], y=arrays["y"][::-1])
    assert local(spec, tmp_path / "data").y[-1] == arrays["y"][0]
    arrays["x"][0, 0] ^= 1
    np.savez(tmp_path / "data/letter.npz", **arrays)
    with pytest.raises(DatasetCorruptError, match=r"letter\.npz has the layout of letter but not"):
        local(spec, tmp_path / "data")


def test_the_argument_goes_before_the_variable_and_both_before_the_cache(tmp_path, monkeypatch):
    copies = {}
    for label, name in enumerate(("data", "variable", "cache")):
        (tmp_path / name).mkdir(exist_ok=True)
        copies[name] = pooled(LETTER) | {"y": np.full(30, label, np.uint8)}
        np.savez(tmp_path / name / "letter.npz", **copies[name])
    assert_holds(local(LETTER), copies["cache"])
    monkeypatch.setenv("PAIRLEARN_DATA", str(tmp_path / "variable"))
    assert_holds(local(LETTER), copies["variable"])
    assert_holds(local(LETTER, tmp_path / "data"), copies["data"])
    (tmp_path / "variable/letter.npz").unlink()
    assert_holds(local(LETTER), copies["cache"])


def test_folders(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("PAIRLEARN_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/pairlearn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/pairlearn"
    assert data_folder() is None
    monkeypatch.setenv("PAIRLEARN_DATA", os.fspath(tmp_path / "gone"))
    with pytest.raises(NotADirectoryError, match=r"PAIRLEARN_DATA='.*gone' is not a folder"):
        load(LETTER, download=False)
    with pytest.raises(NotADirectoryError, match=r"data='.*absent' is not a folder"):
        load(LETTER, tmp_path / "absent")


def test_counts_of_people(tmp_path):
    with pytest.raises(DatasetNotFoundError, match="PAIRLEARN_DATA"):
        load_cifar10h()
    data = tmp_path / "data"
    with pytest.raises(DatasetNotFoundError, match=r"cifar-10h .*NC"):
        load_cifar10h(data)
    counts = np.random.default_rng(0).multinomial(51, np.full(10, 0.1), 10_000)
    np.savez(data / "cifar10h.npz", counts=counts)  # int64, as the authors publish it
    assert np.array_equal(load_cifar10h(data), counts)
    silent = np.full((10_000, 10), 5)
    silent[7] = 0
    for arrays, reason in (
        ({"x": silent}, "counts"),
        ({"counts": silent[:50]}, r"shape \(50, 10\)"),
        ({"counts": silent}, "image 7 has no answer"),
        ({"counts": np.full((10_000, 10), 0.5)}, "whole numbers"),
    ):
        np.savez(data / "cifar10h.npz", **arrays)
        with pytest.raises(DatasetCorruptError, match=f"cifar10h.npz .*{reason}"):
            load_cifar10h(data)
