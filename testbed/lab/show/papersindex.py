# SPDX-License-Identifier: GPL-2.0-only
"""The papers' claims in one table: each with the paper's figure, ours, what came of it, and why
where it does not hold. Of runs, or of the pages that docs/results has of them."""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from lab.ask import scenario
from lab.ask.parts import Claim, Scenario
from lab.judge import claims
from lab.judge.claims import NOT_MEASURED
from lab.run import runs
from lab.run.store import write_atomically
from lab.show import words
from lab.show.listing import point_count

# what a scenario's `paper` begins with -> the paper
PAPERS = {
    "TCP Veno": "TCP Veno (Fu, Liew, 2003)",
    "JSCTP": "JSCTP (Chen et al., 2011), and JTCP by it",
    "Ye, Saadawi, Lee": "SCTP's small windows (Ye, Saadawi, Lee)",
    "UDDJ-TFRC": "UDDJ-TFRC (Kumar, Sharma)",
    "WCCP": "WCCP (Zhai, Chen, Fang, 2007)",
}
NAME = "papers.md"
FIGURE_WIDTH_PX = 240
HEAD = ("scenario", "claim", "the paper's figure", "measured", "needed", "verdict", "why not")
NO_PAGE = "no run of it is published"
NOT_ASKED = "the published run did not ask it"
NOTE = """Claims without a paper's figure are our own, about its experiment. What was measured is
of the scenarios' pages, reasons are of the scenarios' files (`why_not`); `testbed/veno-lab papers
--index` puts them together. Beside each scenario: its figure, and how much of it the page is of."""
# a verdict -> how one and how several are told
VERDICTS = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "undecided": ("is undecided", "are undecided"),
    NOT_MEASURED: ("is not measured", "are not measured"),
}


@dataclass(frozen=True)
class Row:
    """One claim of a paper, and what came of it."""

    paper: str
    cells: tuple[str, ...]  # as HEAD

    @property
    def verdict(self) -> str:
        return self.cells[HEAD.index("verdict")]


@dataclass(frozen=True)
class Published:
    """A claim as its page has it."""

    text: str
    subject: str
    measured: str
    needed: str
    verdict: str


def experiments() -> dict[str, Scenario]:
    """Return the scenarios that are of one of the papers, the papers in their order."""
    loaded = [scenario.load(path.stem) for path in scenario.list_scenarios()]
    return {one.id: one for start in PAPERS for one in loaded if one.paper.startswith(start)}


def paper_of(one: Scenario) -> str:
    return next(text for start, text in PAPERS.items() if one.paper.startswith(start))


def rows_of_runs(found: list[tuple[Scenario, Path]]) -> list[Row]:
    """Return the claims of the runs FOUND, judged."""
    judged = []
    for one, folder in found:
        seeds = runs.read_meta(folder).get("seeds", ())
        for verdict in claims.judge(one, runs.read_results(folder), seeds):
            row = words.claim_row(verdict)
            told = (row[name] for name in ("measured", "bound", "verdict"))
            judged.append(_row(one, one.id, verdict.claim, *told))
    return judged


def rows_of_pages(docs: Path) -> list[Row]:
    """Return the claims of all experiments of the papers as the pages in DOCS have them."""
    found = []
    for one in experiments().values():
        page = docs / f"{one.id}.md"
        there = read_claims(page.read_text()) if page.exists() else []
        link = f"[{one.id}](./{page.name})" if page.exists() else one.id
        of_claims = _assign(one.claims, there)
        for claim in one.claims:
            first = claim is one.claims[0] and page.exists()
            name = f"{figure(page)}{link}: {_extent(one, page.read_text())}" if first else link
            if published := of_claims.get(claim.id):
                parts = (published.measured, published.needed, published.verdict)
                found.append(_row(one, name, claim, *parts, why=NOT_ASKED))
            else:
                why = NOT_ASKED if page.exists() else NO_PAGE
                found.append(_row(one, name, claim, "-", _needed(claim), NOT_MEASURED, why=why))
    return found


def figure(page: Path) -> str:
    """Return the small figure of a PAGE, or nothing where it has none."""
    path = page.with_suffix(".svg")
    img = f'<img src="./{path.name}" width="{FIGURE_WIDTH_PX}" alt="{page.stem}"> '
    return img if path.exists() else ""


def _extent(one: Scenario, page: str) -> str:
    """Return how much of ONE the text of its PAGE is of: seeds, seconds, and points if not all."""
    length_s = re.search(r"--set run\.duration_s=(\d+)", page)
    seeds, points = re.search(r"(\d+) seeds?, (\d+) points", page).groups()
    told = f"{seeds} seeds of {length_s.group(1) if length_s else f'{one.run.duration_s:g}'} s"
    whole = point_count(one)
    return told if int(points) == whole else f"{told}, {points} of {whole} points"


def read_claims(page: str) -> list[Published]:
    """Return the claims in the text of a page that `veno-lab publish` wrote."""
    lines = page.partition("\n## Claims\n")[2].strip().splitlines()[2:]
    found = []
    for line in takewhile(str.strip, lines):  # reasons may follow
        told, _, measured, needed, verdict = line.strip("|").split(" | ")[:5]
        text, subject = re.fullmatch(r"(.*) \(`(.*)`\)", told.strip()).groups()
        found.append(Published(text, subject, measured.strip(), needed, verdict.strip()))
    return found


def _assign(wanted: tuple[Claim, ...], there: list[Published]) -> dict[str, Published]:
    """Return for the id of each of the claims WANTED the one of a page THERE, if it has it: by its
    words and subject, else by what it is about and needs, if there is one such claim alone."""
    kinds = {claim.id: _kind(_subject(claim), _needed(claim)) for claim in wanted}
    found = {}
    for claim in wanted:
        same = [p for p in there if (p.text, p.subject) == (claim.text, _subject(claim))]
        alike = [p for p in there if _kind(p.subject, p.needed) == kinds[claim.id]]
        alone = list(kinds.values()).count(kinds[claim.id]) == 1 and len(alike) == 1
        if same or alone:
            found[claim.id] = (same or alike)[0]
    return found


def _kind(subject: str, needed: str) -> tuple[str, str]:
    """Return what a claim is about, wherever: a scenario's axes may have come after its page."""
    return re.sub(r" at [^/]*", "", subject), needed


def _subject(claim: Claim) -> str:
    return claims.Verdict(claim, None, NOT_MEASURED).subject


def _needed(claim: Claim) -> str:
    return words.claim_row(claims.Verdict(claim, None, NOT_MEASURED))["bound"]


def _row(
    one: Scenario, name: str, claim: Claim, measured: str, needed: str, verdict: str, why: str = ""
) -> Row:
    reason = "" if verdict == "holds" else claim.why_not or why * (verdict == NOT_MEASURED)
    return Row(paper_of(one), (name, claim.text, claim.paper, measured, needed, verdict, reason))


def page(found: list[Row], note: str = "") -> str:
    """Return the table of claims as Markdown, a part for each paper."""
    parts = ["# The papers' claims", score(found), *([note] if note else [])]
    for paper in dict.fromkeys(row.paper for row in found):
        of_paper = [row for row in found if row.paper == paper]
        lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
        lines += [f"| {' | '.join(row.cells)} |" for row in of_paper]
        parts += [f"## {paper}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def score(found: list[Row]) -> str:
    verdicts = [row.verdict for row in found]
    counts = {one: verdicts.count(one) for one in VERDICTS if one in verdicts}
    told = ", ".join(f"{n} {VERDICTS[one][n > 1]}" for one, n in counts.items())
    return f"{len(found)} claims: {told or 'none'}."


def write(docs: Path) -> Path:
    """Write the table of the pages in the folder DOCS; return where it is."""
    path = docs / NAME
    write_atomically(path, page(rows_of_pages(docs), NOTE), "choose another DOCS")
    return path
