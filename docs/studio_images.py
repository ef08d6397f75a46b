"""Take the two screenshots of the annotation studio that the README shows.

    python docs/studio_images.py

Needs Chromium and the tools of the tests; the answers on the pictures are simulated.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "studio" / "tests"))

from browser import chromium, live_studio, make_project, open_link, settled
from pairlearn_studio import Answer, Project, Store

IMAGES = Path(__file__).parent / "images"
NAMES = ("Ann Weber", "Bo Lind", "Chen Yu")


def simulate(project: Project, counts: tuple[int, ...], seed: int = 3) -> None:
    """Three people of different care judge pumps by their own posteriors."""
    rng = np.random.default_rng(seed)
    with Store.open(project) as store:
        posterior = {item: _will_fail(store.items.view(item).rows) for item in store.items.ids}
        for who, count, error in zip(store.annotators(), counts, (0.03, 0.06, 0.1), strict=True):
            for number in range(count):
                task = store.next_task(who.id)
                assert task is not None
                r, r_prime = (
                    float(np.clip(posterior[item] + rng.normal(0, error), 0, 1))
                    for item in (task.left, task.right)
                )
                s = r * r_prime + (1 - r) * (1 - r_prime)
                if who.name == "Chen Yu" and rng.random() < 0.3:
                    s = float(np.clip(s + rng.normal(0, 0.25), 0, 1))
                answer = Answer(
                    similarity=s,
                    difference=r_prime - r,
                    note="The oil was changed the day before." if number == 11 else "",
                    seconds=float(rng.gamma(6, 1 + error * 15)),
                    key=f"form-{number:06}",
                )
                store.submit(who.id, task.pair, answer).result()


def _will_fail(rows: tuple[tuple[str, str], ...]) -> float:
    """Posterior from vibration and oil temperature, which every annotator sees."""
    columns = dict(rows)
    vibration, oil = float(columns["vibration mm/s"]), float(columns["oil temperature °C"])
    return float(1 / (1 + np.exp(-(1.8 * (vibration - 2.7) + 0.12 * (oil - 71)))))


def main() -> None:
    """Write docs/images/studio-annotate.png and studio-supervisor.png."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        project, tokens, boss = make_project(
            Path(folder, "p"), pairs=200, names=NAMES, overlap=2, answers="graded",
            question_difference="Which pump is more likely to fail?",
        )  # fmt: skip
        simulate(project, counts=(110, 96, 104))
        size = {"width": 1180, "height": 808}
        with (
            live_studio(Path(folder, "p")) as studio,
            browser.new_context(viewport=size, device_scale_factor=1.5) as context,
        ):
            page = context.new_page()
            open_link(page, studio, tokens["Ann Weber"])
            settled(page)
            page.screenshot(path=IMAGES / "studio-annotate.png")
            page.goto(f"{studio.url}/s/{boss}")
            page.wait_for_url("**/supervisor")
            page.wait_for_selector(".outlook", timeout=300_000)  # the last part of the forecast
            page.mouse.move(0, 0)
            page.screenshot(
                path=IMAGES / "studio-supervisor.png",
                full_page=True,
                clip={"x": 0, "y": 0, "width": 1180, "height": 960},
            )


if __name__ == "__main__":
    main()
