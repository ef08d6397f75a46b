"""Models that judge pairs: a Python function, or an endpoint of the chat protocol.

Two ways to ask. *Per pair*, which is what people do: both items side by side, in both
orders, so that position bias averages out; two questions a pair. *Per item*: P(positive)
of every item once, and pairs derived from that; far cheaper, since items recur, but it
rests on the model's probabilities without anything to compare with.
"""

from pairlearn.annotate.models.cache import AnswerCache
from pairlearn.annotate.models.callables import find_function, item_model, pair_model
from pairlearn.annotate.models.chat import chat_item_model, chat_pair_model
from pairlearn.annotate.models.endpoint import ChatEndpoint
from pairlearn.annotate.models.errors import LimitReached, ModelError
from pairlearn.annotate.models.filling import Filled, PairToJudge, fill
from pairlearn.annotate.models.judging import Judgement, Said, SaidOfItem, by_items, by_pairs
from pairlearn.annotate.models.limits import Budget, Pace
from pairlearn.annotate.models.prompts import Wording
from pairlearn.annotate.models.seat import Seat

__all__ = [
    "AnswerCache",
    "Budget",
    "ChatEndpoint",
    "Filled",
    "Judgement",
    "LimitReached",
    "ModelError",
    "Pace",
    "PairToJudge",
    "Said",
    "SaidOfItem",
    "Seat",
    "Wording",
    "by_items",
    "by_pairs",
    "chat_item_model",
    "chat_pair_model",
    "fill",
    "find_function",
    "item_model",
    "pair_model",
]
