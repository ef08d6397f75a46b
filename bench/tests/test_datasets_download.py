"""Downloads, with stand-ins for the net."""

from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from pairlearn_bench.data import (
    DatasetCorruptError,
    DatasetNotFoundError,
    DatasetSpec,
    content_digest,
    get_spec,
    load,
)

sklearn_datasets = pytest.importorskip("sklearn.datasets")


def tiny(name: str, n_train: int = 8, n_test: int = 2) -> DatasetSpec:
    return replace(get_spec(name), n_train=n_train, n_test=n_test, digest=None)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PAIRLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PAIRLEARN_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def openml(monkeypatch):
    """A stand-in for OpenML: what it holds by id, and what it was asked for."""
    server = SimpleNamespace(holds={}, requests=[])

    def fetch_openml(**arguments):
        server.requests.append(arguments)
        answer = server.holds[arguments["data_id"]]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(data=answer[0], target=answer[1])

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch_openml)
    return server


def flat(spec: DatasetSpec) -> np.ndarray:
    """Features as OpenML gives them: rows of float64."""
    shape = (spec.n_instances, spec.n_features)
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.float64)


def labels(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


@pytest.mark.parametrize(
    ("name", "number", "classes"),
    [
        ("letter", 6, "ZABMNTIDNG"),
        ("mnist", 554, "5041921314"),
        ("optdigits", 28, "5041921314"),
        ("pendigits", 32, "5041921314"),
        ("cifar10", 40927, "6994112783"),
    ],
)
def test_openml_and_the_round_trip_through_the_cache(openml, cache, name, number, classes):
    spec = tiny(name)
    openml.holds[number] = (flat(spec), labels(*classes))
    first = load(spec)
    assert first.y.tolist() == [int(c) if c.isdigit() else ord(c) - ord("A") for c in classes]
    if name == "cifar10":  # planes of colours become pixels
        assert first.x.shape == (10, 32, 32, 3)
        assert first.x[4, 3, 2, 1] == flat(spec)[4, 1 * 1024 + 3 * 32 + 2]
    else:
        assert np.array_equal(first.x, flat(spec).reshape(10, *spec.shape))
    assert sorted(file.name for file in cache.iterdir()) == [f"{name}.npz"]
    again = load(spec, download=False)
    assert np.array_equal(again.x, first.x)
    assert np.array_equal(again.y, first.y)
    assert openml.requests == [
        {"data_id": number, "as_frame": False, "parser": "liac-arff", "cache": False}
    ]


def test_nothing_is_kept_of_a_download_that_is_not_the_published_data(openml, cache):
    spec = tiny("letter")
    openml.holds[6] = (flat(spec), labels(*"ABCDEFGHIJ"))
    with pytest.raises(
        DatasetCorruptError, match=r"the download from https://www\.openml\.org/d/6"
    ):
        load(replace(spec, digest="0" * 64))
    assert not cache.exists()
    x, y = flat(spec).astype(np.uint8), np.arange(10, dtype=np.uint8)
    load(replace(spec, digest=content_digest(x[::-1], y[::-1], pooled=True)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x[:, :9], y), r"shape \(10, 9\); letter has 16 features"),
        (lambda x, y: (x[:9], y[:9]), "letter has 9 instances; give 10"),
        (lambda x, y: (x / 255, y), "x has values that are not whole numbers"),
        (lambda x, y: (x, labels(*"ABCDEFGHI?")), r"labels unknown to letter: \['\?'\]"),
    ],
)
def test_openml_holds_something_else(openml, cache, change, message):
    spec = tiny("letter")
    openml.holds[6] = change(flat(spec), labels(*"ABCDEFGHIJ"))
    with pytest.raises(DatasetCorruptError, match=message):
        load(spec)
    assert not cache.exists()


@pytest.mark.parametrize("error", [URLError("no route"), TimeoutError(), ValueError("no such id")])
def test_offline_says_which_file_to_put_where(openml, cache, tmp_path, error):
    openml.holds[554] = error
    with pytest.raises(DatasetNotFoundError) as caught:
        load("mnist", tmp_path)
    assert str(caught.value) == (
        f"mnist is not in {tmp_path} and not in {cache}, and was not downloaded: "
        f"https://www.openml.org/d/554 could not be fetched: {error}. "
        "Put mnist.npz with the uint8 arrays x_train (60000, 28, 28), y_train (60000,), "
        "x_test (10000, 28, 28), y_test (10000,), published at https://www.openml.org/d/554, "
        f"into {tmp_path}, or into a folder that you name with --data, data=... or PAIRLEARN_DATA"
    )
    assert isinstance(caught.value, FileNotFoundError)


def test_no_download_asks_nobody(openml):
    with pytest.raises(DatasetNotFoundError, match="not downloaded: download=False"):
        load("letter", download=False)
    with pytest.raises(DatasetNotFoundError, match="nowhere to download it from"):
        load(replace(tiny("letter"), source=None))
    assert openml.requests == []
