"""The visual language: colours that stay apart, for every reader and on every page."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from pairlearn.style import (
    DARK_PAGE,
    FAMILIES,
    STYLE,
    label_axes,
    method_style,
)

Floats = NDArray[np.float64]

# Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour: str) -> Floats:
    channels = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: Floats) -> Floats:
    """CIE L*a*b* of a linear colour, white point D65."""
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(colour: str, other: str) -> float:
    light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (colour, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def test_reference_colours() -> None:
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("page", ["color", "dark_color"])
def test_every_two_methods_stay_apart(sight: str, page: str) -> None:
    seen = {
        family: lab(SIGHT[sight] @ linear(getattr(method_style(family), page)))
        for family in FAMILIES
    }
    for family, other in combinations(FAMILIES, 2):
        assert np.linalg.norm(seen[family] - seen[other]) > 19.5, (family, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_lines_show_on_their_page(family: str) -> None:
    style = method_style(family)
    assert contrast(style.color, "#ffffff") >= 3
    assert contrast(style.dark_color, DARK_PAGE) >= 3


def test_markers_tell_families_and_dash_and_fill_corrections() -> None:
    assert len({method_style(family).marker for family in FAMILIES}) == len(FAMILIES) == 8
    for family in ("sconf", "confdiff", "sconfconfdiff", "nonnegative", "likelihood"):
        styles = [method_style(f"{family}-{c}") for c in ("none", "relu", "abs")]
        assert len({style.color for style in styles}) == 1
        assert len({style.dash for style in styles}) == len({s.fill for s in styles}) == 3


def test_names_with_numbers_unknown_ones_and_uncorrected_ones() -> None:
    for name, like in (
        ("convex-0.2-abs", "convex-0.8-abs"),
        ("sconfconfdiff-0.3-abs", "sconfconfdiff-abs"),
        ("sconf", "sconf-none"),
        ("likelihood-slope=0.5", "likelihood-none"),
    ):
        assert method_style(name) == method_style(like)
    assert method_style("mine-abs").marker == "x"
    assert method_style("supervised").dash == "solid" and method_style("annotator").fill == 1


def test_matplotlib_knows_the_settings_and_draws_the_styles() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        ax = Figure().subplots()
        for name in ("sconf-none", "sconf-relu", "sconf-abs"):
            ax.plot([0, 1], [0, 1], **method_style(name).line())
    assert [line.get_linestyle() for line in ax.get_lines()] == [":", "--", "-"]
    label_axes(ax, "time (s)", "γ")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "γ")
