"""The project file: the items to judge, the wording, and how pairs are shared out.

A project is a folder::

    PROJECT/
      project.json     read and written by this module; may be edited by hand
      items.csv        the items as rows (or items.parquet),
      items/           or as a folder of images or texts
      answers.sqlite   every answer (pairlearn_studio.store)
      backups/         whole copies of it (pairlearn_studio.writer)
      serve.lock       held while the project is served, with its address

``words/LANGUAGE.json`` maps the English texts and error messages of the pages to another language;
missing ones are shown in English. Names in braces are filled in. ``"(direction)": "rtl"`` is for
languages that are written from right to left.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import msgspec

from pairlearn.atomic import replacing
from pairlearn.columns import locate_errors
from pairlearn.judgements.sets import check_classes, members_of, read_sets, split_set
from pairlearn_studio.records import AnswerMode, Known, levels_for, read_known

Language: TypeAlias = Literal["en", "de", "fr"]


@cache
def translations(language: str) -> dict[str, str]:
    """Translations of the English texts, empty for English."""
    if language == "en":
        return {}
    path = Path(__file__).with_name("words") / f"{language}.json"
    table: dict[str, str] = json.loads(path.read_text("utf-8"))
    return table


def translate(language: str, text: str, **values: object) -> str:
    """Translate a text, and fill in the names in braces.

    >>> translate("fr", "Both “{name}”", name="panne")
    'Les deux « panne »'
    """
    return translations(language).get(text, text).format(**values)


Kind: TypeAlias = Literal["table", "image", "text"]

FORMAT = "pairlearn-project"
VERSION = 1
FILE = "project.json"
STORE = "answers.sqlite"

MAX_BYTES = 1 << 20
# Without control characters and halves of surrogate pairs, which no file can be written with.
Text: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=4000, pattern="^[^\x00-\x08\x0b-\x1f\ud800-\udfff]*$")
]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ProjectError(ValueError):
    """A project folder or its content cannot be used as it is."""


@dataclass(frozen=True)
class Plan:
    """Number of random pairs to judge, and the seed that determines them and who judges them."""

    pairs: Count
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        _check_fields(self, "plan.")


@dataclass(frozen=True)
class Project:
    """Description of a project. Raises ProjectError if a value is not of the right type.

    Parameters
    ----------
    folder : Path
    kind : {"table", "image", "text"}
        Kind of the items.
    items : str
        File or folder of the items, relative to the project's.
    plan : Plan
    id : str
        Identity of the project, which its answers and backups carry; empty for none.
    title, help : str
        Title and instructions of the annotator's page, as plain text. The title names the task by
        default.
    positive_name, negative_name : str
        The two classes, in the annotator's words.
    question_similarity, question_difference : str
        The two questions, by default made from the names of the classes. Only exact projects ask
        the first one.
    columns : tuple of str
        Columns of a table to show; all if empty.
    overlap : float
        Number of annotators who judge each pair: 1.2 is two for every fifth pair.
    models_count : bool
        Count the answers of models towards the overlap. By default people judge every pair.
    answers : {"exact", "graded", "each"}
        Two numbers, similarity and difference; one of ten answers in words; or how likely
        each of the two is positive. `create_project` makes graded ones.
    hide_ids : bool
        Do not show the ids of the items to annotators.
    positive_means, negative_means : str
        Definitions of the two classes, which annotators read first.
    classes : mapping of str to str
        Names and definitions of three classes or more; empty for two. Each pair is then asked about
        a class, or a set of classes, and answers are graded.
    about : tuple of str
        Sets of classes to ask about, such as "cat|dog". By default a quick model proposes a class
        for each pair.
    same_share : float
        Share of pairs that are asked whether they are of the same class at all.
    labels : bool
        Whether annotators may also name the classes of the two items.
    known : tuple of Known
        Pairs whose answer is known: examples, practice, and checks that are mixed in.
    known_share : float
        Share of checks in what annotators judge.
    qualify : float
        Share of the practice that must be right before an annotator may begin.
    language : {"en", "de", "fr"}
        Language of the annotator's page.

    Examples
    --------
    >>> project = Project(Path("p"), "text", "items", Plan(10), positive_name="will fail")
    >>> project.question_similarity
    'How likely are both “will fail”, or both “negative”?'
    """

    folder: Path
    kind: Kind
    items: Text
    plan: Plan
    id: Text = ""
    title: Text = ""
    positive_name: Text = ""
    negative_name: Text = ""
    question_similarity: Text = ""
    question_difference: Text = ""
    help: Text = ""
    columns: tuple[Text, ...] = ()
    overlap: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 1
    models_count: bool = False
    answers: AnswerMode = "exact"
    hide_ids: bool = False
    positive_means: Text = ""
    negative_means: Text = ""
    classes: dict[Text, Text] = field(default_factory=dict)
    about: tuple[Text, ...] = ()
    same_share: Share = 0.0
    labels: bool = False
    known: tuple[Known, ...] = ()
    known_share: Annotated[float, msgspec.Meta(ge=0.001, le=1)] = 0.05
    qualify: Share = 0.0
    language: Language = "en"

    def __post_init__(self) -> None:
        _check_fields(self)
        if not self.items_path.resolve().is_relative_to(self.folder.resolve()):
            raise ProjectError(f"items is {self.items!r:.80}, outside the project folder")
        names = ("of the class asked about", "of another class")
        names = names if self.classes else ("positive", "negative")
        for name, default in zip(
            ("positive_name", "negative_name"), map(self.words, names), strict=True
        ):
            if self.classes or not getattr(self, name).strip():
                object.__setattr__(self, name, default)
        try:
            derived: dict[str, Any] = {"about": self._sets(), "known": read_known(self.known)}
            self._check_known(derived["known"])
        except ValueError as error:
            raise ProjectError(str(error)) from None
        if not self.title.strip():
            *others, last = self.classes or (self.positive_name, self.negative_name)
            title = self.words(
                "{positive} or {negative}?", positive=", ".join(others), negative=last
            )
            derived["title"] = title[:1].upper() + title[1:]
        if not self.question_similarity:
            derived["question_similarity"] = self.words(
                "How likely are both “{positive}”, or both “{negative}”?"
            )
        questions = {
            "exact": self.words("Which one is more likely “{positive}”, and by how much?"),
            "graded": self.words(
                "Which one is more likely “{positive}”?",
                positive="{class}" if self.classes else self.positive_name,
            ),
            "each": self.words("How likely is this one “{positive}”?"),
        }
        if self.question_difference in ("", *questions.values()):
            derived["question_difference"] = questions[self.answers]
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _sets(self) -> tuple[str, ...]:
        """The sets to ask about, each written in one way; ValueError where classes are wrong."""
        if not self.classes:
            if self.about or self.same_share or self.labels:
                raise ValueError("about, same_share and labels need classes, three or more")
            return ()
        if len(check_classes(self.classes)) < 3 or self.answers != "graded":
            raise ValueError(
                f"classes has {len(self.classes)} names and answers is {self.answers!r}: name "
                "three or more, with graded answers; two are positive_name and negative_name"
            )
        if self.question_difference and "{class}" not in self.question_difference:
            raise ValueError("question_difference needs {class} where the class is to be named")
        with locate_errors(lambda row: f"about[{row}]"):
            sets = read_sets([*self.about])
            members_of(sets, [*self.classes])
        return tuple(sets.tolist())

    def _check_known(self, known: Sequence[Known]) -> None:
        """ValueError for a known pair that names no class of the project, or answers otherwise."""
        for pair in known:
            place = f"known pair {pair.left}, {pair.right}"
            for name in {pair.left_class, pair.right_class, *split_set(pair.about)} - {""}:
                if name not in self.classes:
                    raise ValueError(f"{place}: {name!r} is none of {', '.join(self.classes)}")
            if pair.answer not in levels_for(pair.about if self.classes else None):
                raise ValueError(f"{place}: {pair.answer!r} is no answer about {pair.about!r}")

    def asked(self, about: str | None) -> dict[str, str]:
        """The question about a pair, and the answers that name its set of classes."""
        if about == "":
            return {"question": self.words("Are they of the same kind?")}
        negative = self.words("Both “{name}”", name=self.negative_name)
        name = self.positive_name
        if about is not None:
            name = self.words("” or “").join(split_set(about))
            negative = self.words("Neither “{name}”", name=name)
        return {
            "question": self.question_difference.replace("{class}", name),
            "both positive": self.words("Both “{name}”", name=name),
            "both negative": negative,
        }

    @property
    def path(self) -> Path:
        """Path of the project file."""
        return self.folder / FILE

    @property
    def items_path(self) -> Path:
        """File or folder of the items."""
        return self.folder / self.items

    @property
    def store_path(self) -> Path:
        """File of the answers."""
        return self.folder / STORE

    @classmethod
    def load(cls, folder: str | Path) -> Project:
        """Read the project file of a folder; ProjectError names the field that is wrong."""
        folder = Path(folder)
        path = folder / FILE
        if not path.is_file():
            raise ProjectError(
                f"{folder} is not a project: it has no {FILE}; `pairlearn annotate init` makes one"
            )
        try:
            return _from_values(folder, _read(path))
        except ProjectError as error:
            raise ProjectError(f"{path}: {error}") from None
        except RecursionError:
            raise ProjectError(f"{path}: a value is nested too deeply") from None

    def save(self) -> Path:
        """Write the project file, atomically."""
        values: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        values |= {name: getattr(self, name) for name in _FIELDS}
        values = msgspec.to_builtins(values)
        with replacing(self.path) as part:
            part.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return self.path

    def words(self, text: str, **values: object) -> str:
        """Translate a text of the annotator's page into the project's language."""
        names = {"positive": self.positive_name, "negative": self.negative_name}
        return translate(self.language, text, **(names | values))

    def level_words(self, level: str, about: str | None = None) -> str:
        """Wording of an answer on the annotator's page."""
        if level in (asked := self.asked(about)):
            return asked[level]
        if level == "alike":
            return self.words("The same, either one")
        if level.startswith("can't tell"):
            return self.words("Can’t tell")
        side, degree = level.split()
        return f"{self.words(side.capitalize())}, {self.words(degree)}"

    @property
    def mixed_in(self) -> str:
        """The checks and their share as text; empty without any."""
        checks = self.known_for("check")
        return f"{self.known_share} {msgspec.json.encode(checks).decode()}" if checks else ""

    def known_for(self, use: str) -> list[Known]:
        """Known pairs of one use: "example", "practice" or "check"."""
        return [known for known in self.known if known.use == use]


#: Fields of the file, in their order.
_FIELDS = (*(f.name for f in fields(Project) if f.name not in ("folder", "plan")), "plan")


def read_json(path: Path, max_bytes: int, error_type: type[ValueError]) -> Any:
    """Read a JSON file; raise ``error_type`` if it is not JSON or too large to be one of ours."""
    if path.stat().st_size > max_bytes:
        raise error_type(f"it has more than {max_bytes} bytes")
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise error_type(f"not JSON in UTF-8 ({error})") from None


def _read(path: Path) -> dict[str, Any]:
    values = read_json(path, MAX_BYTES, ProjectError)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ProjectError(f'not a project file: it has no "format": "{FORMAT}"')
    if (version := values.get("version")) != VERSION:
        raise ProjectError(f"version is {version!r:.80}; this pairlearn reads {VERSION}")
    return values


def _from_values(folder: Path, values: dict[str, Any]) -> Project:
    values = {name: value for name, value in values.items() if name not in ("format", "version")}
    _check_names("", values, _FIELDS, required=("kind", "items", "plan"))
    plan = values.pop("plan")
    if not isinstance(plan, dict):
        raise ProjectError(f"plan is {plan!r:.80}: expected `object`")
    _check_names("plan.", plan, tuple(f.name for f in fields(Plan)), required=("pairs",))
    return Project(folder=folder, plan=Plan(**plan), **values)


def _check_names(
    prefix: str, values: dict[str, Any], names: tuple[str, ...], required: tuple[str, ...]
) -> None:
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; do you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
            raise ProjectError(f"{prefix}{name[:80]} is not a field{hint}")
    for name in required:
        if name not in values:
            raise ProjectError(f"{prefix}{name} is missing")


def _check_fields(record: Plan | Project, prefix: str = "") -> None:
    """Refuse values that are not of the types of their fields."""
    for name, kind in get_type_hints(type(record), include_extras=True).items():
        value = getattr(record, name)
        if name in ("folder", "plan", "known"):  # checked where they are read
            continue
        try:
            object.__setattr__(record, name, msgspec.convert(value, kind))
        except msgspec.ValidationError as error:
            raise ProjectError(f"{prefix}{name} is {value!r:.80}: {error}") from None
