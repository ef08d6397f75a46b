"""The store of answers: one SQLite file that loses none and keeps every change."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TypeVar

from pairlearn_studio.changes import Changes, fresh_token
from pairlearn_studio.items import Items
from pairlearn_studio.project import Project
from pairlearn_studio.reader import CHECKS, UNTIL, StoreReader, token_hash
from pairlearn_studio.records import Annotator, Answer, Receipt, Task
from pairlearn_studio.store_file import (
    StoreError,
    file_errors,
    find_damage,
    make_file,
    open_file,
    parts_of,
    version_of,
)
from pairlearn_studio.writer import Writer

T = TypeVar("T")

_TASK = (
    "SELECT p.id, p.left, p.right, p.about, (SELECT count(*) FROM assignment b WHERE "
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
        The token of a store that was just created; later only its hash is known.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pairlearn_studio.project import Plan
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
        """Create the file, with the pairs of the plan.

        Raises StoreError if it exists already, or the items are too few for the plan.
        """
        ids = Items.open(project).ids
        make_file(project.store_path)
        with ExitStack() as on_failure:
            for path in parts_of(project.store_path):
                on_failure.callback(path.unlink, missing_ok=True)
            store = cls(project)
            on_failure.callback(store.close)
            store.carry_out(lambda changes: changes.grow(project, ids), who="project file")
            store.carry_out(lambda changes: changes.set_setting("project", project.id))
            store.supervisor_token = store.renew_supervisor_token()
            store._update_checks()
            on_failure.pop_all()
        return store

    @classmethod
    def open(cls, project: Project) -> Store:
        """Open an existing file.

        An overlap, a number of pairs or known pairs that were changed in the project file take
        effect now. Raises StoreError if there is no file, or it is not whole: every page is
        checked.
        """
        path = project.store_path
        # Nothing is written to a file that is not whole.
        with file_errors(path), closing(open_file(path)) as connection:
            if not version_of(connection):
                raise StoreError(
                    f"{path} is empty: take it from a backup with `pairlearn annotate restore`, "
                    "or, if the project was just being made, remove it and make it again"
                )
            if damage := find_damage(connection):
                raise sqlite3.DatabaseError(damage)
        with ExitStack() as on_failure:
            store = on_failure.enter_context(cls(project))
            shared_out = f"{project.overlap:g} {project.models_count}"
            if store.setting("overlap") not in (None, shared_out):
                store.carry_out(lambda changes: None, who="project file", share_out=True)
            if store.planned() != project.plan.pairs:
                ids = store.items.ids
                store.carry_out(lambda changes: changes.grow(project, ids), who="project file")
            store._update_checks()
            on_failure.pop_all()
        return store

    def _update_checks(self) -> None:
        """Mix in the checks that the project file asks for."""
        project = self.project
        for place, known in enumerate(project.known):
            self.check_items(known.left, known.right, place=f"known[{place}]: ")
        if (self.setting(CHECKS) or "") == project.mixed_in:
            return

        def work(changes: Changes) -> None:
            changes.mix_in(project)
            changes.assign_new(project)

        self.carry_out(work, who="project file")

    def extend(self, pairs: int) -> int:
        """Draw more pairs at random, and assign them; return the number of all pairs of the plan.

        The project file is changed first: after an interruption, opening the project continues.
        """
        current = Project.load(self.project.folder)
        plan = replace(current.plan, pairs=self.planned() + pairs)
        items, taken = len(self.items), {frozenset((one.left, one.right)) for one in self.pairs()}
        free = items * (items - 1) // 2 - len(taken)
        if not 1 <= pairs <= free:
            raise StoreError(f"{items} items make {free} further pairs; got {pairs}")
        self.project = replace(current, plan=plan)
        self.project.save()
        project, ids = self.project, self.items.ids
        self.carry_out(lambda changes: changes.grow(project, ids))
        self._update_checks()
        return plan.pairs

    def pause(self, paused: bool) -> None:
        """Give annotators no further pairs, or continue; answers under way are still stored."""

        def work(changes: Changes) -> None:
            changes.set_setting("paused", "yes" if paused else "no")
            changes.log("paused" if paused else "resumed")

        self.carry_out(work)

    def check_writable(self) -> None:
        """Raise StoreError if nothing can be stored now."""
        self.carry_out(lambda changes: changes.rows("DELETE FROM setting WHERE 0"))

    def check_items(self, *ids: str, place: str = "") -> None:
        """Raise StoreError if there is no item with one of these ids."""
        for item in ids:
            if item not in self.items:
                raise StoreError(f"{place}{item!r} is not among the items")

    def close(self) -> None:
        """Finish what was submitted, and close the file."""
        self._writer.close()
        super().close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- annotators ----------------------------------------------------------------------

    def add_annotator(self, name: str) -> tuple[Annotator, str]:
        """Add an annotator and reassign the open pairs; their token cannot be read again."""
        return self.add_annotators([name])[0]

    def add_annotators(
        self, names: Sequence[str], *, expires_at: str | None = None, quota: int | None = None
    ) -> list[tuple[Annotator, str]]:
        """Add several annotators, and reassign the open pairs once.

        Their links work until ``expires_at`` (UTC, ISO 8601), and ``quota`` is the most pairs that
        each of them is given.
        """
        return self.carry_out(
            lambda changes: changes.add_annotators(names, expires_at, quota), share_out=True
        )

    def assign(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Give pairs of the plan to annotators, as (left, right, name); others keep theirs.

        They come first, and stay where open pairs are assigned anew. An open pair that others have
        beyond its overlap is taken from them.
        """
        who = {one.name: one.id for one in self.annotators() if one.active}
        pairs = {frozenset((p.left, p.right)): p.id for p in self.pairs() if p.origin == "plan"}
        for number, (left, right, name) in enumerate(rows, 1):
            if name not in who:
                raise StoreError(f"row {number}: no annotator {name!r} takes part")
            if frozenset((left, right)) not in pairs:
                raise StoreError(f"row {number}: {left!r}, {right!r} is no pair of the plan")
        wanted = [(who[name], pairs[frozenset((left, right))]) for left, right, name in rows]
        self.carry_out(lambda changes: changes.give(wanted), share_out=True)

    def retire(self, annotator_id: int) -> None:
        """End an annotator's part: their link is void, their open pairs go to the others."""
        self.carry_out(lambda changes: changes.retire(annotator_id), share_out=True)

    def renew_token(
        self, annotator_id: int, *, expires_at: str | None = None, quota: int | None = None
    ) -> str:
        """New token for an annotator, retired or not; the old link is void.

        The quota stays where none is given.
        """
        return self.carry_out(
            lambda changes: changes.renew_token(annotator_id, expires_at, quota), share_out=True
        )

    def renew_supervisor_token(self, *, expires_at: str | None = None) -> str:
        """New token for the supervisor, until ``expires_at``; the old one is void."""
        token = fresh_token()

        def work(changes: Changes) -> None:
            changes.set_setting("supervisor", token_hash(token).hex())
            changes.set_setting(UNTIL, expires_at or "")
            changes.log("supervisor token renewed")

        self.carry_out(work)
        return token

    # -- tasks and answers ---------------------------------------------------------------

    def next_task(self, annotator_id: int, *, after: int | None = None) -> Task | None:
        """Next pair to judge, the same until it is answered; None when all are.

        With ``after``, the pair that follows that one.
        """
        query = (
            "SELECT a.pair, a.touched FROM assignment a JOIN pair p ON p.id = a.pair "
            "WHERE a.annotator = ? AND a.answer IS NULL AND a.pair IS NOT ? "
            "AND (p.origin = 'check') = ? ORDER BY a.touched DESC, a.pair LIMIT 1"
        )
        planned, check = (self.first(query, annotator_id, after, kind) for kind in (False, True))
        following = planned or check
        if planned and check:
            if planned[1] or check[1]:  # an answer that was withdrawn is given again first
                following = max(planned, check, key=lambda row: row[1] or 0)
            elif self._check_is_due(annotator_id, after):
                following = check
        return None if following is None else self.task(annotator_id, following[0])

    def _check_is_due(self, annotator: int, after: int | None) -> bool:
        """Whether the next pair is a check: one at a random place in every 1/share pairs."""
        done = self._counts(annotator)[0] + (after is not None)
        every = max(round(1 / self.project.known_share), 1)
        block, place = divmod(done, every)
        return zlib.crc32(f"{annotator} {block}".encode()) % every == place

    def task(self, annotator_id: int, pair: int) -> Task | None:
        """A pair of an annotator, answered or not; None if it is not assigned to them."""
        row = self.first(_TASK, annotator_id, pair)
        return None if row is None else Task(*row)

    def submit(
        self, annotator_id: int, pair: int, answer: Answer, *replaces: int | None
    ) -> Future[Receipt]:
        """Store an answer. The future is resolved when it is on disk.

        The same key again returns the first receipt; another key is a revision. With ``replaces``,
        the id of the standing answer or None, it is refused if another answer stands.
        """
        return self._submit(
            lambda changes: changes.record_answer(annotator_id, pair, answer, replaces)
        )

    def undo(self, annotator_id: int, *, answer_id: int | None = None) -> Future[Task | None]:
        """Reopen the pair that an annotator answered last; the answer stays in the history.

        With ``answer_id``, only if that is still their last answer, so that a request may
        be delivered twice. None if there is nothing to take back.
        """

        def work(changes: Changes) -> Task | None:
            pair = changes.withdraw_last(annotator_id, answer_id)
            return None if pair is None else Task(*changes.rows(_TASK, annotator_id, pair)[0])

        return self._submit(work)

    def adjudicate(self, pair: int, answer: Answer) -> Receipt:
        """Settle a pair: the supervisor's answer replaces all others in exports."""
        return self.carry_out(lambda changes: changes.adjudicate(pair, answer))

    def mark_sent(self, sent: bool) -> bool:
        """Record that completion was reported, or was not after all; False if that was known.

        More pairs or a larger overlap make another completion.
        """
        goal = f"{len(self.pairs())} pairs, overlap {self.project.overlap:g}" if sent else ""

        def work(changes: Changes) -> bool:
            before = changes.setting("sent")
            changes.set_setting("sent", goal)
            return before != goal

        return self.carry_out(work)

    def practise(self, annotator_id: int, *results: str) -> Future[None]:
        """Record results of an annotator's practice."""

        def work(changes: Changes) -> None:
            for result in results:
                changes.log("practised", result, annotator=annotator_id)

        return self._submit(work, who="practice")

    def carry_out(
        self, work: Callable[[Changes], T], *, who: str = "supervisor", share_out: bool = False
    ) -> T:
        """Let the writer do ``work``, and wait until it is on disk.

        With ``share_out`` the open pairs are then assigned anew, in the same transaction.
        """
        return self._submit(work, who, share_out).result()

    def _submit(
        self, work: Callable[[Changes], T], who: str = "supervisor", share_out: bool = False
    ) -> Future[T]:
        def work_and_reassign(connection: sqlite3.Connection) -> T:
            changes = Changes(connection, who)
            result = work(changes)
            if share_out:
                changes.reassign(self.project)
            return result

        return self._writer.submit(work_and_reassign)
