"""What was said about items: the table of statements, and the kinds of statement.

`Judgements` is the table that files become and that training, checks and measures take. Each of its
rows is a statement of one of the `kinds`.
"""

from pairlearn.judgements.sets import propose_sets as propose_sets
from pairlearn.judgements.table import Judgements as Judgements
from pairlearn.judgements.table import check_ends as check_ends
