"""An endpoint as an annotator: probabilities of answer tokens become judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairlearn.annotate.models.endpoint import ChatEndpoint
from pairlearn.annotate.models.judging import PairModel, PosteriorModel, Said, SaidOfItem
from pairlearn.annotate.models.prompts import ITEM_ANSWERS, PAIR_ANSWERS, Wording
from pairlearn.annotate.models.replies import answer_shares

if TYPE_CHECKING:
    from pairlearn.annotate.items import ItemView

__all__ = ["LEAST_MASS", "chat_item_model", "chat_pair_model"]

LEAST_MASS = 0.5
"""Below this probability of answers that were understood, it is "can't say"."""


def chat_pair_model(
    endpoint: ChatEndpoint, wording: Wording, least_mass: float = LEAST_MASS
) -> PairModel:
    """Ask which of A, B and Same is true: s = P(Same), c = P(B) − P(A).

    The probabilities are renormalised over the answers that are understood. Where those
    have less than `least_mass` in all, the model did not answer the question, and its
    judgement is "can't say".

    Examples
    --------
    >>> from types import SimpleNamespace as Of
    >>> from pairlearn.annotate.models.replies import Reply
    >>> tokens = ("Same", 0.6), (" same", 0.1), ("B", 0.2), ("A", 0.1)
    >>> endpoint = Of(ask=lambda question: Reply(tokens, None))     # stands for a ChatEndpoint
    >>> item = Of(kind="text", text="a text")                       # stands for an ItemView
    >>> said = chat_pair_model(endpoint, Wording("Texts", "kind", "rude"))(item, item)
    >>> round(said.similarity, 3), round(said.difference, 3)
    (0.7, 0.1)
    """
    _check(least_mass)

    def ask(first: ItemView, second: ItemView) -> Said:
        reply = endpoint.ask(wording.about_pair(first, second))
        shares, mass = answer_shares(reply.tokens, PAIR_ANSWERS)
        if mass < least_mass or mass == 0:
            return Said(None, None, mass)
        return Said(min(shares["Same"], 1.0), shares["B"] - shares["A"], mass)

    return ask


def chat_item_model(
    endpoint: ChatEndpoint, wording: Wording, least_mass: float = LEAST_MASS
) -> PosteriorModel:
    """Ask whether an item is positive: P(Yes), renormalised over Yes and No.

    Examples
    --------
    >>> from types import SimpleNamespace as Of
    >>> from pairlearn.annotate.models.replies import Reply
    >>> endpoint = Of(ask=lambda question: Reply((("Yes", 0.6), ("No", 0.2)), None))
    >>> item = Of(kind="text", text="a text")
    >>> said = chat_item_model(endpoint, Wording("Texts", "kind", "rude"))(item)
    >>> round(said.posterior, 3), round(said.mass, 3)
    (0.75, 0.8)
    """
    _check(least_mass)

    def ask(item: ItemView) -> SaidOfItem:
        reply = endpoint.ask(wording.about_item(item))
        shares, mass = answer_shares(reply.tokens, ITEM_ANSWERS)
        if mass < least_mass or mass == 0:
            return SaidOfItem(None, mass)
        return SaidOfItem(min(shares["Yes"], 1.0), mass)

    return ask


def _check(least_mass: float) -> None:
    if not 0 <= least_mass <= 1:
        raise ValueError(f"least_mass must lie in [0, 1]; got {least_mass:g}")
