"""The theory's numbers against references of their own: definitions, brute force, known laws."""

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pairlearn import make_risk
from pairlearn_bench.theory import (
    QUICK,
    SmallWorld,
    TwoGaussians,
    beta_rows,
    compute_theory,
    lambda_rows,
    log_log_slope,
    member_rows,
    prior_rows,
    summarize_theory,
)
from paper_results import call

Tables = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def quick() -> Tables:
    threads = torch.get_num_threads()
    seen: list[tuple[int, int, str]] = []
    tables = compute_theory(QUICK, seed=1, progress=lambda *step: seen.append(step))
    assert [done for done, _, _ in seen] == list(range(seen[0][1]))
    assert torch.get_num_threads() == threads
    return tables


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


# ---- class prior --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "low", "high"),
    [(0.1, -0.6, -0.4), (0.2, -0.6, -0.4), (0.8, -0.6, -0.4), (0.5, -0.32, -0.18)],
)
def test_the_error_of_the_prior_is_a_power_of_n(prior: float, low: float, high: float) -> None:
    sizes = (100, 400, 1600, 6400)
    rows = prior_rows(prior, sizes, repetitions=300, seed=3)
    errors = [row["rmse"] for row in rows]
    assert low < log_log_slope(sizes, errors) < high
    assert all(error > 1e3 * math.exp(-n) for n, error in zip(sizes, errors, strict=True))
    for row in rows:
        assert row["rmse"] == pytest.approx(row["rmse_limit"], rel=0.15)
        assert row["coverage_normal"] > 0.91
        assert row["coverage_mcdiarmid"] >= row["coverage_normal"]
        assert row["width_mcdiarmid"] > row["width_normal"]


def test_at_one_half_the_normal_interval_can_miss_on_one_side_only() -> None:
    (row,) = prior_rows(0.5, [300], repetitions=1500)
    assert 0.962 < row["coverage_normal"] < 0.988


# ---- variance -----------------------------------------------------------------------------------


def enumerated_variance(world: SmallWorld, plus: float, minus: float, lam: float = 0.5) -> float:
    """From the weights as they are written in the design, pair by pair."""
    first, second, prior = 0.0, 0.0, world.prior
    delta, same = 2 * prior - 1, prior**2 + (1 - prior) ** 2
    points = list(zip(world.mass, world.posterior, world.logit, strict=True))
    for (q, r, z), (q_prime, r_prime, z_prime) in itertools.product(points, points):
        s, c = r * r_prime + (1 - r) * (1 - r_prime), r_prime - r
        t, t_prime = s + delta * c - same, s - delta * c - same
        value = (
            lam * (prior - c + plus * t) * math.log1p(math.exp(-z))
            + (1 - lam) * (1 - prior + c + minus * t) * math.log1p(math.exp(z))
            + (1 - lam) * (prior + c + plus * t_prime) * math.log1p(math.exp(-z_prime))
            + lam * (1 - prior - c + minus * t_prime) * math.log1p(math.exp(z_prime))
        )
        first += q * q_prime * value
        second += q * q_prime * value**2
    return second - first**2


def test_lambda_variance_is_least_at_one_half_exactly() -> None:
    rows = lambda_rows(repetitions=4000)
    variances = {row["lam"]: row["exact"] for row in rows}
    assert min(variances, key=lambda lam: variances[lam]) == 0.5
    for row in rows:
        expected = enumerated_variance(SmallWorld(), -1, -1, row["lam"])
        assert row["exact"] == pytest.approx(expected, rel=1e-5)
        assert variances[round(1 - row["lam"], 9)] == pytest.approx(row["exact"], rel=1e-5)
        assert abs(row["simulated"] - row["exact"]) < 5 * row["standard_error"]
    # A parabola in λ: its second differences agree, so no other minimum hides between.
    second = np.diff([row["exact"] for row in rows], 2)
    np.testing.assert_allclose(second, second.mean(), rtol=0.02)
    assert second.mean() > 0


def test_optimal_betas_are_the_minimum_of_the_enumerated_variance() -> None:
    world = SmallWorld()
    for directions in ([(1.0, 1.0)], [(1.0, -1.0)], [(1.0, 0.0), (0.0, 1.0)]):
        best = np.array(world.optimal_betas(*directions))
        least = enumerated_variance(world, *best)
        for way in directions:
            # The exact vertex of the parabola through three enumerated values is at 0.
            low, high = (enumerated_variance(world, *(best + k * np.array(way))) for k in (-1, 1))
            assert (low - high) / (2 * (low + high - 2 * least)) == pytest.approx(0, abs=1e-9)
            assert low > least < high


def test_named_members_and_slices() -> None:
    world, members = SmallWorld(), {row["member"]: row for row in member_rows()}
    for row in members.values():
        expected = enumerated_variance(world, row["beta_plus"], row["beta_minus"])
        assert row["exact"] == pytest.approx(expected, rel=1e-4)
        assert row["relative"] >= 1
    rows = beta_rows(repetitions=4000)
    for direction in ("same", "opposite"):
        line = [row for row in rows if row["direction"] == direction]
        best, optimum = min(line, key=lambda r: r["exact"]), members[f"optimum-{direction}"]
        assert best["beta"] == pytest.approx(optimum["beta_plus"], abs=0.051)
        assert best["exact"] >= optimum["exact"]
        assert all(abs(r["simulated"] - r["exact"]) < 5 * r["standard_error"] for r in line)
    convex = make_risk("convex-0.5", prior=world.prior).table
    assert members["convex-0.5"]["exact"] == pytest.approx(world.variance(convex), rel=1e-5)


# ---- bounds -------------------------------------------------------------------------------------


def test_exact_risks_of_two_gaussians_against_a_large_sample() -> None:
    task, rng = TwoGaussians(), np.random.default_rng(0)
    y = rng.random(1_000_000) < task.prior
    x = rng.standard_normal((y.size, task.dimension))
    x[:, 0] += np.where(y, task.mean, -task.mean)
    weights = np.linspace(-0.7, 0.9, task.dimension + 1)
    logits = x @ weights[:-1] + weights[-1]
    sampled = [np.mean(y * sigmoid(-logits)), np.mean(~y * sigmoid(logits))]
    np.testing.assert_allclose(task.class_risks(weights), sampled, atol=0.002)


def test_nothing_in_the_ball_beats_the_best_risk_or_the_floors() -> None:
    task, rng = TwoGaussians(), np.random.default_rng(1)
    weights = rng.standard_normal((20_000, task.dimension + 1))
    weights[:10_000, 1:-1] *= 0.05  # near the plane where the best ones are
    size = task.radius * rng.random((20_000, 1)) ** 0.1
    weights *= size / np.linalg.norm(weights, axis=1, keepdims=True)
    risks = task.class_risks(weights)
    assert task.best_risk <= risks.sum(-1).min() < task.best_risk + 0.002
    assert (np.array(task.floors[:2]) <= risks.min(0) / 2).all()


@pytest.mark.parametrize("name", ["sconfconfdiff-none", "sconfconfdiff-abs", "convex-0.5-none"])
def test_minimisers_stay_in_the_ball_and_beat_projected_gradient_descent(name: str) -> None:
    task = TwoGaussians()
    features, labels = task.sample(200, np.random.default_rng(5))
    risk = make_risk(name, prior=task.prior, loss=task.loss)

    def value(w: torch.Tensor) -> torch.Tensor:
        z, z_prime = (features @ w).unbind(1)
        return risk(z, z_prime, labels.similarity, labels.difference)

    minimiser = torch.from_numpy(task.minimise(risk, features, labels))
    assert minimiser.norm() <= task.radius + 1e-9
    w = torch.zeros_like(minimiser, requires_grad=True)
    for _ in range(500):
        (gradient,) = torch.autograd.grad(value(w), w)
        step = w.detach() - gradient
        w = (step * min(1.0, task.radius / float(step.norm()))).requires_grad_()
    assert value(minimiser).item() <= value(w).item() + 1e-7


def test_bounds_exceed_every_measured_excess_risk(quick: Tables) -> None:
    rows = quick["bounds"]
    assert [row["n"] for row in rows[::3]] == list(QUICK.bound_sizes)
    for row in rows:
        assert 0 <= row["excess_mean"] <= row["excess_q95"] <= row["excess_max"]
        for column in ("bound_printed", "bound_rederived", "bound_uniform"):
            assert row[column] is None or row[column] > row["excess_max"]
        assert (row["bound_uniform"] is None) == (row["risk"] != "sconfconfdiff-abs")
    summary = summarize_theory(quick)
    for name in ("sconfconfdiff-none", "convex-0.5-none"):
        line = [row for row in rows if row["risk"] == name]
        slope = log_log_slope([r["n"] for r in line], [r["bound_rederived"] for r in line])
        assert slope == pytest.approx(-0.5, abs=1e-4)
        assert summary[f"exponent of the excess risk, {name}"] < -0.7, "faster than the bound"
        assert summary[f"least bound over excess risk at n = 1000, {name}"] > 100


# ---- files and command --------------------------------------------------------------------------


def test_command_writes_the_same_tables_and_figures(tmp_path: Path, quick: Tables) -> None:
    assert prior_rows(0.2, [30], repetitions=5, seed=2) != prior_rows(0.2, [30], repetitions=5)
    done = call("theory", "--out", str(tmp_path / "new"), "--quick", "--seed", "1", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    files = {file.name: file for file in (tmp_path / "new").iterdir()}
    assert sorted(report["files"]) == sorted(map(str, files.values())), "and nothing else is there"
    assert report["summary"]["least variance at lambda"] == 0.5
    for name in ("prior", "variance", "bounds"):
        assert 10_000 < files.pop(f"{name}.png").stat().st_size < 200_000
    for name, expected in quick.items():
        with files.pop(f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        assert list(rows[0]) == list(expected[0])
        assert rows == [
            {k: "" if v is None else str(v) for k, v in row.items()} for row in expected
        ]
    assert not files


def test_command_in_words_and_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: Tables
) -> None:
    monkeypatch.setattr("pairlearn_bench.theory.compute_theory", lambda *_, **__: quick)
    monkeypatch.setattr("pairlearn_bench.theory.draw_theory", lambda _: [])
    done = call("theory", "--out", str(tmp_path / "fine"))
    assert done.exit_code == 0
    assert "| least variance at lambda" in done.output and "6 files in" in done.output
    (tmp_path / "file").write_text("no folder")
    done = call("theory", "--out", str(tmp_path / "file"))
    assert done.exit_code == 2
    assert "bench theory: " in done.output and "Traceback" not in done.output
    assert call("theory", "--seed", "-1").exit_code == 2
