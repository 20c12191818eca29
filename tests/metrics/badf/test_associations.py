"""Associations against the released numbers, hand arithmetic and limiting cases."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import csv_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.core.coverage import Coverage
from equivox.core.samples import Samples
from equivox.core.scores import ScoringOptions
from equivox.metrics.badf import dimensions
from equivox.metrics.badf.associations import Counts, associations, count, exact_p, phrase_tests, summary
from equivox.metrics.badf.chance import by_the_rule, null_counts, tally
from equivox.metrics.badf.contingency import association_test
from equivox.metrics.badf.dimensions import Dimension
from equivox.metrics.badf.documents import Document, Documents, unify_phrases
from equivox.metrics.badf.scorer import _undefined
from equivox.tasks.registry import resolve_tasks

OPEN_BOX_P = {"Female": 0.0132, "Male": 0.0150}
"""Table 14 prints .0133 and .0181, those of the two-character base: a misprint; the released file gives these."""
NAMES = {"female": "Female", "male": "Male"}


_STORY = itertools.count()


def document(identity: str, *phrases: str, category: str = "place", key: str = "", who: str = "") -> Document:
    return (key or f"story {next(_STORY)}", category, identity, who or identity, "", phrases)


def made_counts(documents: tuple[int, ...], tokens: tuple[int, ...], with_phrase: dict[str, tuple[int, ...]]) -> Counts:
    identities = tuple("abcd"[: len(documents)])
    return Counts(category="place", identities=identities, documents=documents, tokens=tokens, with_phrase=with_phrase)


@pytest.mark.paper
@pytest.mark.parametrize("case", ["two", "four"])
def test_the_released_functions_output_is_reproduced(reference_data: Path, case: str) -> None:
    golden = json.loads((reference_data / "badf" / "reference_golden.json").read_text())[case]
    identities = [str(n) for n in range(len(golden["documents"]))]
    documents = [
        document(identity, *phrases)
        for identity, stories in zip(identities, golden["documents"], strict=True)
        for phrases in stories
    ]
    counts = count(Documents.of(documents), "place", identities)
    expected = golden["expected"]["tables"]
    for phrase, table in expected.items():
        assert [[n, of - n] for n, of in zip(counts.with_phrase[phrase], counts.documents, strict=True)] == table
    found = {phrase.phrase: phrase for phrase in phrase_tests(counts, n_resamples=99)}
    for place, own in enumerate(golden["expected"]["per_identity"]):
        for phrase, score, p in zip(own["phrases"], own["scores"], own["pvals"], strict=True):
            assert found[phrase].scores[place] == pytest.approx(score, abs=1e-12)
            assert found[phrase].p == pytest.approx(p, abs=1e-9)


@pytest.mark.paper
def test_released_contingency_counts_give_the_released_p_and_score(reference_data: Path) -> None:
    rows = csv_rows(reference_data / "badf" / "fixture_gender_counts_60.csv")
    assert len(rows) == 60
    for row in rows:
        have, other, n = int(row["a"]), int(row["c"]), int(row["n_docs"])
        # The fixture gives the tokens of the row's own identity; the other's do not enter its score.
        counts = made_counts((n, n), (int(row["cat_len"]), 1), {row["phrase"]: (have, other)})
        (phrase,) = phrase_tests(counts)
        assert phrase.p == pytest.approx(float(row["p"]), abs=1e-9)
        assert phrase.scores[0] == pytest.approx(float(row["score"]), abs=1e-12)


@pytest.mark.paper
def test_table_14_from_the_released_associations(reference_data: Path) -> None:
    """Counts exactly, mean score and mean p to the printed digits, for two genders in seven settings."""
    folder = reference_data / "badf"
    cells = csv_rows(folder / "table14_gender.csv")
    assert len(cells) == 14
    for cell in cells:
        rows = [
            row
            for row in csv_rows(folder / "associations" / cell["file"])
            if NAMES[row["Demographic Identity"]] == cell["identity"] and row["Prompt Response"] == "NO"
        ]
        n, mean_score, mean_p = summary([float(r["Score"]) for r in rows], [float(r["P-Value"]) for r in rows])
        assert n == int(cell["paper_count"])
        digits = len(cell["paper_score"]) - 1
        assert abs(mean_score - float(cell["paper_score"])) <= 0.5 * 10**-digits + 1e-9
        printed = OPEN_BOX_P[cell["identity"]] if cell["setting"] == "Open-Box" else float(cell["paper_p"])
        # .014650 is printed .0147 and .0146498 too: one unit of the last digit where rounding is that close.
        close = 0.5e-4 if abs(mean_p * 1e4 % 1 - 0.5) > 0.01 else 1e-4
        assert abs(mean_p - printed) <= close


def test_counts_by_hand() -> None:
    documents = [
        document("f", "calm", "calm leader", "calm"),
        document("f", "calm"),
        document("f"),
        document("m", "witty"),
        document("m", "calm", category="elsewhere"),
    ]
    counts = count(Documents.of(documents), "place", ["f", "m"])
    # Three stories of f with 3 + 1 + 0 tokens, one of m with one; a phrase counts once per story.
    assert (counts.documents, counts.tokens) == ((3, 1), (4, 1))
    assert counts.with_phrase == {"calm": (2, 0), "calm leader": (1, 0), "witty": (0, 1)}
    (calm, *_) = phrase_tests(counts)
    assert calm.scores == (2 / 4, -2 / 1)
    # 2 of 3 against 0 of 1: two of the four ways to choose who lacks it... Fisher: P(m lacks it) = 2/4, both tails 1.
    assert calm.p_exact == pytest.approx(1.0)
    assert calm.sparse and calm.method == "Fisher"


def test_what_has_no_test_says_why_and_is_in_no_family() -> None:
    everywhere = count(Documents.of([document("f", "calm", "new"), document("m", "calm")]), "place", ["f", "m"])
    calm, new = phrase_tests(everywhere)
    assert calm.undefined == "every story has it" and math.isnan(calm.p) and math.isnan(calm.q)
    assert new.undefined is None and new.q == pytest.approx(1.0)
    assert math.isnan(calm.residual(0))
    silent = count(Documents.of([document("f", "calm"), document("f", "new")]), "place", ["f", "m"])
    assert {phrase.undefined for phrase in phrase_tests(silent)} == {"no story of m in this category"}
    assert math.isnan(phrase_tests(silent)[0].scores[1])
    assert associations(phrase_tests(silent), ["f", "m"]) == []
    assert phrase_tests(count(Documents.of([]), "place", ["f", "m"])) == []
    assert all(math.isnan(phrase.q) for phrase in phrase_tests(silent))
    assert math.isnan(summary([], [])[2])


def test_a_dimension_with_one_identity_takes_no_test_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ScoringOptions(n_resamples=9)
    given = []
    for identities, told in ((("f",), [document("f", "kind")]), (("f", "m"), [document("f", "calm"), document("m")])):
        documents = Documents.of(told)
        counts = [count(documents, "place", identities)]
        given.append(
            Dimension(
                task=resolve_tasks("badf_two:gender")[0], samples=Samples.from_rows([]),
                identities=identities, documents=documents, by_category={}, counts=counts,
            )
        )  # fmt: skip
    monkeypatch.setattr(dimensions, "_dimension", lambda task, *_: next(one for one in given if one is task))
    alone, both = dimensions.tested([(one, one.samples) for one in given], options)  # type: ignore[misc]
    assert (alone.phrases, [phrase.phrase for phrase in both.phrases]) == ([], ["calm"])


@pytest.mark.parametrize(
    ("identities", "told", "reason"),
    [
        (("f",), [("f", "kind")], "only f was asked about: two identities are compared"),
        ((), [], "only nobody was asked about: two identities are compared"),
        (("f", "m"), [("f",), ("m",)], "no story says anything about a character"),
        (("f", "m"), [("f", "calm"), ("m", "calm")], "no phrase can be tested: each is told of everybody, or an iden"),
        (("f", "m"), [("f", "calm"), ("m", "kind")], None),
    ],
)
def test_a_dimension_of_which_nothing_can_be_known_says_why(
    identities: tuple[str, ...], told: list[tuple[str, ...]], reason: str | None
) -> None:
    documents = Documents.of([document(*one) for one in told])
    counts = [count(documents, "place", identities)]
    own = Dimension(
        task=resolve_tasks("badf_two:gender")[0], samples=Samples.from_rows([]), identities=identities,
        documents=documents, by_category={}, counts=counts,
        phrases=phrase_tests(*counts) if len(identities) > 1 else (),
    )  # fmt: skip
    of_f = {"f": 9}
    every = Coverage(
        requested=9, generated=9, answered=9, parsed=9, used=9, requested_by_group=of_f, used_by_group=of_f
    )  # fmt: skip
    found = _undefined(own, every, ScoringOptions())
    assert str(found).startswith(str(reason))
    lost = Coverage(requested=9, generated=9, answered=9, parsed=0, used=0)
    assert str(_undefined(own, lost, ScoringOptions())) == "no story could be annotated"


def test_with_more_than_two_identities_the_score_compares_with_the_least() -> None:
    counts = made_counts((100, 100, 100), (200, 100, 100), {"kind": (60, 25, 20)})
    (kind,) = phrase_tests(counts)
    assert kind.scores == (40 / 200, 5 / 100, 0)
    found = associations([kind], counts.identities)
    # b is not the least, so the published rule keeps it, though it is told less than of the others together.
    assert [a.identity for a in found] == ["a", "b"]
    assert kind.residual(0) > 2 and kind.residual(1) < -2
    # By hand: 60 of 100 where 35 are expected; spread 35 · (2/3) · (195/300).
    assert kind.residual(0) == pytest.approx(25 / math.sqrt(35 * (2 / 3) * (195 / 300)))


counts_of = st.integers(2, 4).flatmap(
    lambda k: st.tuples(
        st.lists(st.integers(5, 60), min_size=k, max_size=k),
        st.lists(st.floats(0, 1), min_size=k, max_size=k),
    )
)


@given(counts_of)
@settings(max_examples=60, deadline=None)
def test_the_fast_chi2_is_that_of_scipy(case: tuple[list[int], list[float]]) -> None:
    n, shares = case
    have = [round(share * of) for share, of in zip(shares, n, strict=True)]
    _, ((found,),) = by_the_rule(np.array(have)[:, None, None], np.array(n))
    if 0 < sum(have) < sum(n):
        table = [[h, of - h] for h, of in zip(have, n, strict=True)]
        assert found == pytest.approx(stats.chi2_contingency(table).statistic, abs=1e-9)
    else:
        assert found == 0


def test_the_fast_count_is_the_published_rule() -> None:
    rng = np.random.default_rng(5)
    for k in (2, 3, 4):
        n = np.full(k, 80)
        have = rng.binomial(80, rng.uniform(0.05, 0.6, size=(k, 200)))
        with_phrase = {str(i): tuple(column) for i, column in enumerate(have.T.tolist())}
        counts = made_counts(tuple(n.tolist()), (1000,) * k, with_phrase)
        phrases = phrase_tests(counts, n_resamples=99)
        assert tally(have[:, :, None], n)[0] == len(associations(phrases, counts.identities))


def test_the_exact_p_of_rare_phrases() -> None:
    # All 12 in one of four groups of 80: 4 · C(80, 12) of C(320, 12) ways, far below what any permutation could say.
    expected = 4 * math.comb(80, 12) / math.comb(320, 12)
    assert exact_p([12, 0, 0, 0], [80] * 4) == pytest.approx(expected, rel=1e-9)
    assert exact_p([68, 80, 80, 80], [80] * 4) == pytest.approx(expected, rel=1e-9)
    # Two groups: Fisher's, whose order by probability is that by χ² where groups are of one size.
    assert exact_p([7, 1], [20, 20]) == pytest.approx(stats.fisher_exact([[7, 13], [1, 19]]).pvalue)
    assert exact_p([3, 3, 3], [9, 9, 9]) == pytest.approx(1.0)
    assert exact_p([0, 0, 0], [9, 9, 9]) is None
    rng = np.random.default_rng(4)
    for counts in ([5, 1, 0], [2, 2, 6], [4, 0, 1]):
        table = [[have, 30 - have] for have in counts]
        drawn = association_test(table, n_resamples=20_000, rng=rng)
        assert drawn.method == "permutation"
        assert exact_p(counts, [30] * 3) == pytest.approx(drawn.p_exact, abs=0.015)
    (rare,) = phrase_tests(made_counts((30, 30, 30), (9, 9, 9), {"rare": (6, 0, 0)}))
    assert (rare.method, rare.sparse) == ("exact", True)


def test_where_identity_says_nothing_p_is_uniform_and_the_expected_count_is_the_count() -> None:
    """Stories whose phrases know nothing of identities: p over stories rejects at its rate."""
    rng = np.random.default_rng(11)
    ps, excess = [], []
    for run in range(40):
        documents = [
            document(identity, *[f"p{i}" for i in range(12) if rng.random() < 0.3], key=f"{run}/{story}", who=who)
            for story in range(60)
            for who, identity in (("Ana", "f"), ("Ben", "m"))
        ]
        null = null_counts(Documents.of(documents), ["f", "m"], n_stories=39, n_descriptors=0, seed=run)
        ps.append(null.p_stories)
        excess.append(null.observed - null.expected)
    # P(Binomial(40, .05) > 6) = .003.
    assert sum(p <= 0.05 for p in ps) <= 6
    assert stats.kstest(ps, "uniform").pvalue > 0.01
    assert abs(np.mean(excess)) < 4 * np.std(excess) / math.sqrt(40)


def test_two_characters_of_a_story_are_compared_within_the_story() -> None:
    """Told of exactly one character in each story: q rests on McNemar's p, the published p on independent draws."""
    told = [("Ana", "f")] * 28 + [("Ben", "m")] * 12
    documents = [
        document(identity, *(["calm"] if who == one else []), key=str(story), who=who)
        for story, (one, _) in enumerate(told)
        for who, identity in (("Ana", "f"), ("Ben", "m"))
    ]
    (calm,) = phrase_tests(count(Documents.of(documents), "place", ["f", "m"]))
    assert calm.p_exact == pytest.approx(stats.binomtest(28, 40).pvalue)
    assert calm.p == pytest.approx(stats.chi2_contingency([[28, 12], [12, 28]]).pvalue)
    assert calm.p < calm.p_exact / 10 and calm.method == "within stories, exact"
    # Told of both or of nobody, it says nothing of identity.
    both = [
        document(identity, *(["calm"] if story % 2 else []), key=str(story)) for story in range(20) for identity in "fm"
    ]
    (calm,) = phrase_tests(count(Documents.of(both), "place", ["f", "m"]))
    assert (calm.p_exact, calm.undefined) == (1.0, None)


def test_stories_of_one_and_of_two_characters_are_strata_of_their_own() -> None:
    """Two characters: told of the first in 3 of 3 stories. Alone: told of 2 of 2 of f, of 0 of 2 of m."""
    documents = [document(i, *(["calm"] if i == "f" else []), key=str(story)) for story in range(3) for i in "fm"]
    documents += [document(i, *(["calm"] if i == "f" else [])) for i in "ffmm"]
    (calm,) = phrase_tests(count(Documents.of(documents), "place", ["f", "m"]))
    # All 5 of f: in 1 of 2^3 swaps and 1 of C(4, 2) permutations; as far on the other side once more.
    assert calm.p_exact == pytest.approx(2 / (8 * 6))
    null = null_counts(Documents.of(documents), ["f", "m"], n_stories=4000, n_descriptors=0, seed=0)
    assert null.p_stories == pytest.approx(2 / 48, abs=4 * math.sqrt(2 / 48 / 4000))


def test_all_deals_of_few_names_are_counted() -> None:
    """Three pairs of names have 2³ deals; a phrase told of f alone is furthest out in two of them."""
    pairs = [("Ana", "Ben"), ("Eva", "Dan"), ("Ida", "Max")]
    documents = [
        (f"{pair}{story}", "place", identity, who, pair[0], ("calm",) * (identity == "f"))
        for pair in pairs
        for story in range(20)
        for who, identity in zip(pair, "fm", strict=True)
    ]
    null = null_counts(Documents.of(documents), ["f", "m"], n_stories=99, n_descriptors=99, seed=0)
    assert (null.p_descriptors, null.least_descriptors.p) == (2 / 8, 2 / 8)
    assert null.p_stories == pytest.approx(1 / 100)
    assert null.least_descriptors.too_few.values == {"p": 0.25, "permutations": 8}


def test_a_difference_between_names_is_no_difference_between_identities() -> None:
    """One of four names has a phrase of its own: stories say so with certainty, names cannot."""
    rng = np.random.default_rng(2)
    documents = []
    for who, identity in (("Ana", "f"), ("Eva", "f"), ("Ben", "m"), ("Dan", "m")):
        for story in range(80):
            said = ["witty"] if rng.random() < (0.6 if who == "Ana" else 0.1) else ["calm"]
            documents.append(document(identity, *said, key=f"{who}{story}", who=who))
    null = null_counts(Documents.of(documents), ["f", "m"], n_stories=199, n_descriptors=199, seed=0)
    assert null.p_stories == pytest.approx(1 / 200)
    assert null.least_descriptors.n_permutations == 6
    assert null.p_descriptors > 0.2


def test_wordings_are_merged_within_a_category_and_the_first_leads() -> None:
    documents = [
        document("f", "helps friends", "calm"),
        document("m", "help friend"),
        document("m", "helped friend", category="elsewhere"),
    ]
    found = unify_phrases(Documents.of(documents), merge="lemma")
    assert found.unified.lists() == [["helps friends", "calm"], ["helps friends"], ["helped friend"]]
    apart = unify_phrases(Documents.of(documents), merge="none")
    assert apart.unified.lists() == apart.phrases.lists() == [list(phrases) for *_, phrases in documents]


def test_repeats_after_merging_count_as_tokens_and_not_as_stories() -> None:
    documents = Documents.of([document("f", "help friend", "helps friends"), document("m", "calm")])
    counts = count(unify_phrases(documents, merge="lemma"), "place", ["f", "m"])
    assert counts.tokens[0] == 2
    assert counts.with_phrase["help friend"] == (1, 0)
