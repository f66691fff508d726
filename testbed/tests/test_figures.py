# SPDX-License-Identifier: GPL-2.0-only
"""Every measured figure of README.md and docs/*.md stands in docs/results.

A figure is a number of two significant digits or more, or one with its interval: 0.97 [0.95, 0.99].
It is looked up part by part; a part is what stands below a heading, or from a lead in bold on. It
stands

- on a page of docs/results that the part links to (for a lead: that the text before the first lead
  links to), there with as many digits or more,
- or in another part of the docs that the part links to, which is held against the results itself,
- or in the part's entry in docs/results/measured.md: behind the commit that brought it, or behind
  the page or part that it is from. The entry has no figure that the part does not have, so neither
  can change without the other.

What a part's own commands set is no figure. Parts that measure nothing are in DESCRIPTIONS.
"""

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import pytest

from lab.run.build import PROJECT

DOCS = PROJECT / "docs"
LEDGER = "measured.md"
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md")))

# pages, and parts of pages, that say what is and not what was measured: equations, constants,
# formats, keys, what machines must have
DESCRIPTIONS = """
README.md: Three doors
README.md: Papers
docs/bisect.md: A commit, a kernel or a module
docs/bisect.md: Which commit of a kernel made it worse?
docs/bisect.md: Which commit of a module made it worse?
docs/cluster.md: What a worker needs
docs/cluster.md: When machines fail
docs/contributing.md
docs/install.md: Measure
docs/install.md: SCTP
docs/install.md: When it does not work
docs/jtcp.md: Limits
docs/jtcp.md: jtcp
docs/lab.md: Limits
docs/lab.md: One command for all of it
docs/lab.md: The lab kernel
docs/lab.md: What makes runs repeatable
docs/medium.md: An access point
docs/medium.md: How it works
docs/medium.md: In a Mininet script
docs/medium.md: Model
docs/medium.md: What waits where
docs/rollout.md: Before you roll this out
docs/scenarios.md
docs/scorecard.md: The scorecard: RFC 9743, answered by measurement
docs/scorecard.md: What it does not tell
docs/sctp-internals.md: For netdev
docs/sctp-internals.md: Kernels
docs/sctp-internals.md: SCTP, inside
docs/sctp-internals.md: TIMESTAMP chunk
docs/sctp.md: SCTP
docs/sctp.md: Settings
docs/sctp.md: Who it talks to
docs/tabe.md: tabe
docs/tfrc.md: The library
docs/tfrc.md: UDDJ, as resolved
docs/traces.md: Files
docs/tutorial.md
docs/usrsctp.md: What usrsctp would need
docs/values.md
docs/veno03.md: veno03
docs/veno_jitter.md: Four trials
docs/veno_jitter.md: States
docs/veno_jitter.md: The receiver's clock
docs/veno_jitter.md: What a loss means
docs/veno_jitter.md: veno_jitter
docs/wccp.md: ACKs that wait
docs/wccp.md: Shares
docs/wccp.md: What a lie can do
docs/wccp.md: Where the header goes, and how
docs/wire-formats.md
"""

Figure = tuple[str, ...]  # a number as it is written, or more: (a median and) its interval

NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?!\d)|\d+(?:\.\d+)?"
FIGURE = re.compile(
    rf"(?<![\w.:/#^&-])(?:({NUMBER}) ?)?\[({NUMBER}), ({NUMBER})\]"
    rf"|(?<![\w.:/#^&-])({NUMBER})(?![\w/]|[.:-]\d)"
)
VERSION = r"[67]\.\d+(?:\.\d+)?"
NAMES = re.compile(  # numbers that name something
    rf"\b(?:Linux|Debian|Debian's|Debian's own|kernel|on|of|line|for) {VERSION}"
    rf"(?:(?:,| and| to| or|, and) {VERSION})*"
    r"|\b(?:RFC|Figs?\.?|seeds?|[Ss]ection|ns-3|patch|usrsctp|iperf3|MCS) \d[\d.()]*"
    r"(?:(?:,| and| to) \d[\d.()]*)*"
    r"|\b(?:Debian|gcc|clang|Python) \d+(?:\.\d+)?|\b802\.11\b|\b6\.12\b|\b95 %|\b(?:19|20)\d\d\b"
)

# what a paragraph of the ledger begins with: `commit`: or From [page](./page.md): or From `part`:
SOURCE = re.compile(r"(?:`([0-9a-f]{12})`|From (?:\[[\w-]+\]\(\./([\w-]+\.md)\)|`([^`]+)`)): (.*)")
QUOTIENT = re.compile(r"([\d.]+) / ([\d.]+) = ([\d.]+)")


@dataclass
class Part:
    """What stands below a heading of PAGE: before the first LEAD, or from this one on."""

    page: str
    heading: str = ""
    lead: str = ""
    prose: str = ""
    code: str = ""
    before: str = ""  # of a lead: what is between the heading and the first lead

    @property
    def name(self) -> str:
        return ": ".join(text for text in (self.page, self.heading, self.lead) if text)

    @property
    def figures(self) -> list[Figure]:
        """All figures that are no part of a command."""
        text = re.sub(r"\]\([^)]*\)", "]", self.prose.replace("*", ""))
        text = re.sub(r"(\d\.\d+)-(?=\d+\.\d)", r"\1 to ", text)
        set_here = {number for numbers in figures(self.code) for number in numbers}
        found = figures(NAMES.sub("", re.sub(r"\s+", " ", text)))
        return [one for one in found if len(one) > 1 or one[0] not in set_here]


def parts(page: str, text: str) -> list[Part]:
    """Return the parts of TEXT, which is that of PAGE."""
    found, fenced, coded, blank = [Part(page)], False, False, True
    for line in text.splitlines(keepends=True):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        coded = not fence and line.startswith("    ") and (blank or coded)
        title = not fenced and re.match(r"#+ (.*)", line)
        lead = not fenced and re.match(r"(?:- )?\*\*(.+?)[.:]?\*\*", line)
        if title:
            found.append(Part(page, title[1]))
        elif lead:
            last = found[-1]
            before = last.before if last.lead else last.prose
            found.append(Part(page, last.heading, lead[1], before=before))
        if fenced or coded:
            found[-1].code += line
        else:
            found[-1].prose += line
        blank = not line.strip()
    for part in found:
        part.code += "\n".join(re.findall(r"`([^`]*)`", part.prose))
        part.prose = re.sub(r"`[^`]*`", "`", part.prose)
    return found


def figures(text: str) -> list[Figure]:
    """Return the figures in TEXT."""
    found = []
    for match in FIGURE.finditer(text):
        numbers = tuple(re.sub("[ ,]", "", number) for number in match.groups() if number)
        if len(numbers) > 1 or significant_digits(*numbers) > 1:
            found.append(numbers)
    return found


def significant_digits(number: str) -> int:
    """Count them; zeros at the end of a whole number are none."""
    return len((number if "." in number else number.rstrip("0")).replace(".", "").lstrip("0"))


def rounds_to(exact: str, written: str) -> bool:
    """Say whether EXACT is the number WRITTEN, or is that number with more digits."""
    if exact == written or "." not in exact:
        return exact == written
    half = Decimal(5).scaleb(Decimal(written).as_tuple().exponent - 1)
    return abs(Decimal(exact) - Decimal(written)) <= half


def stands(figure: Figure, known: set[Figure]) -> bool:
    """Say whether FIGURE is one of KNOWN, or one of these with fewer digits."""
    return figure in known or any(
        len(one) == len(figure) and all(map(rounds_to, one, figure)) for one in known
    )


def published(text: str) -> set[Figure]:
    """Return the figures of a page of results, TEXT, and each median without its interval, too."""
    found = figures(text.replace("*", "").replace("`", ""))
    return {*found, *((one[0],) for one in found if len(one) == 3)}


def left_over(text: str, known: set[Figure]) -> list[Figure]:
    return [one for (part,) in [parts("", text)] for one in part.figures if not stands(one, known)]


@dataclass
class Said:
    """A paragraph of the ledger: FIGURES of a commit (no source), or from a PAGE or another PART;
    of these, also QUOTIENTS: one number there, another, and what is told."""

    page: str
    part: str
    figures: Counter[Figure]
    quotients: list[tuple[str, str, str]]

    def not_there(self) -> list[Figure | tuple[str, str, str]]:
        """Return what the source does not have, and quotients that are other numbers."""
        if not self.page and not self.part:
            return [*self.quotients]
        known = of_page(self.page) if self.page else of_part(self.part)
        wrong = [one for one in self.figures if not stands(one, known)]
        for one, other, quotient in self.quotients:
            both = stands((one,), known) and stands((other,), known)
            if not both or not rounds_to(f"{float(one) / float(other):.9f}", quotient):
                wrong.append((one, other, quotient))
        return wrong


def ledger(text: str) -> dict[str, list[Said]]:
    """Return what TEXT, that of measured.md, says of each part."""
    found = {}
    for entry in re.split(r"^## ", text, flags=re.M)[1:]:
        name, body = entry.split("\n", 1)
        said = [SOURCE.match(" ".join(paragraph.split())) for paragraph in body.split("\n\n")]
        found[name] = [
            Said(page, part, Counter(figures(QUOTIENT.sub("", told))), QUOTIENT.findall(told))
            for _, page, part, told in (match.groups() for match in said if match)
        ]
    return found


def listed(said: list[Said]) -> Counter[Figure]:
    """Return all figures that are SAID."""
    total = Counter()
    for one in said:
        total += one.figures + Counter((quotient,) for _, _, quotient in one.quotients)
    return total


def of_part(name: str) -> set[Figure]:
    (part,) = [part for part in of_docs(name.split(":")[0]) if part.name == name]
    return {*part.figures, *((one[0],) for one in part.figures if len(one) == 3)}


@cache
def of_page(name: str) -> set[Figure]:
    return published((DOCS / "results" / name).read_text())


@cache
def of_docs(page: str) -> tuple[Part, ...]:
    return tuple(parts(page, (PROJECT / page).read_text()))


def linked(part: Part) -> set[Figure]:
    """Return the figures of all that PART links to: pages of results, and other parts."""
    known = on_pages(part)
    for label, path, anchor in re.findall(
        r"\[([^\]]*)\]\(([\w./-]*\.md)?#([\w-]+)\)", part.before + part.prose
    ):
        page = f"docs/{path.removeprefix('docs/')}" if path else part.page
        below = [other for other in of_docs(page) if slug(other.heading) == anchor]
        meant = [other for other in below if other.lead and label.lower() in other.lead.lower()]
        for other in meant or below:
            held = {*on_pages(other), *listed(entries().get(other.name, []))}
            known |= {one for one in other.figures if stands(one, held)}
    return known | {(one[0],) for one in known if len(one) == 3}


def on_pages(part: Part) -> set[Figure]:
    names = set(re.findall(r"results/([\w-]+\.md)", part.before + part.prose))
    return set().union(*(of_page(name) for name in names - {"README.md", LEDGER}))


@cache
def entries() -> dict[str, list[Said]]:
    return ledger((DOCS / "results" / LEDGER).read_text())


def slug(heading: str) -> str:
    """Return the anchor that HEADING has."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def described(part: Part) -> bool:
    return any(part.name == one or part.name.startswith(f"{one}:") for one in NOT_MEASURED)


NOT_MEASURED = frozenset(DESCRIPTIONS.strip().splitlines())
MEASURED = [p for page in PAGES for p in of_docs(page) if p.figures and not described(p)]


@pytest.mark.parametrize("part", MEASURED, ids=lambda part: part.name)
def test_every_figure_of_the_docs_is_found_in_the_results(part):
    said = entries().get(part.name, [])
    assert [wrong for one in said for wrong in one.not_there()] == [], "are not where they are from"
    told, entry, known = Counter(part.figures), listed(said), linked(part)
    assert entry - told == Counter(), f"{LEDGER} has them, and the docs not, or not so often"
    missing = [one for one in (told - entry).elements() if not stands(one, known)]
    assert missing == [], f"neither on a page that is linked to nor in {LEDGER}"


def test_entries_and_descriptions_are_of_what_there_is():
    names = {part.name for page in PAGES for part in of_docs(page)}
    assert entries().keys() <= names
    starts = {name[:end] for name in names for end in [len(name), *colons(name)]}
    assert starts >= NOT_MEASURED


def colons(text: str) -> list[int]:
    return [match.start() for match in re.finditer(":", text)]


def test_a_figure_is_a_number_of_two_digits_or_one_with_its_interval():
    text = (
        "1.06 [1.05, 1.07] of 48 700 on Linux 6.12, 5 % and 40 ms: RFC 9743 has 15; **0.85**, 0.3"
    )
    (part,) = parts("a.md", text + " `--seeds 15`\n")
    assert part.figures == [("1.06", "1.05", "1.07"), ("48700",), ("0.85",)]


def test_a_figure_that_was_altered_is_found():
    """A median, an interval, a number that is rounded, and one that only the entry has."""
    page = "| reno | 0.484 [0.473, 0.495] | 17 [12, 20] |"
    known = published(page)
    told = "Reno carries 0.48 [0.47, 0.50], 17 dropped, and 0.91 once."
    assert left_over(told, known) == [("0.91",)]
    assert left_over(told.replace("17", "18"), known) == [("18",), ("0.91",)]
    assert left_over(told.replace("0.47", "0.46"), known)[0] == ("0.48", "0.46", "0.50")
    assert left_over(told.replace("0.48 [0.47, 0.50]", "0.49"), known)[0] == ("0.49",)
    assert left_over(told.replace("0.91", "0.92"), known) == [("0.92",)]


def test_an_entry_has_figures_of_commits_and_of_pages_and_what_is_worked_out_of_these():
    entry = (
        "# A\n\n## a.md: B\n\n    run --seeds 17\n\nTen of 25 seeds.\n\n`0123456789ab`: 0.91;\n"
        "3.6\n\nFrom [demo](./demo.md): 1.49 [1.47, 1.50]; 1.49 / 1.53 = 0.97\n"
    )
    (said,) = ledger(entry).values()
    once = [("0.91",), ("3.6",), ("1.49", "1.47", "1.50"), ("0.97",)]
    assert listed(said) == Counter(once)
    assert [wrong for one in said for wrong in one.not_there()] == []
    for right, wrong in (("0.97", "0.98"), ("1.49 /", "1.505 /"), ("1.47", "1.46")):
        (said,) = ledger(entry.replace(right, wrong)).values()
        assert len([wrong for one in said for wrong in one.not_there()]) == 1


def test_hardly_any_figure_of_the_docs_could_change_unnoticed():
    """Each in turn one more in its last digit: on a long page that number may stand, too."""
    noticed, tried = 0, 0
    for part in MEASURED:
        told, entry, known = part.figures, listed(entries().get(part.name, [])), linked(part)
        for index, figure in enumerate(told):
            last = Decimal(figure[0])
            more = str(last + Decimal(1).scaleb(last.as_tuple().exponent))
            changed = Counter([*told[:index], (more, *figure[1:]), *told[index + 1 :]])
            new = [one for one in (changed - entry) if not stands(one, known)]
            noticed += bool(entry - changed or new)
            tried += 1
    assert noticed / tried > 0.98
