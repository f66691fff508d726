# SPDX-License-Identifier: GPL-2.0-only
"""Pages as a browser shows them: nothing goes wrong, text can be read, and keys are enough."""

import json
import re
import shutil
from pathlib import Path

import pytest
from test_report import (
    ALL,
    LOSS_AXIS,
    RATE_AXIS,
    make_meta,
    make_results,
    make_scenario,
    write,
    write_samples,
)

from lab.show import reports

api = pytest.importorskip("playwright.sync_api", reason="testbed/setup test installs it")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if not CHROMIUM:
    pytest.skip("there is no chromium: testbed/setup test", allow_module_level=True)

PHONE_PX, A4_PX = 360, 718  # of A4 what margins leave
MANY = 5060  # points
DRAWN_MOST = 300  # elements, of a figure of so many points
ENOUGH = 4.5  # WCAG 2.2, 1.4.3
# of each text: how it stands out from what is behind it, and what it is
CONTRASTS = """
() => {
  const parse = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return found.length > 3 ? found : [...found, 1];
  };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3]) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg:not(.plot svg), script, style")) continue;
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), below = behind(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [luminance(over(ink, below)), luminance(below)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.outerHTML.slice(0, 120)]);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def made_run(folder: Path, losses_pct: list[float], seeds: int) -> Path:
    """Return FOLDER with a run of all algorithms, two rates and so many losses and seeds; some of
    its points have samples."""
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": losses_pct}, "rate": RATE_AXIS})
    results = make_results(scenario, seeds=seeds)
    (folder / "points").mkdir(parents=True)
    for result in results:
        if result["seed"] == 1 and result["algorithm"] in ("jtcp", "reno"):
            write_samples(folder, result)
            (folder / "points" / f"{result['point']}.json").write_text("{}")
    write(scenario, results, folder)
    (folder / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in results))
    meta = make_meta(results, source=scenario.source, scenario=scenario.id, title=scenario.title)
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def opened(browser, page: Path, **options):
    """Return the page in a tab of its own, and what the console says."""
    tab, said = browser.new_page(**options), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(page.as_uri())
    return tab, said


LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": PHONE_PX, "height": 700}},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of 1320 points."""
    return made_run(tmp_path_factory.mktemp("runs") / "many", [0, 1, 10], 20)


@pytest.mark.parametrize("look", LOOKS)
def test_a_report_can_be_read(browser, run, look):
    tab, said = opened(browser, run / "report.html", **LOOKS[look])
    tab.locator("#explorer-points .said").get_by_text("1320 of 1320 points").wait_for()
    texts = tab.evaluate(CONTRASTS)
    assert len(texts) > 300 and not said
    assert [what for ratio, what in texts if ratio < ENOUGH] == []
    width = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    tab.close()


def test_thousands_of_points_are_few_elements(browser, tmp_path):
    """So the page is there at once; `make bench-report` says how soon."""
    folder = made_run(tmp_path / "more", [0, 0.1, 1, 3, 10], MANY // 110)
    tab, said = opened(browser, folder / "report.html")
    tab.locator("#explorer-points .said").get_by_text(f"{MANY} of {MANY} points").wait_for()
    assert tab.locator("#explorer-points svg *").count() < DRAWN_MOST and not said
    assert tab.locator("#explorer-points .plot g path").count() == len(ALL)
    tab.close()


def test_algorithms_are_told_apart_without_their_colours(browser, run):
    tab, said = opened(browser, run / "report.html")
    marks = tab.locator("#explorer-legend path").all()
    looks = {(mark.get_attribute("d"), mark.get_attribute("fill") == "none") for mark in marks}
    assert len(looks) == len(marks) == len(ALL) and not said
    assert len({hollow for _, hollow in looks}) == 2
    tab.close()


def test_a_report_can_be_printed(browser, run):
    """All that is folded is there, nothing is cut off at the side, and what needs a pointer is
    not."""
    tab, said = opened(browser, run / "report.html", viewport={"width": A4_PX, "height": 990})
    tab.locator("#explorer-points .said").get_by_text("1320 of 1320 points").wait_for()
    tab.emulate_media(media="print")
    width = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    cut = "es => es.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerHTML)"
    assert tab.locator(".scroll, figure").evaluate_all(cut) == []
    folded = tab.locator("details:not([open]) table").all()
    assert folded and all(table.is_visible() for table in folded)
    assert not tab.locator("#explorer-zoom-in").is_visible()
    sheets = tab.pdf(format="A4")
    assert sheets.startswith(b"%PDF-") and 5 < sheets.count(b"/Type /Page\n") < 60 and not said
    tab.close()


def test_keys_are_enough(browser, run):
    tab, said = opened(browser, run / "report.html")
    status = tab.locator("#explorer-points .said")
    tab.locator("#explorer-place").focus()
    tab.keyboard.press("Tab")
    tab.keyboard.press("ArrowRight")
    assert "seed" in status.inner_text() and "Goodput (Mb/s)" in status.inner_text()
    tab.keyboard.press("Enter")
    assert tab.locator("#explorer-one h3").inner_text() in status.inner_text()
    tab.keyboard.press("Escape")
    assert status.inner_text() == "1320 of 1320 points"

    first = tab.locator("#explorer-legend button").first
    first.focus()
    tab.keyboard.press("Space")
    assert first.get_attribute("aria-pressed") == "false"
    assert status.inner_text() == "1200 of 1320 points"

    delays = tab.locator("#explorer-delays")
    delays.locator(".plot").focus()
    tab.keyboard.press("ArrowRight")
    assert "reno 0 %" in delays.locator(".said").inner_text()

    times = tab.locator("#explorer-times")
    whole = times.locator(".said").inner_text()
    assert whole.startswith("0.1 to 200 s") or whole.startswith("0 to 200 s")
    assert re.search(r"\d+ congestion, \d+ random", whole)
    times.locator(".plot").focus()
    tab.keyboard.press("+")
    assert times.locator(".said").inner_text().startswith("50 to 150 s")
    tab.keyboard.press("ArrowRight")
    assert times.locator(".said").inner_text().startswith("70 to 170 s")
    tab.keyboard.press("0")
    assert times.locator(".said").inner_text() == whole
    assert not said
    tab.close()


def test_a_point_leads_to_its_raw_data(browser, run):
    """Whatever the pointer is at says its values; the links are to files that are there."""
    tab, said = opened(browser, run / "report.html")
    times = tab.locator("#explorer-times .plot")
    times.hover(position={"x": 300, "y": 100})
    assert " s: " in tab.locator("#explorer-times .said").inner_text()
    tab.mouse.down()
    tab.mouse.move(times.bounding_box()["x"] + 500, times.bounding_box()["y"] + 100)
    tab.mouse.up()
    low, _, high = tab.locator("#explorer-times .said").inner_text().split()[:3]
    assert 0 < float(low) < float(high) < 200
    plot = tab.locator("#explorer-points .plot")
    for name in ("reno", "jtcp"):  # all others are switched off, and seeds but the first ones stay
        assert name in tab.locator("#explorer-legend").inner_text()
    plot.focus()
    said_of = tab.locator("#explorer-points .said")
    while (
        not said_of.inner_text().startswith(("jtcp", "reno"))
        or "seed 1:" not in said_of.inner_text()
    ):
        tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    links = [a.get_attribute("href") for a in tab.locator("#explorer-one a").all()]
    assert len(links) == 3 and all((run / link).is_file() for link in links)
    assert not said
    tab.close()


def test_runs_are_found_on_one_page(browser, run):
    shutil.copytree(run, run.parent / "other run", dirs_exist_ok=True)
    page = reports.write_index(run.parent, reports.runs_below(run.parent))
    tab, said = opened(browser, page, viewport={"width": PHONE_PX, "height": 700})
    assert tab.locator(".run").count() == 2
    assert [what for ratio, what in tab.evaluate(CONTRASTS) if ratio < ENOUGH] == []
    tab.locator("#find").fill("other")
    assert tab.locator(".run:visible").count() == 1
    tab.locator(".run:visible a").click()
    tab.locator("#explorer-points .said").wait_for()
    assert tab.url.endswith("/other%20run/report.html") and not said
    tab.close()
