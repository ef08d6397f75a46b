"""A pair risk in a training loop of your own, around a pretrained backbone.

The page own_training_loop.md explains the parts. Run it: python own_training_loop.py
"""

from __future__ import annotations

from itertools import chain

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pairlearn import PairLabels, estimate_accuracy, make_risk

NAN = float("nan")


# ---- a backbone that somebody trained for something else --------------------------------------


def pretrained_backbone(images: Tensor, digits: Tensor) -> nn.Module:
    """Features of a small network that learnt to name the ten digits."""
    backbone = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
    )
    names = nn.Linear(64, 10)
    optimiser = torch.optim.Adam(chain(backbone.parameters(), names.parameters()), lr=2e-3)
    for _ in range(12):
        for batch in torch.randperm(len(images)).split(64):
            optimiser.zero_grad()
            logits = names(backbone(images[batch]))
            nn.functional.cross_entropy(logits, digits[batch]).backward()
            optimiser.step()
    return backbone.eval().requires_grad_(False)


# ---- judged pairs, half of them with one judgement --------------------------------------------


def judge(positive: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Similarity and difference by someone who is right in about 99% of images."""
    side = 2.0 * positive - 1
    posterior = torch.sigmoid(5 * (2.5 * side + torch.randn(len(positive))))
    labels = PairLabels.from_posteriors(posterior[pairs[:, 0]], posterior[pairs[:, 1]])
    similarity, difference = torch.as_tensor(labels.to_array()).unbind(1)
    kind = torch.arange(len(pairs)) % 4  # 0: no similarity, 1: no difference, 2 and 3: both
    return similarity.where(kind != 0, NAN), difference.where(kind != 1, NAN)


# ---- missing judgements -----------------------------------------------------------------------


def complete(z: Tensor, z_prime: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Fill in a missing similarity or difference from the model's current predictions."""
    p, p_prime = z.detach().sigmoid(), z_prime.detach().sigmoid()
    # c is missing: the model says which way round the pair differs, with P = 1 − s.
    different = (p * (1 - p_prime) + (1 - p) * p_prime).clamp(min=1e-6)
    c_model = (1 - s) * (p_prime - p) / different
    # s is missing: keep the model's sum p + p', as far as the difference allows.
    total = (p + p_prime).clamp(min=c.abs(), max=2 - c.abs())
    r, r_prime = (total - c) / 2, (total + c) / 2
    s_model = r * r_prime + (1 - r) * (1 - r_prime)
    return torch.where(s.isnan(), s_model, s), torch.where(c.isnan(), c_model, c)


# ---- the loop ---------------------------------------------------------------------------------


def train_head(features: Tensor, pairs: Tensor, s: Tensor, c: Tensor) -> nn.Module:
    """Learn log-odds of the positive class from judged pairs of rows of `features`."""
    head = nn.Sequential(nn.BatchNorm1d(features.shape[1]), nn.Linear(features.shape[1], 1))
    risk = make_risk("likelihood-abs")
    optimiser = torch.optim.Adam(head.parameters(), lr=1e-2, weight_decay=1e-3)
    for _ in range(60):
        for batch in torch.randperm(len(pairs)).split(32):
            # Both ends go through the model as one batch: batch norm must not tell them apart.
            z, z_prime = head(features[pairs[batch].T.flatten()]).flatten().chunk(2)
            optimiser.zero_grad()
            risk(z, z_prime, *complete(z, z_prime, s[batch], c[batch])).backward()
            optimiser.step()
    return head.eval()


# ---- large batches in small parts -------------------------------------------------------------


def accumulate(
    model: nn.Module, risk: nn.Module, x: Tensor, s: Tensor, c: Tensor, size: int
) -> None:
    """Gradients of the risk of a whole batch x (n, 2, d), at most `size` pairs at a time."""

    def moments(part: Tensor) -> Tensor:
        z, z_prime = model(x[part].transpose(0, 1).flatten(0, 1)).flatten().chunk(2)
        judged = complete(z, z_prime, s[part], c[part])
        return risk.moments(z, z_prime, *judged) * (len(part) / len(x))

    parts = torch.arange(len(x)).split(size)
    with torch.no_grad():
        whole = sum(moments(part) for part in parts)
    whole.requires_grad_()
    risk.from_moments(whole).backward()  # how the corrected risk depends on the moments,
    for part in parts:
        moments(part).backward(whole.grad)  # and the moments on the model


# ---- all of it --------------------------------------------------------------------------------


def main() -> None:
    """Tell even from odd digits, with 250 judged pairs."""
    torch.manual_seed(0)
    data = load_digits()
    images, digits = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16, data.target
    digits = torch.tensor(digits)
    backbone = pretrained_backbone(images[:900], digits[:900])

    images, even = images[900:], digits[900:] % 2 == 0  # `even` is for judging and checking only
    order = torch.randperm(len(images))
    pairs, unseen = order[:500].reshape(-1, 2), order[500:]
    s, c = judge(even, pairs)
    train, held_out = pairs[:200], pairs[200:]
    both = ~(s[:200].isnan() | c[:200].isnan())

    with torch.no_grad():
        deep, pixels = backbone(images), images.flatten(1)
    tried = {
        "pixels, all 200 pairs": (pixels, torch.ones_like(both)),
        f"backbone, {int(both.sum())} pairs with both": (deep, both),
        "backbone, all 200 pairs": (deep, torch.ones_like(both)),
    }
    for name, (features, rows) in tried.items():
        head = train_head(features, train[rows], s[:200][rows], c[:200][rows])
        z = head(features).flatten().detach()
        truth = ((z > 0) == even)[unseen].double().mean()
        judged = PairLabels(s[200:], c[200:])
        estimate = estimate_accuracy(z[held_out[:, 0]], z[held_out[:, 1]], judged)
        print(
            f"{name:<30} accuracy without labels {estimate.value:.2f} "
            f"({estimate.low:.2f} to {estimate.high:.2f}), with them {truth:.2f}"
        )

    risk, model, x = make_risk("likelihood-abs"), nn.Linear(64, 1), deep[train]
    accumulate(model, risk, x, s[:200], c[:200], size=30)
    in_parts = model.weight.grad.clone()
    model.zero_grad()
    accumulate(model, risk, x, s[:200], c[:200], size=200)
    same = torch.allclose(in_parts, model.weight.grad, atol=1e-6)
    print(f"gradients of 7 parts are those of the whole batch: {same}")


if __name__ == "__main__":
    main()
