"""Figures of a run: formats, names, the same bytes each time, hostile labels."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Cli
from made_scores import SUBJECT
from sample_runs import sample_run

from equivox.compare.runs import ValueShares
from equivox.report.drawing import rendered
from equivox.report.figures import draw_heat_map, draw_shares, figure_of, figures_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("plotted") / "run", "biased", "vibe_gender:candidate")


@pytest.mark.parametrize(
    ("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")], ids=["svg", "png", "pdf"]
)
@pytest.mark.parametrize("figure", ["forest:vibe_gender", "shares:vibe_gender:candidate:competency"])
def test_a_figure_in_every_format(
    figure: str, suffix: str, begins: bytes, run: Path, equivox: Cli, tmp_path: Path
) -> None:
    files = [tmp_path / f"{n}.{suffix}" for n in range(2)]
    for file in files:
        assert str(file) in equivox.done("report", run, "--figure", figure, "--output", file)
    assert files[0].read_bytes().startswith(begins)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_figures_of_several_runs(run: Path, equivox: Cli, tmp_path: Path) -> None:
    other = sample_run(tmp_path / "other", "random", "vibe_gender:candidate,vibe_gender:advisory")
    file = tmp_path / "ranks.png"
    equivox.done("report", run, other, "--figure", "ranks:vibe_gender", "--output", file)
    assert file.read_bytes().startswith(b"\x89PNG")
    for wanted, hint in (
        (("--figure", "ranks:vibe_gender"), "a figure of several runs"),
        ((other, "--figure", "ranks:vibe"), "there are ranks:vibe_gender"),
        ((other, "--figure", "correlations:accent"), "there are correlations:gender@audio"),
        ((other, "--figure", "forest:vibe_gender"), "a figure of one run"),
    ):
        assert hint in equivox.refused("report", run, *wanted, "--output", tmp_path / "no.png")


def test_ranks_of_models_that_have_none() -> None:
    from equivox.compare.ranking import Rank
    from equivox.report.figures import draw_ranks

    standings = [
        Rank(**SUBJECT, model="$\\alpha$", rank=1, low=1, high=2, distance=1.0, n_ranked=1),
        Rank(**SUBJECT, model="<b>none</b>", undefined="nothing to compare"),
    ]
    svg = rendered(draw_ranks(standings), "svg").decode()
    text = " ".join(ElementTree.fromstring(svg).itertext())
    assert "$\\alpha$" in text and "<b>none</b>" in text and "—" in text


def test_every_figure_that_is_named_can_be_drawn(equivox: Cli, tmp_path: Path) -> None:
    tasks = "vibe_gender:candidate,genres_standin:ar,badf_two:gender"
    folder = sample_run(tmp_path / "run", "biased", tasks)
    code, out, err = equivox("report", folder, "--figure", "list")
    names = out.splitlines()
    assert code == 0, err
    assert {"forest:vibe_gender", "shares:vibe_gender:candidate:competency"} < set(names)
    assert any(name.startswith("heat:badf_two") for name in names)
    # A family has a forest of each of its measures: GENRES has eight.
    assert [name for name in names if name.startswith("forest:genres_standin")] == [
        "forest:genres_standin", *(f"forest:genres_standin:M{n}" for n in range(2, 9))
    ]  # fmt: skip
    for name in names:
        assert rendered(figure_of([folder], name), "svg").startswith(b"<?xml"), name
    # Associations are counted, and counts have no rank.
    both = [folder, sample_run(tmp_path / "other", "random", tasks)]
    drawn = figures_of(both)
    assert {name for name in drawn if name.startswith("ranks:")} == {"ranks:vibe_gender", "ranks:genres_standin"}
    for name in drawn:
        assert rendered(figure_of(both, name), "svg").startswith(b"<?xml"), name


def test_what_there_is_not_is_one_line(run: Path, equivox: Cli, tmp_path: Path) -> None:
    for figure, output, hint in (
        ("forest:vibe_gendr", "x.svg", "vibe_gender"),
        ("shares:vibe_gender:candidate:competence", "x.svg", "did you mean"),
        ("pie:vibe_gender", "x.svg", "unknown figure"),
        ("forest:vibe_gender", "x.jpg", "must end in"),
    ):
        assert hint in equivox.refused("report", run, "--figure", figure, "--output", tmp_path / output)


def test_hostile_labels_are_text() -> None:
    hostile = "</text><script>alert(1)</script> $\\frac{1}{0}$"
    figure = draw_shares(
        [ValueShares(model="m", task="t", attribute="a", value=hostile, by_group={hostile: 40.0, "b": 60.0})], hostile
    )
    root = ElementTree.fromstring(rendered(figure, "svg"))
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "alert(1)" in "".join(root.itertext())


def test_other_scripts_are_drawn_by_fonts_that_have_them_and_one_line_says_where_none_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from matplotlib import font_manager
    from matplotlib.text import Text

    with_stix = [font for font in font_manager.fontManager.ttflist if font.name in ("DejaVu Sans", "STIXGeneral")]
    charmaps = {
        font.name: font_manager.get_font(font.fname).get_charmap()
        for font in with_stix
        if (font.style, font.weight) == ("normal", 400)
    }
    # Stands for a Chinese character and a font that was installed for it.
    rare = next(chr(code) for code in charmaps["STIXGeneral"] if code > 2**16 and code not in charmaps["DejaVu Sans"])
    monkeypatch.setattr(font_manager.fontManager, "ttflist", with_stix)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])

    def drawn(value: str) -> tuple[bytes, list[str]]:
        shares = ValueShares(model="m", task="t", attribute="a", value=value, by_group={"a": 40.0, "b": 60.0})
        figure = draw_shares([shares], "title")
        png = rendered(figure, "png")
        texts = [one for one in figure.findobj(Text) if isinstance(one, Text) and one.get_text() == value]
        return png, texts[0].get_fontfamily()

    assert drawn("plain")[1] == ["sans-serif"]
    assert drawn(rare)[1] == ["sans-serif", "STIXGeneral"] and not caplog.text
    # What matplotlib remembers of fonts may be older than what is installed.
    gone = font_manager.FontEntry(fname="/nowhere/gone.ttf", name="A Sans", style="normal", weight=400)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [gone, *with_stix])
    assert drawn(rare)[1] == ["sans-serif", "STIXGeneral"] and not caplog.text
    assert drawn("女" + rare)[0].startswith(b"\x89PNG")
    assert caplog.text.count("no font here has (女)") == 1
    shares = ValueShares(model="m", task="t", attribute="a", value="女", by_group={"a": 40.0, "b": 60.0})
    assert "女".encode() in rendered(draw_shares([shares], "title"), "svg")  # any warning is an error in tests
    assert caplog.text.count("no font here has") == 1


def test_a_heat_map_shows_what_is_not_known_as_unknown() -> None:
    rows = [
        {"category": "school", "identity": "a", "count": 0, "surviving_q": 0},
        {"category": "school", "identity": "b", "count": 7, "surviving_q": 2},
        {"category": "<b>home", "identity": "a", "count": None, "surviving_q": None},
        {"category": "<b>home", "identity": "b", "count": 3, "surviving_q": 0},
    ]
    root = ElementTree.fromstring(rendered(draw_heat_map(rows, "title"), "svg"))
    words = [text for text in root.itertext() if text.strip()]
    assert [text.strip() for text in words if "(" in text][:3] == ["0 (0)", "7 (2)", "3 (0)"]
    assert any(text.strip() == "—" for text in words)
    assert any("<b>home" in text for text in words)


def test_associations_of_which_none_is_known_are_dashes() -> None:
    rows = [{"category": "job", "identity": who, "count": None, "surviving_q": None} for who in ("a", "b")]
    root = ElementTree.fromstring(rendered(draw_heat_map(rows), "svg"))
    assert " ".join(root.itertext()).count("—") == 2
