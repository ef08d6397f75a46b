"""Descriptions, splits and features of the benchmarks."""

import hashlib
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn_bench.data import (
    SPECS,
    Dataset,
    as_features,
    as_images,
    content_digest,
    get_spec,
    load,
    split_indices,
)

POSITIVE_NAMES = {
    "kmnist": "o su na ma re",
    "fashion-mnist": "t-shirt pullover coat shirt bag",
    "cifar10": "bird cat deer dog frog horse",
    "letter": "A B C D E F G H I J K L M",
    "pmu-ud": "0 2 4 6 8",
}

# Counted in the published files; PMU-UD was not at hand, equal classes fit its published sizes.
CLASS_COUNTS = {
    "optdigits": [554, 571, 557, 572, 568, 558, 558, 566, 554, 562],
    "pendigits": [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055],
    "letter": [
        *(789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792),
        *(783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734),
    ],
    "pmu-ud": [518] * 10,
    "digits": [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
}


def synthetic(name: str) -> Dataset:
    """Distinct instances with the true number of each class, classes mixed."""
    spec, counts = get_spec(name), CLASS_COUNTS[name]
    y = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)
    y = y[np.argsort(np.arange(len(y)) * 7919 % len(y), kind="stable")]
    x = np.zeros((len(y), spec.n_features), np.uint8)
    x[:, 0], x[:, 1] = np.divmod(np.arange(len(y)), 256)
    return Dataset(spec, x.reshape(-1, *spec.shape), y)


def reordered(dataset: Dataset) -> Dataset:
    return Dataset(dataset.spec, dataset.x[::-1], dataset.y[::-1])


@pytest.mark.parametrize("name", POSITIVE_NAMES)
def test_positive_classes(name):
    spec = get_spec(name)
    assert [spec.class_names[k] for k in spec.positive] == POSITIVE_NAMES[name].split()
    assert spec.is_positive(np.arange(spec.n_classes)).sum() == len(spec.positive)


def test_specs_are_frozen_and_every_downloadable_one_but_pmu_ud_has_a_digest():
    with pytest.raises(FrozenInstanceError):
        get_spec("mnist").n_train = 1
    with pytest.raises(TypeError):
        SPECS["mine"] = get_spec("mnist")
    assert [name for name, spec in SPECS.items() if spec.digest is None] == ["pmu-ud"]
    assert {len(spec.digest) for spec in SPECS.values() if spec.digest} == {64}


@pytest.mark.parametrize(
    ("name", "hint"), [("minst", "did you mean 'mnist'"), ("xyz", "choose one of mnist, kmnist")]
)
def test_unknown_name(name, hint):
    with pytest.raises(ValueError, match=f"name='{name}' is not a benchmark: {hint}"):
        get_spec(name)


def test_dataset_refuses_what_does_not_fit():
    spec = replace(get_spec("letter"), n_train=4, n_test=1)
    x, y = np.zeros((5, 16), np.uint8), np.zeros(5, np.uint8)
    assert Dataset(spec, x, y).x is x
    with pytest.raises(ValueError, match=r"x of letter is uint8 of shape \(5, 15\)"):
        Dataset(spec, x[:, 1:], y)
    with pytest.raises(ValueError, match="x of letter is float64"):
        Dataset(spec, x.astype(float), y)
    with pytest.raises(ValueError, match="letter has 4 instances; give 5"):
        Dataset(spec, x[1:], y[1:])
    with pytest.raises(ValueError, match="the label 26; give labels 0 to 25"):
        Dataset(spec, x, y + np.uint8(26))


@pytest.mark.parametrize("name", CLASS_COUNTS)
def test_split_is_a_partition_in_proportion_and_of_the_published_sizes(name):
    dataset = synthetic(name)
    train, test = split_indices(dataset, seed=1)
    assert (len(train), len(test)) == (dataset.spec.n_train, dataset.spec.n_test)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(dataset.y)))
    positive = dataset.spec.is_positive(dataset.y)
    for part, share in ((train, 0.8), (test, 0.2)):
        for group in (positive, ~positive):
            assert abs(group[part].sum() - share * group.sum()) < 1
        # Positives first, and no class within them bunched together.
        assert np.array_equal(positive[part], np.sort(positive[part])[::-1])
        half = dataset.y[part][: int(positive[part].sum()) // 2]
        assert set(half.tolist()) == set(dataset.spec.positive)


def test_split_is_the_same_on_every_machine():
    train, test = split_indices(synthetic("optdigits"), seed=0)
    digest = hashlib.sha256(np.concatenate([train, test]).astype("<u4").tobytes())
    assert digest.hexdigest() == "ac466e4abc1add5bc07d6f229d18fce9d5237b3d3e5e8ece337597dfe3656bb6"


@pytest.mark.parametrize("name", ["optdigits", "pmu-ud"])
def test_split_ignores_the_row_order_and_heeds_the_seed(name):
    dataset = synthetic(name)

    def parts(dataset: Dataset, seed: int) -> list[np.ndarray]:
        return [dataset.x[rows] for rows in split_indices(dataset, seed)]

    first, again, other = parts(dataset, 0), parts(reordered(dataset), 0), parts(dataset, 1)
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[1], other[1])


def test_official_split_is_kept_whatever_the_seed_without_copying():
    spec = replace(get_spec("mnist"), n_train=6, n_test=2, digest=None)
    x = np.arange(8, dtype=np.uint8).repeat(784).reshape(8, 28, 28)
    dataset = Dataset(spec, x, np.arange(8, dtype=np.uint8))
    for seed in (0, 5):
        train, test = split_indices(dataset, seed)
        assert dataset.y[train].tolist() == [0, 1, 2, 3, 4, 5]
        assert dataset.y[test].tolist() == [6, 7]
        assert np.shares_memory(dataset.x[train], x)


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_pooled_digest_depends_on_the_rows_alone(seed, n):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (n, 2)).astype(np.uint8)
    y = rng.integers(0, 2, n).astype(np.uint8)
    order = rng.permutation(n)
    digest = content_digest(x, y, pooled=True)
    assert digest == content_digest(x[order], y[order], pooled=True)
    changed = x.copy()
    changed[0, 0] += 1
    assert digest != content_digest(changed, y, pooled=True)
    y[0] = 1 - y[0]  # of one row only: exchanging both classes may give the same rows
    assert digest != content_digest(x, y, pooled=True)


def test_images_have_their_channels_first():
    spec = get_spec("cifar10")
    x = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    images = as_images(x, spec)
    assert images.dtype == np.float32
    assert images.flags.c_contiguous
    assert images[1, 2, 5, 7] == np.float32(x[1, 5, 7, 2]) / np.float32(255)
    letter = as_features(np.full((3, 16), 255, np.uint8), get_spec("letter"))
    assert letter.dtype == np.float32 and letter.max() == 255, "no pixels"
    assert as_images(np.zeros((4, 28, 28), np.uint8), get_spec("mnist")).shape == (4, 1, 28, 28)
    assert as_images(np.zeros((0, 28, 28), np.uint8), get_spec("mnist")).shape == (0, 1, 28, 28)


def test_published_images_are_the_values_in_their_order(tmp_path):
    """As in the public code: value number k of an image stays number k, unscaled."""
    spec = replace(get_spec("cifar10"), n_train=2, n_test=1, digest=None)
    x = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    y = np.zeros(3, np.uint8)
    np.savez(tmp_path / "cifar10.npz", x_train=x[:2], y_train=y[:2], x_test=x[2:], y_test=y[2:])
    mixed = load(spec, tmp_path, download=False, images="published")
    assert np.array_equal(mixed.x, x)
    images = as_images(mixed.x, mixed.spec)
    assert images.shape == (3, 3, 32, 32)
    # Red, green, blue of the first pixel stand side by side in the first row.
    assert images[1, 0, 0, :3].tolist() == x[1, 0, 0].tolist()
    assert images[1, 2, 31, 31] == x[1, 31, 31, 2]
    assert np.array_equal(as_features(mixed.x, mixed.spec), images.reshape(3, -1))
    proper = load(spec, tmp_path, download=False)
    assert as_images(proper.x, proper.spec)[1, 2, 5, 7] == np.float32(x[1, 5, 7, 2] / 255)
    with pytest.raises(ValueError, match="'published' is for colour images; leave it for digits"):
        load("digits", images="published")
    with pytest.raises(ValueError, match="'proper' or 'published'; got 'odd'"):
        load(spec, tmp_path, images="odd")


def test_features_refuse_other_shapes():
    with pytest.raises(ValueError, match=r"x has the shape \(2, 8, 8\)"):
        as_features(np.zeros((2, 8, 8), np.uint8), get_spec("mnist"))
    with pytest.raises(ValueError, match="letter has no images"):
        as_images(np.zeros((2, 16), np.uint8), get_spec("letter"))
    with pytest.raises(ValueError, match="seed=-1 is negative"):
        split_indices(synthetic("digits"), -1)


def test_bundled_digits_need_no_file_and_no_net(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setenv("PAIRLEARN_CACHE", str(tmp_path))
    monkeypatch.delenv("PAIRLEARN_DATA", raising=False)
    digits = load("digits", download=False)
    assert np.bincount(digits.y).tolist() == CLASS_COUNTS["digits"]
    assert digits.x.max() == 16
    assert not list(tmp_path.iterdir())
