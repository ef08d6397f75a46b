"""MCL, VolMaxDCC and SpherePair by the public code of SpherePair's authors: adds to same.csv.

    python bench/results/same_rivals.py DATA CHECKOUT mcl|volmax|spherepair [--noisy] [--seed 0]

CHECKOUT is a clone of github.com/spherepaircc/SpherePairCC: for SpherePair at commit a6ab97a, for
the others at f287908, as later ones leave out the batch norm. It has no licence, so nothing of it
is here: it is imported as it stands. Changed from outside: its scores are tables, not
loops, and the targets of its losses may be soft, as in arXiv 2608.12027, C.2. The pairs and answers
are those of `same.py`. WEIGHTS of SpherePair are those of its `tool_pretrain_sphere.py`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import subprocess
import sys
import tempfile
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from same import HARD, NOISY, PAIRS, SETS, add, ask, expert, matched
from scipy.optimize import linear_sum_assignment
from torch.nn.functional import binary_cross_entropy, cosine_similarity

from pairlearn_bench.data import load

#: Their names of the methods, and of the classes with the code.
METHODS = {
    "mcl": ("MCL", "VanillaDCC"),
    "volmax": ("VolMaxDCC", "VolMaxDCC"),
    "spherepair": ("SpherePair", "SpherePairs"),
}
#: Weight of the volume, which the papers chose with 1,000 labelled validation items.
VOLUMES = {("mnist", False): 1e-2, ("fashion-mnist", False): 1e-4}
VOLUME_NOISY = 1e-3
LAYERS: Any = {"encodeLayer": [500, 500, 2000], "decodeLayer": [2000, 500, 500]}
STUBS = ("fastcluster", "matplotlib", "matplotlib.pyplot", "matplotlib.colors")


def prepare(checkout: Path, device: str) -> None:
    """Make the code importable by today's libraries, and its scores quick."""
    sys.path.insert(0, str(checkout))
    for name in STUBS:  # which only figures need
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(BoundaryNorm=None, __path__=[])
    removed: Any = types.ModuleType("sklearn.utils.linear_assignment_")
    removed.linear_assignment = lambda cost: np.stack(linear_sum_assignment(cost), 1)
    sys.modules[removed.__name__] = removed
    if device == "cpu":  # the code moves tensors to "cuda" by name
        plain, there = torch.Tensor.to, {"cuda": "cpu"}
        torch.Tensor.to = lambda self, *to, **kw: plain(self, *[there.get(e, e) for e in to], **kw)
    utils: Any = importlib.import_module("lib.utils")
    utils.acc = matched
    utils.delta_label_sum = lambda one, two: round(len(one) * (1 - matched(one, two)))


def main() -> None:
    """Train one method, and add its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--dataset", choices=SETS, default=SETS[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--epochs", type=int, help="300, with --noisy 500")
    parser.add_argument("--weights", help="of SpherePair's pre-trained autoencoder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    data, n = load(args.dataset, args.data), 60_000
    posterior, told = np.eye(10)[data.y[:n]], ""
    if args.noisy:
        posterior = expert(data.x, np.where(np.arange(len(data.y)) < n, data.y, -1))
        told = f"{matched(data.y[n:], posterior[n:].argmax(1)):.4f}"
    noise = (PAIRS, args.seed, 0.3) if args.noisy else (10_000, args.seed, 0.0)
    pairs, answers = ask(posterior[:n], *noise)
    x = torch.tensor(data.x.reshape(len(data.x), -1)).float().mul(0.02).to(args.device)
    y = torch.tensor(data.y).int().to(args.device)
    prepare(args.checkout, args.device)
    np.random.seed(args.seed)  # noqa: NPY002
    torch.manual_seed(args.seed)
    with redirect_stdout(io.StringIO()):
        found = fitted(args, x, y, pairs, torch.tensor(answers).float().to(args.device))
    accuracy = matched(data.y[n:], found)
    shown = subprocess.check_output(["git", "-C", args.checkout, "rev-parse", "--short", "HEAD"])
    source = f"SpherePairCC {shown.decode().strip()}"
    setting = NOISY if args.noisy else HARD
    add([METHODS[args.method][0], args.dataset, args.seed, setting, accuracy, told, source])


def fitted(args: argparse.Namespace, x: Any, y: Any, pairs: Any, answers: Any) -> Any:
    """Groups of the test items, by the trained model."""
    name = METHODS[args.method][1]
    kind: Any = getattr(importlib.import_module(f"model.model_{name}"), name)
    rng = np.random.default_rng(args.seed)
    indexed = np.column_stack([pairs, np.arange(len(pairs))])  # an answer's row stands for it
    kind.merge_constraints = lambda self, *_: rng.permutation(indexed)
    kind.satisfied_constraints = lambda self, *_: float("nan")  # it is only shown
    same, items = answers.cpu().numpy() > 0.5, 60_000
    names = "ml_ind1", "ml_ind2", "cl_ind1", "cl_ind2"
    ends = zip(names, [*pairs[same].T, *pairs[~same].T], strict=True)
    epochs = args.epochs or (500 if args.noisy else 300)
    with tempfile.TemporaryDirectory() as folder:
        told = dict(ends, record_log_dir=f"{folder}/log.csv", X=x[:items], y=y[:items])
        if args.method == "spherepair":
            size = {"input_dim": x.shape[1], "z_dim": 10, "n_clusters": 10, **LAYERS}
            model = kind(activation="relu", dropout=0, **size)
            if args.weights:
                model.load_model(args.weights)
            hard = kind.pairwise_loss

            def angular(self: Any, one: Any, two: Any, rows: Any, omega: int = 2) -> Any:
                if not args.noisy:
                    return hard(self, one, two, answers[rows], omega)
                cos = cosine_similarity(one, two).clamp(-1 + 1e-7, 1 - 1e-7)
                alike, other = (1 + cos) / 2, (1 - torch.cos(omega * torch.acos(cos))) / 2
                first, second = (each.clamp_min(1e-7).log() for each in (alike, other))
                return -(answers[rows] * first + (1 - answers[rows]) * second).mean()

            kind.pairwise_loss = angular
            model.to(x.device).fit(**told, lam=0.02, epochs=epochs)
            model.assign_Kmeans(**told, test_X=x[items:], test_y=y[items:], n_init=20)
            found = model.hard_assign(model.encodeBatch(x[items:]), model.W)[1]
            return found.cpu().numpy()
        model = kind(input_dim=x.shape[1], n_clusters=10, hidden_layers=[512, 512])
        none = dict.fromkeys(f"val_{each}" for each in names)
        told |= {"test_X": x[items:], "test_y": y[items:], "num_epochs": epochs, **none}
        if args.method == "mcl":
            kind.pairwise_loss = lambda self, one, two, rows: binary_cross_entropy(
                (one * two).sum(1).clamp(0, 1), answers[rows]
            )
            model.fit(**told, lr=0.001, batch_size=256)
        else:
            plain = kind.compute_loss_1
            kind.compute_loss_1 = lambda self, B, one, two, rows: plain(
                self, B, one, two, answers[rows]
            )
            volume = VOLUMES.get((args.dataset, args.noisy), VOLUME_NOISY)
            model.fit(**told, lr=0.5, batch_size=128, lam=volume)
        model.eval()
        with torch.no_grad():
            return model.predict(model.soft_assign(x[items:]))


if __name__ == "__main__":
    main()
