"""Training against a plain PyTorch loop: same initial weights, same batches.

The reference is what a user would write: one model, `loss.backward()`, `torch.optim.Adam`, and the
risk called as a user calls it. In float64 both must agree to many digits after 30 steps.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pairlearn import PairLabels, make_risk, models
from pairlearn.judgements import Judgements
from pairlearn.models import MLP, make_model
from pairlearn.randomness import permutation, stream
from pairlearn.training import Learner, Objective, Recipe
from pairlearn.training.loop import run_epochs

DIM, PAIRS, BATCH = 7, 120, 24
EPOCHS = 6  # of five steps each


def draw(seed: int, pairs: int = PAIRS) -> tuple[Any, Judgements]:
    """Features, and the judgements of a known posterior about pairs of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, DIM)).astype(np.float32)
    ends = rng.permutation(2 * pairs).reshape(pairs, 2)
    r = 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1] * x[:, 2]))
    return x, Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T).to_array())


def recipe(batch: int = BATCH, precision: Any = "float64", seed: int = 3) -> Recipe:
    # A larger decay would amplify rounding: biases ahead of a batch norm have no gradient.
    return Recipe(EPOCHS, batch, 1e-3, 1e-5, 1, "cpu", precision, seed)


def plain_loop(
    model: nn.Module, x: Any, rows: Judgements, risk: Any, recipe: Recipe, dtype: Any
) -> nn.Module:
    """Train one model the ordinary way."""
    model = model.to(dtype).train()
    x, labels = torch.as_tensor(x).to(dtype), torch.as_tensor(rows.values).to(dtype)
    pairs = torch.as_tensor(rows.ends)
    trained = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    for epoch in range(recipe.epochs):
        order = torch.as_tensor(permutation(stream(recipe.seed, "batches", epoch), len(pairs)))
        for batch in order.split(recipe.batch_size):
            logits = model(x[pairs[batch].T.reshape(-1)]).reshape(2, -1)
            adam.zero_grad()
            risk(*logits, *labels[batch].T).backward()
            adam.step()
    return model


def difference(ours: nn.Module, theirs: nn.Module) -> torch.Tensor:
    """Absolute differences of all parameters and running statistics."""
    parts = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    return torch.cat([(a.double() - b.double()).abs().flatten() for a, b in parts])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow networks."""
    for name, norm in (("mlp", "input"), ("mlp-bn", "all")):
        monkeypatch.setitem(models.PERCEPTRONS, name, ((20,) * 3, norm))


@pytest.mark.parametrize(
    ("name", "risk", "loss", "pairs", "batch"),
    [
        ("mlp-bn", "likelihood-abs", "logistic", PAIRS, BATCH),
        ("mlp", "sconf-abs", "logistic", PAIRS, BATCH),
        ("linear", "convex-0.3-relu", "logistic", PAIRS, BATCH),
        ("mlp-bn", "nonnegative-none", "logistic", PAIRS, 50),
        ("mlp", "sconfconfdiff-abs", "sigmoid", PAIRS, 1000),
        ("linear", "confdiff-slope=0.5", "hinge", PAIRS, 50),
        ("mlp-bn", "sconfconfdiff-abs", "logistic", 1, 8),
        ("mlp-bn", "sconfconfdiff-abs", "logistic", 5, 1),
    ],
)
def test_training_equals_the_plain_loop(
    name: str, risk: str, loss: str, pairs: int, batch: int
) -> None:
    x, rows = draw(2, pairs)
    made, how = make_risk(risk, prior=0.3, loss=loss), recipe(batch)
    learner = Learner(x, rows, Objective(made), name, how)
    run_epochs(learner, EPOCHS)
    model = make_model(name, (DIM,), how.seed)
    plain = plain_loop(model, x, rows, made, how, torch.float64)
    assert difference(learner.module, plain).max() < 1e-9


@pytest.mark.parametrize("name", ["linear", "mlp-bn"])
def test_float32_to_rounding(name: str) -> None:
    """Adam divides a gradient by its own size: near zero a rounding error decides about a step."""
    x, rows = draw(4)
    risk, how = make_risk("likelihood-abs"), recipe(precision="float32")
    learner = Learner(x, rows, Objective(risk), name, how)
    run_epochs(learner, EPOCHS)
    plain = plain_loop(make_model(name, (DIM,), how.seed), x, rows, risk, how, torch.float32)
    assert difference(learner.module, plain).median() < 1e-6


def multiplies_bfloat16() -> bool:
    x = torch.ones(48, DIM, dtype=torch.bfloat16)
    try:
        nn.functional.linear(x, torch.ones(20, DIM, dtype=torch.bfloat16))
    except RuntimeError:
        return False
    return True


@pytest.mark.skipif(not multiplies_bfloat16(), reason="this CPU cannot multiply bfloat16")
def test_bf16_is_near_float32() -> None:
    """Products have 8 bits: outputs agree to a few hundredths after a few epochs."""
    x, rows = draw(5)
    outputs = []
    for precision in ("float32", "bf16"):
        objective = Objective(make_risk("likelihood-abs"))
        learner = Learner(x, rows, objective, "mlp", recipe(precision=precision))
        run_epochs(learner, 3)
        outputs.append(learner.logits(np.arange(len(x))))
        assert {p.dtype for p in learner.module.parameters()} == {torch.float32}
    assert 0 < (outputs[0] - outputs[1]).abs().max() < 0.05


# --- modules of the user --------------------------------------------------------------------


class Convolutional(nn.Module):
    """Batch norm, dropout, a frozen layer, a tied one, and a buffer that is reassigned."""

    def __init__(self, drop):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.frozen = nn.Linear(4 * DIM, 6)
        self.frozen.requires_grad_(False)
        self.tied = nn.Linear(6, 6)
        self.again = self.tied
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(6, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        h = torch.relu(self.norm(self.conv(x.unsqueeze(1)))).flatten(1)
        h = self.again(torch.relu(self.tied(self.frozen(h))))
        return self.head(self.drop(torch.relu(h)))  # (n, 1)


class OnImages(nn.Module):
    """Convolutions, whose weights are laid out channels last."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 5, 3, padding=1)
        self.two = nn.Conv2d(5, 4, (3, 2), stride=2)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.relu(self.two(torch.relu(self.one(x)))).mean((2, 3)))


def image_like(x):
    """An image of each instance."""
    return np.resize(x, (len(x), 3, 6, 6))


@pytest.mark.parametrize(
    ("make", "prepare"),
    [
        (lambda: MLP(DIM, (9,), norm="all"), np.asarray),
        (
            lambda: nn.Sequential(
                nn.Linear(DIM, 9), nn.Dropout(0.4), nn.Linear(9, 1), nn.Flatten(0)
            ),
            np.asarray,
        ),
        (lambda: Convolutional(0.5), np.asarray),
        (OnImages, image_like),
    ],
    ids=["batch norm", "dropout", "everything", "images"],
)
def test_a_users_module_equals_the_plain_loop(make: Any, prepare: Any) -> None:
    x, rows = draw(9)
    x, how = prepare(x), recipe(50)
    risk = make_risk("sconfconfdiff-abs", prior=0.4)
    torch.manual_seed(0)
    own = make()
    torch.manual_seed(0)
    plain = make()
    torch.manual_seed(1)
    learner = Learner(x, rows, Objective(risk), own, how)
    run_epochs(learner, EPOCHS)
    torch.manual_seed(1)
    plain = plain_loop(plain, x, rows, risk, how, torch.float64)
    assert learner.module is own
    assert difference(own, plain).max() < 1e-9


def test_evaluating_a_module_does_not_change_its_training() -> None:
    x, rows = draw(9)
    results = []
    for looks in (False, True):
        learner = Learner(x, rows, Objective(make_risk("likelihood-abs")), "mlp-bn", recipe(50))
        run_epochs(learner, 2)
        if looks:
            learner.logits(np.arange(20))
            learner.module.eval()
        run_epochs(learner, 4)
        results.append(learner.module)
    assert difference(*results).max() == 0


# --- bad input never trains ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int64])
def test_features_of_any_type(dtype: Any) -> None:
    x, rows = draw(0)
    x = (10 * x + 50).astype(dtype)
    x.flags.writeable = False
    learner = Learner(x, rows, Objective(make_risk("likelihood-abs")), "mlp", recipe())
    run_epochs(learner, 1)
    assert bool(learner.logits(np.arange(len(x))).isfinite().all())


def test_bad_input_is_named() -> None:
    x, rows = draw(0)
    objective = Objective(make_risk("likelihood-abs"))
    bad = x.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="features are NaN or infinite in row 3"):
        Learner(bad, rows, objective, "linear", recipe())
    with pytest.raises(ValueError, match=r"features must have shape \(N, ...\); got \(240,\)"):
        Learner(x[:, 0], rows, objective, "linear", recipe())
    rows.values[5, 0] = np.nan
    with pytest.raises(ValueError, match="the values of row 5 are missing or infinite"):
        Learner(x, rows, objective, "linear", recipe())
