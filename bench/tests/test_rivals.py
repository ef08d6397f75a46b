"""Published rivals, against enumerations of the classes of a pair."""

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from pairlearn.judgements.kinds import kind
from pairlearn.risks import make_risk
from pairlearn.training import Objective
from pairlearn_bench.benchmark import Benchmark, annotator_of, group_key
from pairlearn_bench.data import load
from pairlearn_bench.grids import GRIDS
from pairlearn_bench.runs import Run
from pairlearn_bench.simulated import add_noise, judge
from pairlearn_bench.statements import NOISY, make_statements
from pairlearn_bench.statistics import against_published, holm, paired, verdicts


def published_loss(left: torch.Tensor, right: torch.Tensor, scores: dict) -> torch.Tensor:
    """GLWS of one pair: the likelihood of the scored events, and the M-step, over four classes."""
    log_p = {
        (y, z): logsigmoid((2 * y - 1) * left) + logsigmoid((2 * z - 1) * right)
        for y, z in product((0, 1), repeat=2)
    }
    weights = {classes: score * log_p[classes].detach().exp() for classes, score in scores.items()}
    total = sum(weights.values())
    m_step = -sum(weights[k] / total * log_p[k] for k in log_p) / 2
    same = (log_p[0, 0].exp() + log_p[1, 1].exp()).log()
    ways = [k for k in ((1, 0), (0, 1)) if scores[k] > 0]
    different = sum(log_p[k].exp() for k in ways).log() if ways else torch.zeros(())
    share = max(scores[1, 0], scores[0, 1])
    return m_step - scores[0, 0] * same - share * different


@pytest.mark.parametrize(
    ("u", "v"), [(0.3, 0.3), (0.9, 0.9), (0.4, 0.0), (0.0, 0.7), (0.0, 0.0), (1.0, 1.0)]
)
def test_glws_has_the_gradient_of_its_paper(u: float, v: float) -> None:
    z = torch.tensor([[0.7, -1.2]], dtype=torch.float64, requires_grad=True)
    equal = 1 - max(u, v)
    scores = {(0, 0): equal, (1, 1): equal, (1, 0): u, (0, 1): v}
    (expected,) = torch.autograd.grad(published_loss(z[0, 0], z[0, 1], scores), z)
    objective = Objective(make_risk("likelihood-none"), ("scored",))
    values = torch.tensor([[u], [v]], dtype=torch.float64)
    share = torch.ones(1, dtype=torch.float64)
    loss = objective(z[:, 0], z[:, 1], *values, share, total=lambda tensor: tensor)
    (gradient,) = torch.autograd.grad(loss, z)
    torch.testing.assert_close(3 * gradient, expected)


def test_differences_are_scored_by_their_size_and_similarities_both_ways() -> None:
    pairs, posterior = np.array([[0, 1], [1, 0]]), np.array([0.25, 0.75])
    directed = make_statements("directed", pairs, posterior, seed=0)
    assert directed.values.tolist() == [[0, 0.5], [0.5, 0]]
    scored = make_statements("scored", pairs, posterior, seed=0)
    assert scored.values.tolist() == [[0.625, 0.625]] * 2  # 1 − 2 · ¾ · ¼
    # An answer that the model excludes has no NaN.
    assert np.isfinite(
        kind("scored").complete(np.ones(1), np.ones(1), np.ones(1), np.ones(1))
    ).all()


def test_rivals_are_scored_by_the_better_naming(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = GRIDS["siblings"].select(
        datasets=["digits"], priors=[0.2], seeds=[0], fractions=[1.0], methods=["mcl"]
    )
    (run,) = grid.select(epochs=1, pairs=64).runs()
    benchmark = Benchmark(load("digits"), "mlp-small", "cpu", "float32")
    posteriors = {annotator_of(run): benchmark.positive * 0.9 + np.float32(0.05)}
    fit = "pairlearn_bench.fleet.Fleet.fit"
    history = {name: np.full((1, 1, 1), 0.3) for name in ("paper", "stratified")}
    monkeypatch.setattr(fit, lambda *_, **__: history)
    ((_, result),) = benchmark.train([[run]], posteriors)
    assert result["paper"] == result["stratified"] == pytest.approx(0.7)


def test_drawn_classes_follow_the_posteriors_of_the_pairs() -> None:
    grid = GRIDS["accuracy"].select(datasets=["digits"], priors=[0.2], seeds=[0], annotator="drawn")
    run = grid.select(methods=["supervised"]).runs()[0]
    benchmark = Benchmark(load("digits"), "mlp", "cpu", "float32")
    rng = np.random.default_rng(0)
    natural = rng.beta(0.5, 0.5, len(benchmark.positive)).astype(np.float32)
    posteriors = {annotator_of(run): natural}
    drawn = benchmark._classes(run, posteriors)
    assert abs((drawn - natural).mean()) < 0.03
    # In the sample that keeps the odds of the prior, the shifted posteriors are calibrated.
    train, _ = benchmark.rows(0)
    share = natural[train].mean()
    weight = np.where(drawn[train], 0.2 / share, 0.8 / (1 - share))
    shifted = benchmark._posterior(run, posteriors)[train]
    for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1)):
        some = (shifted >= low) & (shifted <= high)
        gap = np.average(drawn[train][some] - shifted[some], weights=weight[some])
        assert abs(gap) < 0.1
    group = benchmark._group([run], posteriors)
    labels = np.asarray(group.members[0].labels)
    assert (labels == drawn[group.pairs]).all() and labels.mean() == pytest.approx(0.2, abs=0.01)


def test_noise_multiplies_every_soft_answer_once() -> None:
    pairs, posterior = np.arange(4000).reshape(-1, 2), np.tile([0.2, 0.7], 2000)
    for name in NOISY:
        exact, noisy = (make_statements(name, pairs, posterior, 0, noise) for noise in (0.0, 0.5))
        answer = 1 if name == "difference" else 0
        factors = noisy.values[:, answer] / exact.values[:, answer]
        assert factors.mean() == pytest.approx(1, abs=0.05), name
        assert factors.std() == pytest.approx(0.5, abs=0.05), name
    both = make_statements("confidence", pairs, posterior, 0, 0.5).values
    assert (both[:, 0] == both[:, 1]).all(), "one answer about one item"
    # Both soft answers about a pair get the noise of the paper's methods.
    answers = make_statements("soft", pairs, posterior, 0, 0.5).values
    assert np.array_equal(answers, add_noise(judge(posterior, pairs), 0.5, 0).to_array())


def test_runs_with_other_noise_do_not_share_their_statements() -> None:
    grid = GRIDS["robustness"].select(datasets=["digits"], priors=[0.2], seeds=[0], pairs=64)
    grid = grid.select(prior_factors=(1.0,), label_noises=(0.0, 0.5), epochs=8)
    runs = grid.select(methods=["likelihood-confidences", "likelihood-guided"]).runs()
    assert len({group_key(run) for run in runs if run.method == "likelihood-confidences"}) == 2
    benchmark = Benchmark(load("digits"), "mlp-small", "cpu", "float32")
    posteriors = {annotator_of(runs[0]): benchmark.positive * 0.9 + np.float32(0.05)}
    labels = [benchmark._group([run], posteriors).members[0].labels for run in runs]
    exact, noisy = labels[:2], labels[2:]
    assert all(len(np.unique(a)) < len(np.unique(b)) for a, b in zip(exact, noisy, strict=True))
    with pytest.raises(ValueError, match="likelihood-labels reads answers without noise"):
        Run(dataset="digits", prior=0.2, seed=0, method="likelihood-labels", label_noise=0.1,
            pairs=9, epochs=1)  # fmt: skip


def test_the_tests_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.9, 0.01, (2, 5))
    contrast = paired(dict(enumerate(ours)), dict(enumerate(theirs)))
    assert contrast is not None
    assert contrast.p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    welch = against_published(ours, 0.88, 0.004, 5)
    spread = (0.004, np.std(ours, ddof=1))
    reference = stats.ttest_ind_from_stats(
        np.mean(ours), spread[1], 5, 0.88, spread[0] * np.sqrt(5 / 4), 5, equal_var=False
    )
    assert welch.p == pytest.approx(reference.pvalue)


def test_one_seed_is_untested_and_holm_counts_all_cells() -> None:
    assert paired({0: 0.9}, {1: 0.8}) is None
    assert paired({0: 0.9}, {0: 0.8, 1: 0.9}) == (pytest.approx(0.1), None, None)
    # Three cells of p = 0.03, or one: 0.03 · 3 > 0.05.
    base = paired({0: 0.91, 1: 0.92, 2: 0.93}, dict.fromkeys(range(3), 0.90))
    assert base is not None
    cell = base._replace(p=0.03)
    assert verdicts([cell]) == ["ahead"]
    assert verdicts([cell] * 3) == ["level"] * 3
    assert verdicts([cell._replace(difference=-0.1)]) == ["behind"]
    assert verdicts([cell._replace(p=None), cell]) == ["untested", "ahead"]
    assert holm([0.001, 0.5]) == [0.002, 0.5]
    exact = paired({0: 0.9, 1: 0.8}, {0: 0.9, 1: 0.8})
    assert exact is not None and exact.p == 1
