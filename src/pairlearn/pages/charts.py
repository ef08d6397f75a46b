"""Charts as inline SVG whose marks can be pointed at and reached with the keyboard."""

from __future__ import annotations

from collections.abc import Sequence

from pairlearn.pages.axes import Axis
from pairlearn.pages.markup import Html, joined, tag

__all__ = ["Chart", "marker_path"]

Point = tuple[float, float]

_MARKERS = {  # in units of the marker's radius
    "s": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "^": ((0.0, -1.1), (1.05, 0.8), (-1.05, 0.8)),
    "v": ((0.0, 1.1), (1.05, -0.8), (-1.05, -0.8)),
    "D": ((0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)),
    "P": (
        *((-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4), (0.4, 0.4)),
        *((0.4, 1.1), (-0.4, 1.1), (-0.4, 0.4), (-1.1, 0.4), (-1.1, -0.4), (-0.4, -0.4)),
    ),
    "X": (
        *((-1.1, -0.55), (-0.55, -1.1), (0.0, -0.55), (0.55, -1.1), (1.1, -0.55), (0.55, 0.0)),
        *((1.1, 0.55), (0.55, 1.1), (0.0, 0.55), (-0.55, 1.1), (-1.1, 0.55), (-0.55, 0.0)),
    ),
    "*": (
        *((0.0, -1.3), (0.35, -0.45), (1.25, -0.4), (0.55, 0.18), (0.8, 1.05), (0.0, 0.55)),
        *((-0.8, 1.05), (-0.55, 0.18), (-1.25, -0.4), (-0.35, -0.45)),
    ),
    "|": ((-0.25, -1.3), (0.25, -1.3), (0.25, 1.3), (-0.25, 1.3)),
}


def marker_path(marker: str, x: float, y: float, radius: float) -> str:
    """The outline of a marker, named as in matplotlib; a circle if it has no other.

    Examples
    --------
    >>> marker_path("^", 10, 10, 10)
    'M10 -1L20.5 18L-0.5 18Z'
    """
    if marker not in _MARKERS:
        r, width = _short(radius), _short(2 * radius)
        return f"M{_short(x - radius)} {_short(y)}a{r} {r} 0 1 0 {width} 0a{r} {r} 0 1 0 -{width} 0"
    corners = [f"{_short(x + radius * u)} {_short(y + radius * v)}" for u, v in _MARKERS[marker]]
    return f"M{'L'.join(corners)}Z"


class Chart:
    """A chart that is built up piece by piece, in the units of its axes.

    Parameters
    ----------
    title : str
        What it shows, for those who do not see it and above it for those who do.
    x, y : Axis
        Its axes.
    width, height : float
        Size of the drawing.
    left, bottom : float
        Room for the tick labels and titles of the axes.

    Examples
    --------
    >>> chart = Chart("rates", Axis("x", 0, 1), Axis("y", 0, 1))
    >>> chart.mark(0.5, 0.5, "o", "c-likelihood", "half and half")
    >>> "half and half" in chart.html()
    True
    """

    def __init__(
        self,
        title: str,
        x: Axis,
        y: Axis,
        *,
        width: float = 340,
        height: float = 250,
        left: float = 54,
        bottom: float = 40,
    ) -> None:
        self.title, self.x, self.y = title, x, y
        self.width, self.height = width, height
        self.left, self.top = left, 8.0
        self.right, self.floor = width - 12, height - bottom
        self._parts: list[Html] = []

    def at(self, x: float, y: float) -> Point:
        """Where a point of the plane stands in the drawing."""
        return (
            self.left + self.x.place(x) * (self.right - self.left),
            self.floor - self.y.place(y) * (self.floor - self.top),
        )

    def line(self, points: Sequence[Point], classes: str) -> None:
        """A line through points."""
        if len(points) > 1:
            self._parts.append(tag("path", class_=f"line {classes}", d=self._path(points)))

    def area(self, points: Sequence[Point], classes: str) -> None:
        """A closed area."""
        if len(points) > 2:
            self._parts.append(tag("path", class_=classes, d=f"{self._path(points)}Z"))

    def band(self, at: Sequence[float], means: Sequence[float], stds: Sequence[float],
             classes: str) -> None:  # fmt: skip
        """One standard deviation to either side of a line."""
        upper = [(x, m + s) for x, m, s in zip(at, means, stds, strict=True)]
        lower = [(x, m - s) for x, m, s in zip(at, means, stds, strict=True)]
        self.area([*upper, *reversed(lower)], f"band {classes}")

    def whisker(self, start: Point, end: Point, classes: str) -> None:
        """The bar of an interval, behind its mark."""
        self._parts.append(tag("path", class_=f"bar {classes}", d=self._path([start, end])))

    def mark(
        self, x: float, y: float, marker: str, classes: str, tip: str, *, radius: float = 4
    ) -> None:
        """A point that can be pointed at."""
        d = marker_path(marker, *self.at(x, y), radius)
        self._parts.append(tag("path", class_=f"pt {classes}", d=d, role="img", aria_label=tip))

    def dots(self, points: Sequence[Point], classes: str, *, radius: float = 2) -> None:
        """Many points at once, none of which can be pointed at."""
        # A line of no length with round ends is a dot, and takes a few bytes.
        places = (self.at(*point) for point in points)
        d = "".join(f"M{_short(x)} {_short(y)}h0" for x, y in places)
        if d:
            style = f"stroke-width:{2 * radius:g}"
            self._parts.append(tag("path", class_=f"dots {classes}", d=d, style=style))

    def box(
        self, start: Point, end: Point, classes: str, tip: str, fill: str | None = None
    ) -> None:
        """A bar or a cell that can be pointed at."""
        (x0, y0), (x1, y1) = self.at(*start), self.at(*end)
        self._parts.append(
            tag(
                "rect",
                class_=f"pt {classes}",
                x=_short(min(x0, x1)),
                y=_short(min(y0, y1)),
                width=_short(abs(x1 - x0)),
                height=_short(abs(y1 - y0)),
                style=fill and f"fill:{fill}",
                role="img",
                aria_label=tip,
            )
        )

    def text(
        self, x: float, y: float, words: str, classes: str = "", *, shift: Point = (0, 0)
    ) -> None:
        """Words in the drawing; the tips say the same to those who cannot see."""
        px, py = self.at(x, y)
        self._parts.append(_text(px + shift[0], py + shift[1], words, classes))

    def html(self) -> Html:
        """The drawing."""
        return tag(
            "svg",
            *self._frame(),
            *self._parts,
            class_="chart",
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="group",
            aria_label=self.title,
        )

    def _frame(self) -> list[Html]:
        lines, words = [], []
        for value, label in self.x.marks():
            x, _ = self.at(value, self.y.low)
            lines.append(f"M{_short(x)} {_short(self.top)}V{_short(self.floor)}")
            words.append(_text(x, self.floor + 14, label, "mid"))
        for value, label in self.y.marks():
            _, y = self.at(self.x.low, value)
            lines.append(f"M{_short(self.left)} {_short(y)}H{_short(self.right)}")
            words.append(_text(self.left - 6, y + 3.5, label, "end"))
        middle = (self.left + self.right) / 2
        words.append(_text(middle, self.height - 6, self.x.title, "mid title"))
        if self.y.title:
            at = f"translate(10 {_short((self.top + self.floor) / 2)}) rotate(-90)"
            words.append(tag("text", self.y.title, class_="mid title", transform=at))
        grid = tag("path", class_="grid", d="".join(lines))
        return [grid, tag("g", joined(words), class_="words", aria_hidden="true")]

    def _path(self, points: Sequence[Point]) -> str:
        places = [self.at(x, y) for x, y in points]
        return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in places)


def _text(x: float, y: float, words: str, classes: str) -> Html:
    return tag("text", words, class_=classes or None, x=_short(x), y=_short(y))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
