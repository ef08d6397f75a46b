"""Where the answers are: one SQLite file that loses none and keeps every change."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

from pairlearn.studio.changes import Changes, fresh_token
from pairlearn.studio.choosing import random_pairs
from pairlearn.studio.items import Items
from pairlearn.studio.project import Project
from pairlearn.studio.reader import MIXED, StoreReader, token_hash
from pairlearn.studio.records import Annotator, Answer, Mixed, Receipt, Task
from pairlearn.studio.store_file import (
    StoreError,
    find_damage,
    has_answers,
    make_file,
    reading,
    remove_file,
)
from pairlearn.studio.writer import Writer

T = TypeVar("T")

LAG = 8
"""Answers that come between a pair and its repeat, at least, as long as there are others."""
_TASK = (
    "SELECT p.id, p.left, p.right, (SELECT count(*) FROM assignment b WHERE "
    "b.annotator = a.annotator AND b.answer IS NOT NULL AND "
    "(a.answer IS NULL OR b.touched <= a.touched)) + (a.answer IS NULL), "
    "(SELECT count(*) FROM assignment b WHERE b.annotator = a.annotator) "
    "FROM assignment a JOIN pair p ON p.id = a.pair WHERE a.annotator = ? AND a.pair = ?"
)


class Store(StoreReader):
    r"""The answers of a project. Any thread may use it; close it, or use it in a ``with``.

    Attributes
    ----------
    project : Project
    supervisor_token : str or None
        Of a store that was just created; told this once, and kept only as a hash.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pairlearn.studio.project import Plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,size\na,1\nb,2\nc,3\n")
    ...     project = Project(Path(folder), "table", "items.csv", Plan(pairs=3))
    ...     with Store.create(project) as store:
    ...         ann, token = store.add_annotator("ann")
    ...         task = store.next_task(ann.id)
    ...         answer = Answer(similarity=0.9, difference=0.1, key="form-1")
    ...         receipt = store.submit(ann.id, task.pair, answer).result()
    ...         store.progress(ann.id).done, receipt.revision, store.by_token(token).name
    (1, 1, 'ann')
    """

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self.supervisor_token: str | None = None
        self._writer = Writer(project.store_path)

    @classmethod
    def create(cls, project: Project) -> Store:
        """Make the file, with the pairs of the plan.

        Raises StoreError if there is one already, or the items are too few for the plan.
        """
        ids, plan = Items.open(project).ids, project.plan
        try:
            rows = random_pairs(len(ids), plan.pairs, plan.seed)
        except ValueError as error:
            raise StoreError(f"the plan cannot be met: {error}") from None
        pairs = [(ids[left], ids[right], 1.0) for left, right in rows.tolist()]
        make_file(project.store_path)
        with ExitStack() as on_failure:
            on_failure.callback(remove_file, project.store_path)
            store = cls(project)
            on_failure.callback(store.close)
            store.carry_out(
                lambda changes: changes.add_pairs(pairs, "plan"), who="project file", share_out=True
            )
            store.supervisor_token = store.renew_supervisor_token()
            store._settle_known()
            on_failure.pop_all()
        return store

    @classmethod
    def open(cls, project: Project) -> Store:
        """Open the file that is there; one of an older version is migrated.

        An overlap or known pairs that were changed in the project file take effect now. Raises
        StoreError if there is none, or it is not whole: every page is looked at.
        """
        path = project.store_path
        if not has_answers(path):
            raise StoreError(
                f"{path} is empty: take it from a backup with `pairlearn annotate restore`, or, if "
                "the project was just being made, remove it and make it again"
            )
        with ExitStack() as on_failure:
            store = on_failure.enter_context(cls(project))
            with reading(path):
                if found := find_damage(store._reader()):
                    raise sqlite3.DatabaseError(found)
            kept = store.setting("overlap")
            if kept is not None and kept != str(project.overlap):
                store.carry_out(lambda c: None, who="project file", share_out=True)
            store._settle_known()
            on_failure.pop_all()
        return store

    def _settle_known(self) -> None:
        """Have the checks of the project file among the pairs."""
        for place, one in enumerate(self.project.known):
            self.check_items(one.left, one.right, place=f"known[{place}]: ")
        stated = self.project.known_for("check"), self.project.known_share
        repeated = self.project.repeat_share
        if not Mixed.read(self.setting(MIXED)).states(*stated, repeated):
            self.carry_out(
                lambda changes: changes.mix_in(*stated, repeated),
                who="project file",
                share_out=True,
            )

    def check_items(self, *ends: str, place: str = "") -> None:
        """Refuse ids of items that are not there."""
        for end in ends:
            if end not in self.items:
                raise StoreError(f"{place}{end!r} is not among the items")

    def close(self) -> None:
        """Finish what was submitted, and let the file go."""
        self._writer.close()
        super().close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- who takes part ------------------------------------------------------------------

    def add_annotator(self, name: str) -> tuple[Annotator, str]:
        """Add somebody, share the open pairs out anew; their token is told this once."""
        return self.add_annotators([name])[0]

    def add_annotators(self, names: Sequence[str]) -> list[tuple[Annotator, str]]:
        """Add several at once, and share the pairs out once."""
        return self.carry_out(lambda changes: changes.add_annotators(names), share_out=True)

    def retire(self, annotator_id: int) -> None:
        """End somebody's part: their link is void, their open pairs go to the others."""
        self.carry_out(lambda changes: changes.retire(annotator_id), share_out=True)

    def renew_token(self, annotator_id: int) -> str:
        """A new token for somebody; the old link is void. Who retired takes part again."""
        return self.carry_out(lambda changes: changes.renew_token(annotator_id), share_out=True)

    def renew_supervisor_token(self) -> str:
        """A new token for the supervisor; the old one is void."""
        token = fresh_token()

        def work(changes: Changes) -> None:
            changes.set_setting("supervisor", token_hash(token).hex())
            changes.log("supervisor token renewed")

        self.carry_out(work)
        return token

    # -- tasks and answers ---------------------------------------------------------------

    def next_task(self, annotator_id: int, *, after: int | None = None) -> Task | None:
        """What they judge next; the same until it is answered. None when all is done.

        With ``after``, what comes when they have answered that one.
        """
        query = (
            "SELECT pair, touched FROM assignment WHERE annotator = ? AND answer IS NULL "
            f"AND pair IS NOT ? AND pair {{}} ({', '.join(map(str, self.mixed_in))}) "
            "ORDER BY touched DESC, pair"
        )
        usual = self.first(f"{query.format('NOT IN')} LIMIT 1", annotator_id, after)
        mixed = self.rows(query.format("IN"), annotator_id, after) if self.mixed_in else []
        found = usual or next(iter(mixed), None)
        if usual and mixed:
            if usual[1] or mixed[0][1]:  # taken back: it is answered again first
                found = max(usual, mixed[0], key=lambda one: one[1] or 0)
            else:
                found = self._turn(annotator_id, [one[0] for one in mixed], after) or usual
        return None if found is None else self.task(annotator_id, found[0])

    def _turn(self, who: int, mixed: list[int], after: int | None) -> tuple[int] | None:
        """One of what is mixed in, if it is time for one and one can come now."""
        done = self._counts(who)[0] + (after is not None)
        # One in every 1/share.
        every = max(round(1 / self.mixed.whole_share), 1)
        block, place = divmod(done, every)
        if zlib.crc32(f"{who} {block}".encode()) % every != place:
            return None
        rows = self.rows(
            "SELECT pair FROM assignment WHERE annotator = ? AND answer IS NOT NULL "
            f"ORDER BY touched DESC LIMIT -1 OFFSET {LAG - (after is not None)}",
            who,
        )
        past = {None, *(row[0] for row in rows)}
        free = [pair for pair in mixed if self.repeats.get(pair) in past]
        if not free:
            return None
        # Checks and repeats by turns.
        return (min(free, key=lambda pair: (pair in self.repeats) != (done % 2 == 1)),)

    def task(self, annotator_id: int, pair: int) -> Task | None:
        """A pair that is theirs, answered or not; None if it is not theirs."""
        found = self.first(_TASK, annotator_id, pair)
        return None if found is None else Task(*found)

    def submit(self, annotator_id: int, pair: int, answer: Answer) -> Future[Receipt]:
        """Keep an answer. The future is resolved when it is on disk.

        The same key again returns the first receipt; another key is a revision.
        """
        return self._submit(lambda changes: changes.record_answer(annotator_id, pair, answer))

    def undo(self, annotator_id: int, *, answer_id: int | None = None) -> Future[Task | None]:
        """Reopen the pair that they answered last; the answer stays in the history.

        With ``answer_id``, only if that is still their last answer, so that a request may
        be delivered twice. None if there is nothing to take back.
        """

        def work(changes: Changes) -> Task | None:
            pair = changes.withdraw_last(annotator_id, answer_id)
            return None if pair is None else Task(*changes.rows(_TASK, annotator_id, pair)[0])

        return self._submit(work)

    def adjudicate(self, pair: int, answer: Answer) -> Receipt:
        """Settle a pair: the supervisor's answer stands in place of all others in exports."""
        return self.carry_out(lambda changes: changes.adjudicate(pair, answer))

    def mark_told(self, told: bool) -> bool:
        """Keep that completion was told, or was not after all; False if that was known.

        More pairs or a larger overlap make another completion.
        """
        goal = f"{len(self.pairs())} pairs, overlap {self.project.overlap}" if told else ""

        def work(changes: Changes) -> bool:
            before = changes.setting("told")
            changes.set_setting("told", goal)
            return before != goal

        return self.carry_out(work)

    def practise(self, annotator_id: int, *results: str) -> Future[None]:
        """Keep how their practice went."""

        def work(changes: Changes) -> None:
            for one in results:
                changes.log("practised", one, annotator=annotator_id)

        return self._submit(work, who="practice")

    def add_pairs(self, pairs: Iterable[tuple[str, str, float]]) -> list[int]:
        """Add chosen pairs, each with its inclusion weight, and assign them; their ids.

        Raises StoreError if an item is unknown, or a pair is there already, in either direction.
        """
        chosen = list(pairs)
        self.check_items(*(end for pair in chosen for end in pair[:2]))
        return self.carry_out(
            lambda changes: changes.add_pairs(chosen, "chosen"), who="model", share_out=True
        )

    def carry_out(
        self, work: Callable[[Changes], T], *, who: str = "supervisor", share_out: bool = False
    ) -> T:
        """Have something done by the writer, and wait until it is on disk.

        With ``share_out`` the open pairs are then shared out anew, in the same transaction.
        """
        return self._submit(work, who, share_out).result()

    def _submit(
        self, work: Callable[[Changes], T], who: str = "supervisor", share_out: bool = False
    ) -> Future[T]:
        def whole(connection: sqlite3.Connection) -> T:
            changes = Changes(connection, who)
            result = work(changes)
            if share_out:
                changes.reassign(self.project.overlap, self.project.plan.seed)
            return result

        return self._writer.submit(whole)
