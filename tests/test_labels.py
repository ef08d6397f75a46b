"""Pair labels against enumeration, root finding and brute force.

The references know the definitions only: two independent Bernoulli labels, and the
region as the set of points (c, s) that some posteriors (r, r') reach.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from pairlearn import PairLabels

NAN = math.nan
KINDS: dict[str, Callable[[Any], Any]] = {
    "numpy-float64": lambda values: np.array(values, dtype=np.float64),
    "numpy-float32": lambda values: np.array(values, dtype=np.float32),
    "torch-float64": lambda values: torch.tensor(values, dtype=torch.float64),
    "torch-float32": lambda values: torch.tensor(values, dtype=torch.float32),
}
Make = Callable[[Any], Any]
units = st.floats(0, 1)


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Make:
    """Each kind of array that labels can be made of."""
    return KINDS[request.param]


def same_memory(array: Any, other: Any) -> bool:
    if isinstance(array, torch.Tensor):
        return array.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    return np.shares_memory(array, other)


# ---- outcomes ---------------------------------------------------------------------------------


@given(r=units, r_prime=units)
def test_from_posteriors_enumerates_independent_labels(r: float, r_prime: float) -> None:
    """Exact sums over the four outcomes of two coins, in rational arithmetic."""
    events = {"+-": Fraction(0), "-+": Fraction(0), "same": Fraction(0)}
    difference = Fraction(0)
    for y, y_prime in itertools.product((0, 1), repeat=2):
        coins = ((Fraction(r), y), (Fraction(r_prime), y_prime))
        mass = math.prod(p if heads else 1 - p for p, heads in coins)
        events["same" if y == y_prime else "+-" if y else "-+"] += mass
        difference += mass * (y_prime - y)
    labels = PairLabels.from_posteriors([r], [r_prime])
    assert labels.similarity[0] == pytest.approx(float(events["same"]), abs=1e-15)
    assert labels.difference[0] == pytest.approx(float(difference), abs=1e-15)
    assert labels.outcomes()[0] == pytest.approx([float(p) for p in events.values()], abs=1e-15)


def test_gradients_flow_through_the_labels() -> None:
    s = torch.tensor([0.5, 0.4], requires_grad=True)
    PairLabels(s, torch.zeros(2)).outcomes()[:, 0].sum().backward()
    assert torch.equal(s.grad, torch.tensor([-0.5, -0.5]))


# ---- feasibility ------------------------------------------------------------------------------


def some_posteriors_give(c: float, s: float) -> bool:
    """Solve r(r + c) + (1 − r)(1 − r − c) = s for r and look at the roots."""
    roots = np.roots([2.0, 2.0 * (c - 1), 1 - c - s])
    return any(root.imag == 0 and 0 <= root.real <= 1 and 0 <= root.real + c <= 1 for root in roots)


def test_feasible_iff_posteriors_exist() -> None:
    # The offsets keep the grid off the edges, where the tolerance decides.
    c, s = np.meshgrid(np.linspace(-1.3, 1.3, 53) + 0.00137, np.linspace(-0.3, 1.3, 45) + 0.00211)
    mask = PairLabels(s.ravel(), c.ravel(), noisy=True).feasible()
    expected = [some_posteriors_give(*point) for point in zip(c.ravel(), s.ravel(), strict=True)]
    assert mask.tolist() == expected
    assert 50 < mask.sum() < mask.size - 50


def test_tolerance_of_the_edges(make: Make) -> None:
    edges = [(1.0, 0.0, 1), (0.6, 0.4, 1), (0.6, -0.4, 1)]  # s = 1 − |c|, outwards is up
    edges += [(0.5, 0.0, -1), (0.42, 0.4, -1), (0.42, -0.4, -1)]  # c² = 1 − 2s, outwards is down
    s, c, outwards = (np.array(column) for column in zip(*edges, strict=True))

    def at(distance: float) -> list[bool]:
        return PairLabels(make(s + distance * outwards), make(c), noisy=True).feasible().tolist()

    assert at(0) == [True] * 6
    assert at(2e-7) == [True] * 6
    assert at(3e-6) == [False] * 6


@pytest.mark.parametrize("edge", ["sum is one", "first is certain", "second is impossible"])
def test_exact_labels_on_an_edge_are_feasible(make: Make, edge: str) -> None:
    r = make(np.random.default_rng(0).random(20_000))
    pair = {
        "sum is one": (r, 1 - r),
        "first is certain": (r * 0 + 1, r),
        "second is impossible": (r, r * 0),
    }[edge]
    assert bool(PairLabels.from_posteriors(*pair).feasible().all())


def test_a_single_label_has_to_lie_in_its_range(make: Make) -> None:
    s, c = [0.0, 1.0, 0.3, -0.1, 1.1], [-1.0, 1.0, 0.9, 1.1, -1.2]
    expected = [True, True, True, False, False]
    assert PairLabels(make(s), None, noisy=True).feasible().tolist() == expected
    assert PairLabels(None, make(c), noisy=True).feasible().tolist() == expected


# ---- posteriors -------------------------------------------------------------------------------


@given(r=units, r_prime=units)
@example(r=0.3, r_prime=0.7)
@example(r=1.0, r_prime=1.0)
@example(r=0.0, r_prime=1.0)
def test_posteriors_are_the_truth_and_its_reflection(r: float, r_prime: float) -> None:
    labels = PairLabels.from_posteriors([r], [r_prime])
    upper, lower = labels.posteriors()
    assert upper.shape == lower.shape == (1, 2)
    assert upper.sum() >= lower.sum()
    # Near r + r' = 1 the root of a rounding error is 1e-8.
    larger = (r, r_prime) if r + r_prime >= 1 else (1 - r_prime, 1 - r)
    assert upper[0] == pytest.approx(larger, abs=1e-7)
    assert lower[0] == pytest.approx([1 - larger[1], 1 - larger[0]], abs=1e-7)
    for branch in (upper, lower):
        labels_again = PairLabels.from_posteriors(branch[:, 0], branch[:, 1])
        assert labels_again.to_array()[0] == pytest.approx(labels.to_array()[0], abs=1e-7)


def test_posteriors_in_single_precision(make: Make) -> None:
    truth = np.random.default_rng(1).random((5_000, 2))
    branches = PairLabels.from_posteriors(*map(make, truth.T)).posteriors()
    errors = [np.abs(np.asarray(branch) - truth).max(-1) for branch in branches]
    assert np.minimum(*errors).max() < 1e-3
    assert all(branch.min() >= 0 and branch.max() <= 1 for branch in branches)


def test_posteriors_of_infeasible_and_incomplete_rows_are_nan(make: Make) -> None:
    labels = PairLabels(make([0.9, 0.2, NAN, 0.5, 0.5]), make([0.5, 0.1, 0.3, NAN, 0.5]))
    for branch in labels.posteriors():
        assert np.isnan(np.asarray(branch)).all(-1).tolist() == [True] * 4 + [False]


# ---- projection -------------------------------------------------------------------------------


def region(steps: int) -> Any:
    """A dense cloud of feasible (c, s), its edges included, from a grid of posteriors."""
    r, r_prime = np.meshgrid(np.linspace(0, 1, steps), np.linspace(0, 1, steps))
    agree = r * r_prime + (1 - r) * (1 - r_prime)
    return np.stack([(r_prime - r).ravel(), agree.ravel()], -1)


CLOUD = region(201)


def assert_nearest(labels: PairLabels, tolerance: float) -> None:
    """Feasible, and no point of the cloud is nearer: the cloud is part of the region."""
    projected = labels.project()
    assert bool(projected.feasible().all())
    start, end = (np.asarray(x.to_array(), dtype=float)[:, ::-1] for x in (labels, projected))
    distance = np.linalg.norm(start - end, axis=-1)
    for point, travelled in zip(start, distance, strict=True):
        nearest = np.sqrt(((CLOUD - point) ** 2).sum(-1).min())
        assert travelled <= nearest + tolerance, point
    twice = projected.project().to_array()
    assert np.array_equal(np.asarray(twice), np.asarray(projected.to_array()))


def test_projection_is_the_nearest_point(make: Make) -> None:
    c, s = np.meshgrid(np.linspace(-2.2, 2.2, 12), np.linspace(-2.3, 2.1, 13))
    assert_nearest(PairLabels(make(s.ravel()), make(c.ravel()), noisy=True), 2e-6)


@given(s=st.floats(-4, 4), c=st.floats(-4, 4))
@example(s=0.0, c=1.0)
@example(s=-0.5, c=0.0)
@example(s=-0.5, c=1.5)
@example(s=0.0, c=-1e-300)
def test_projection_of_any_point(s: float, c: float) -> None:
    labels = PairLabels([s], [c], noisy=True)
    assert_nearest(labels, 1e-6)
    mirrored = PairLabels([s], [-c], noisy=True).project()
    if c:
        assert mirrored.difference[0] == -labels.project().difference[0]
    assert mirrored.similarity[0] == labels.project().similarity[0]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_tie_goes_to_the_positive_side(make: Make, zero: float) -> None:
    s = [-0.505, -0.625, -1.0, -5.0]
    tied = PairLabels(make(s), make([zero] * 4), noisy=True).project()
    assert np.asarray(tied.difference) == pytest.approx([0.1, 0.5, 1, 1], abs=1e-6)
    assert np.asarray(tied.similarity) == pytest.approx([0.495, 0.375, 0, 0], abs=1e-6)
    nudged = PairLabels(make(s), make([-1e-9] * 4), noisy=True).project()
    assert np.asarray(nudged.difference) == pytest.approx([-0.1, -0.5, -1, -1], abs=1e-6)


def test_projection_keeps_what_is_feasible_and_what_is_missing(make: Make) -> None:
    s, c = make([0.5, 0.62, NAN, NAN, 1.5, -0.2]), make([0.0, -0.2, 0.4, -1.5, NAN, NAN])
    projected = PairLabels(s, c, noisy=True).project()
    expected = [[0.5, 0], [0.62, -0.2], [NAN, 0.4], [NAN, -1], [1, NAN], [0, NAN]]
    assert np.array_equal(np.asarray(projected.to_array()), make(expected), equal_nan=True)


# ---- arrays in, arrays out --------------------------------------------------------------------

SIMILARITY = [0.42, 0.9, 0.2, 1.4, -0.3, NAN, 0.8]
DIFFERENCE = [-0.5, 0.5, -0.1, -0.2, 0.7, 0.25, NAN]


def test_every_kind_of_array_gives_the_same_values_and_its_own_type(make: Make) -> None:
    reference = PairLabels(SIMILARITY, DIFFERENCE, noisy=True)
    s, c = make(SIMILARITY), make(DIFFERENCE)
    labels = PairLabels(s, c, noisy=True)

    def results(x: PairLabels) -> list[Any]:
        projected = x.project().to_array()
        return [x.similarity, x.difference, x.outcomes(), x.to_array(), projected, *x.posteriors()]

    for got, expected in zip(results(labels), results(reference), strict=True):
        assert type(got) is type(s)
        assert got.dtype == s.dtype
        assert np.asarray(got) == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert type(labels.feasible()) is type(s)
    assert labels.feasible().tolist() == reference.feasible().tolist()
    assert labels.outcomes().shape == (7, 3)
    assert labels.to_array().shape == (7, 2)


def test_nothing_is_copied(make: Make) -> None:
    s, c, both = make([0.5, 0.4]), make([0.1, 0.2]), make([[0.5, 0.1], [0.4, 0.2]])
    labels, from_array = PairLabels(s, c), PairLabels.from_array(both)
    assert same_memory(labels.similarity, s)
    assert same_memory(labels.difference, c)
    assert same_memory(from_array.similarity, both)
    assert same_memory(from_array.difference, both)
    assert same_memory(labels[:1].similarity, s)
    assert same_memory(PairLabels(s, None).similarity, s)


def test_one_tensor_makes_both_columns_tensors() -> None:
    # A list beside a tensor keeps its digits, and its gaps.
    for column in (np.array([0.1, NAN]), [0.1, None]):
        mixed = PairLabels(torch.tensor([0.5, 0.2]), column)
        assert mixed.similarity.dtype == mixed.difference.dtype == torch.float64
        assert mixed.difference[0].item() == 0.1 and bool(torch.isnan(mixed.difference[1]))
    parts = [PairLabels([0.1], None), PairLabels(torch.tensor([0.2]), None)]
    for order in (parts, parts[::-1]):
        assert isinstance(PairLabels.concatenate(order).similarity, torch.Tensor)


@pytest.mark.parametrize(
    ("similarity", "difference"),
    [
        ((True, False), [0, -1]),
        (np.array([1, 0], dtype=np.uint8), np.array([0, -1], dtype=np.int16)),
        ([1.0, 0.0], np.array([0, -1], dtype=object)),
        (torch.tensor([True, False]), torch.tensor([0, -1])),
        (torch.tensor([1, 0], dtype=torch.float16), torch.tensor([0, -1], dtype=torch.bfloat16)),
    ],
)
def test_other_types_become_floats(similarity: Any, difference: Any) -> None:
    """Half precision is computed in single, all else in double."""
    labels = PairLabels(similarity, difference)
    assert labels.to_array().tolist() == [[1.0, 0.0], [0.0, -1.0]]
    half = getattr(similarity, "dtype", None) == torch.float16
    dtypes = (torch.float32,) if half else (np.float64, torch.float64)
    assert labels.similarity.dtype in dtypes
    assert bool(labels.project().feasible().all()) and "PairLabels" in repr(labels)


def test_no_pairs_are_labels_too(make: Make) -> None:
    empty, joined = PairLabels(make([]), make([])), PairLabels(make([0.5]), make([0.1]))
    shapes = [x.shape for x in (empty.outcomes(), empty.to_array(), *empty.posteriors())]
    assert shapes == [(0, 3), (0, 2), (0, 2), (0, 2)] and empty.feasible().shape == (0,)
    assert len(empty) == len(empty.project()) == len(list(empty)) == len(joined[1:]) == 0
    assert len(PairLabels.concatenate([empty, joined, empty])) == 1
    assert repr(empty) == "PairLabels(n=0, similarity=[], difference=[])"


# ---- a sequence of labels ---------------------------------------------------------------------


INDICES: list[tuple[Any, list[int]]] = [
    (0, [0]), (-1, [3]), (np.int64(2), [2]), (torch.tensor(1), [1]),
    (slice(None, None, 2), [0, 2]), (slice(9, None), []), ([3, 0, 3], [3, 0, 3]),
    ([True, False, False, True], [0, 3]), (np.array([2, -1]), [2, 3]),
    (torch.tensor([False, False, True, True]), [2, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("index", "rows"), INDICES)
def test_indexing(make: Make, index: Any, rows: list[int]) -> None:
    s, c = [0.1, 0.2, 0.3, 0.4], [0.8, 0.7, -0.6, -0.5]
    part = PairLabels(make(s), make(c))[index]
    assert isinstance(part, PairLabels) and len(part) == len(rows)
    assert np.asarray(part.similarity).tolist() == make([s[row] for row in rows]).tolist()
    assert np.asarray(part.difference).tolist() == make([c[row] for row in rows]).tolist()


def test_iterating_and_joining_give_the_labels_back(make: Make) -> None:
    labels = PairLabels(make([0.1, NAN, 0.3]), make([0.8, 0.7, NAN]))
    rows = list(labels)
    assert [len(row) for row in rows] == [1, 1, 1]
    joined = PairLabels.concatenate(rows)
    assert type(joined.similarity) is type(labels.similarity)
    assert np.array_equal(
        np.asarray(joined.to_array()), np.asarray(labels.to_array()), equal_nan=True
    )
    noisy = PairLabels.from_array(make([[1.5, -2.0]]), noisy=True)
    assert PairLabels.concatenate((noisy, noisy)).similarity.tolist() == [1.5, 1.5]


def test_repr_is_short_and_the_same_for_every_kind(make: Make) -> None:
    labels = PairLabels(make([0.5, NAN]), make([0.125, -1.0]))
    assert repr(labels) == "PairLabels(n=2, similarity=[0.5 nan], difference=[ 0.125 -1.   ])"
    many = PairLabels(make([0.25] * 20), None)
    assert repr(many).startswith("PairLabels(n=20, similarity=[0.25 0.25 0.25 ... 0.25 0.25")
    assert len(repr(many)) < 120


# ---- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("similarity", "difference", "message"),
    [
        (None, None, "similarity and difference are both None: give at least one"),
        (
            [0.5, 1.2, 3],
            [0, 0, 0],
            r"similarity must lie in \[0, 1\]; row 1 is 1\.2: map answers on another scale",
        ),
        ([0.5, 0.5], [0.2, -1.5], r"difference must lie in \[-1, 1\]; row 1 is -1\.5"),
        ([0.5, math.inf], [0, 0], "similarity is infinite in row 1: use NaN"),
        ([0.5, NAN, NAN], [NAN, 0, NAN], r"similarity and difference .* missing \(NaN\) in row 2"),
        (None, [0.5, NAN], r"both missing \(NaN\) in row 1: drop pairs"),
        ([0.5, 0.5], [0], "similarity has 2 rows and difference has 1: .* same length"),
        ([[0.5]], [0], r"similarity must have shape \(n,\); got \(1, 1\)"),
        (0.5, [0], r"similarity must have shape \(n,\); got \(\)"),
    ],
)
@pytest.mark.parametrize("as_tensors", [False, True])
def test_errors_name_the_argument_and_the_row(
    similarity: Any, difference: Any, message: str, as_tensors: bool
) -> None:
    columns = [similarity, difference]
    if as_tensors:
        columns = [x if x is None else torch.tensor(x, dtype=torch.float64) for x in columns]
    with pytest.raises(ValueError, match=message):
        PairLabels(*columns)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PairLabels(torch.tensor([0.5]), ["a"]), "difference must be numbers"),
        (lambda: PairLabels.from_posteriors([0.1], None), "r and r_prime must both be given"),
        (lambda: PairLabels([0.5], ["left"]), "difference must be numbers: .*'left'"),
        (lambda: PairLabels([[0.5], [0.1, 0.2]], None), "similarity must be numbers: .*sequence"),
        (lambda: PairLabels.from_posteriors([0.5, 1.2], [0, 0]), r"r must .* row 1 is 1\.2"),
        (lambda: PairLabels.from_posteriors([0], [-0.5]), r"r_prime must .* row 0 is -0\.5$"),
        (lambda: PairLabels.from_posteriors([0, 1], [0.5]), "r has 2 rows and r_prime has 1"),
        (lambda: PairLabels.from_posteriors([0.5, NAN], [0, 0]), r"r is missing .* in row 1"),
        (lambda: PairLabels.from_array([0.5, 0.1]), r"labels must have shape \(n, 2\).*\(2,\)"),
        (lambda: PairLabels.from_array(torch.ones(2, 2, 2)), r"shape \(n, 2\).*got \(2, 2, 2\)"),
        (lambda: PairLabels.from_array([[0.5, 2]]), r"difference must lie in \[-1, 1\]; row 0 is"),
        (lambda: PairLabels.concatenate([]), "parts is empty: give at least one PairLabels"),
    ],
)
def test_other_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("row", [2, -3])
def test_a_row_out_of_range_is_an_index_error(make: Make, row: int) -> None:
    with pytest.raises(IndexError, match=f"index {row} is out of bounds"):
        PairLabels(make([0.5, 0.4]), None)[row]
    for index in (None, True):
        with pytest.raises(IndexError, match="indexed by pair"):
            PairLabels(make([0.5, 0.4]), None)[index]


def test_noisy_admits_all_but_infinite_and_missing_pairs(make: Make) -> None:
    labels = PairLabels(make([1.5, -2.0]), make([3.0, NAN]), noisy=True)
    assert labels.similarity.tolist() == [1.5, -2.0]
    with pytest.raises(ValueError, match="similarity is infinite in row 0"):
        PairLabels(make([math.inf]), make([0.0]), noisy=True)
    with pytest.raises(ValueError, match="both missing"):
        PairLabels(make([NAN]), make([NAN]), noisy=True)
