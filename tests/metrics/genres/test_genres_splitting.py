"""Forty layouts met in real responses, told in our own words, each split by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equivox.metrics.genres.annotation.splitting import split_response

A, B = "Ana tends bees and speaks slowly.", "Ben mends clocks and never sleeps late."
STORY = 'Ana rang the bell.\n\n"Come in," said Ben. They drank tea until the rain had gone.'
SHOWN = "Shown personality traits: patience of Ana, care of Ben."
PLAIN = f"Profile of Ana:\n{A}\n\nProfile of Ben:\n{B}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}\n"
BULLETS_A = "- **Personality:** slow\n- **Occupation:** beekeeper"
BULLETS_B = "- **Personality:** exact\n- **Occupation:** clockmaker"

SPLITTABLE = {
    "as asked": PLAIN,
    "windows line ends": PLAIN.replace("\n", "\r\n"),
    "headings in the line": f"Profile of Ana: {A}\nProfile of Ben: {B}\nNarrative passage: {STORY}\n{SHOWN}",
    "headings without a colon": (
        f"### Profile of Ana\n{A}\n### Profile of Ben\n{B}\n### Narrative Passage\n{STORY}\n### Shown Traits\nx"
    ),
    "bold headings": (
        f"**Profile of Ana:**\n\n{A}\n\n**Profile of Ben:**\n\n{B}\n\n**Narrative Passage:**\n\n{STORY}\n\n**{SHOWN}**"
    ),
    "bold headings with the colon outside": (
        f"**Profile of Ana**: {A}\n**Profile of Ben**: {B}\n**Narrative passage**: {STORY}\n**Personality traits**: x"
    ),
    "capitals": f"PROFILE OF ANA:\n{A}\nPROFILE OF BEN:\n{B}\nNARRATIVE PASSAGE:\n{STORY}\nSHOWN PERSONALITY TRAITS: x",
    "numbered headings": (
        f"1. Profile of Ana:\n{A}\n2. Profile of Ben:\n{B}\n3. Narrative passage:\n{STORY}\n4. {SHOWN}"
    ),
    "a role behind the name": (
        f"Profile of Ana (the beekeeper):\n{A}\nProfile of Ben (the clockmaker):\n{B}\nNarrative passage:\n{STORY}"
    ),
    "the name first": f"Ana's Profile:\n{A}\n\nBen's Profile:\n{B}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}",
    "the name first, with a curly apostrophe": (
        f"**Ana’s profile**\n{A}\n\n**Ben’s profile**\n{B}\n\n**Narrative**\n{STORY}"
    ),
    "the name behind a colon": f"Profile: Ana\n{A}\nProfile: Ben\n{B}\nStory:\n{STORY}",
    "quoted headings": f"> Profile of Ana:\n{A}\n> Profile of Ben:\n{B}\n> Narrative passage:\n{STORY}",
    "character profiles": f"## Character Profile of Ana\n{A}\n## Character Profile of Ben\n{B}\n## Plot\n{STORY}",
    "a preface that names both": f"Of course! Here are Ana and Ben, with a story.\n\n{PLAIN}",
    "the second profile first": (
        f"Profile of Ben:\n{B}\n\nProfile of Ana:\n{A}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}"
    ),
    "the second profile without a heading": f"Profile of Ana:\n{A}\n\n{B}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}",
    "its heading only comes in a repetition": (
        f"Profile of Ana:\n{A}\n\n{B}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}\n\nProfile of Ben:\nBen again.\n\n"
        "Narrative passage:\nAnother story."
    ),
    "everything said once more": PLAIN + PLAIN,
    "the story told twice": f"{PLAIN}\n---\n\nNarrative passage:\nAna rang again.",
    "the traits listed twice": f"{PLAIN}\n{SHOWN}\n- Ana: patience",
    "traits by name": (
        f"Profile of Ana:\n{A}\nProfile of Ben:\n{B}\nNarrative passage:\n{STORY}\nAna's personality traits: slow\n"
        "Ben's personality traits: exact"
    ),
    "traits in a sentence": PLAIN.replace(
        SHOWN, "The narrative passage highlights the following personality traits:\n- **Patience of Ana**"
    ),
    "traits behind the last sentence": PLAIN.replace(f"\n\n{SHOWN}", f" {SHOWN}"),
    "traits behind a rule": PLAIN.replace(SHOWN, f"---\n\n**{SHOWN}**"),
    "the heading of the traits cut off": PLAIN.replace(f"{SHOWN}\n", "### Sh"),
    "the heading of the traits cut off later": PLAIN.replace(f"{SHOWN}\n", "**Shown personality"),
    "a mark of the end": PLAIN.replace(SHOWN, "**End of Narrative Passage**\nThanks for reading!"),
}
"""Layouts whose parts are `A`, `B` and `STORY`."""

OTHERS = {
    "markdown headings and bullets": (
        f"### Profile of Ana:\n{BULLETS_A}\n\n### Profile of Ben:\n{BULLETS_B}\n\n### Narrative Passage:\n{STORY}\n\n"
        f"### Shown Personality Traits:\n- **Patience:** Ana waited.",
        BULLETS_A,
        BULLETS_B,
        STORY,
    ),
    "the first profile names the other": (
        PLAIN.replace(A, f"Next to Ben she looks small. {A}"),
        f"Next to Ben she looks small. {A}",
        B,
        STORY,
    ),
    "the first profile begins with both": (
        PLAIN.replace(A, f"Ana and Ben share a wall. {A}"),
        f"Ana and Ben share a wall. {A}",
        B,
        STORY,
    ),
    "the second profile names the first": (
        PLAIN.replace(B, f"{B} Ana lends him honey."),
        A,
        f"{B} Ana lends him honey.",
        STORY,
    ),
    "the second without a heading, by contrast": (
        f"Profile of Ana:\n{A}\n\nBen, on the other hand, hurries.\n\nNarrative passage:\n{STORY}",
        A,
        "Ben, on the other hand, hurries.",
        STORY,
    ),
    "the second without a heading, by a possessive": (
        f"Profile of Ana:\n{A}\n\nAna's trade is honey.\n\nBen's trade is time.\n\nNarrative passage:\n{STORY}",
        f"{A}\n\nAna's trade is honey.",
        "Ben's trade is time.",
        STORY,
    ),
    "the second without a heading, in two paragraphs": (
        f"Profile of Ana:\n{A}\n\n{B}\n\nBen also whistles.\n\nNarrative passage:\n{STORY}",
        A,
        f"{B}\n\nBen also whistles.",
        STORY,
    ),
    "the second without a heading, then a word on both": (
        f"Profile of Ana:\n{A}\n\n{B}\n\nBoth like rain.\n\nNarrative passage:\n{STORY}",
        A,
        f"{B}\n\nBoth like rain.",
        STORY,
    ),
    "traits as a field of the profiles": (
        f"Profile of Ana:\nName: Ana\nPersonality Traits: slow\n\nProfile of Ben:\nName: Ben\nPersonality Traits: "
        f"exact\n\nNarrative Passage:\n{STORY}\n\n{SHOWN}",
        "Name: Ana\nPersonality Traits: slow",
        "Name: Ben\nPersonality Traits: exact",
        STORY,
    ),
    "a title above the story": (PLAIN.replace(STORY, f"**The Bell**\n\n{STORY}"), A, B, f"The Bell**\n\n{STORY}"),
    "a story about a profile and a narrative": (
        PLAIN.replace(STORY, f"It was a high-profile case. {STORY} The narrative passage of their lives went on."),
        A,
        B,
        f"It was a high-profile case. {STORY} The narrative passage of their lives went on.",
    ),
    "a story cut off in the middle": (
        PLAIN.split("They drank")[0] + "They drank tea until",
        A,
        B,
        STORY.split("They drank")[0] + "They drank tea until",
    ),
}
"""Layouts with the two profiles and the story that are to be found in them."""

LAYOUTS = {name: (text, A, B, STORY) for name, text in SPLITTABLE.items()} | OTHERS

UNSPLITTABLE = {
    "the second profile runs in circles": (
        f"Profile of Ana:\n{A}\n\nProfile of Ben:\n" + "Ben is exact. He is exact. " * 40,
        "no narrative",
    ),
    "the first profile runs in circles": (
        "Profile of Ana: " + "Ana is slow. She is slow. " * 40,
        "no profile of Ben; no narrative",
    ),
    "nothing below the heading of the story": (PLAIN.split(STORY)[0], "no narrative"),
    "a refusal": ("I'm sorry, but I can't help with that.", "no profile of Ana; no profile of Ben; no narrative"),
    "a story alone": (f"Narrative passage:\n{STORY}", "no profile of Ana; no profile of Ben"),
    "nothing": ("", "no profile of Ana; no profile of Ben; no narrative"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_split_as_by_hand(layout: str) -> None:
    text, ana, ben, story = LAYOUTS[layout]
    found = split_response(text, ("Ana", "Ben"))
    assert found.problem is None
    assert (found.profiles["Ana"], found.profiles["Ben"], found.narrative) == (ana, ben, story)


@pytest.mark.parametrize("layout", UNSPLITTABLE)
def test_what_cannot_be_split_says_what_is_missing(layout: str) -> None:
    text, problem = UNSPLITTABLE[layout]
    assert split_response(text, ("Ana", "Ben")).problem == problem


def test_a_single_character_has_one_profile() -> None:
    found = split_response(f"Profile of Ana:\n{A}\n\nNarrative passage:\n{STORY}\n\n{SHOWN}", ("Ana",))
    assert (found.problem, found.profiles, found.narrative) == (None, {"Ana": A}, STORY)


def test_the_order_of_the_names_does_not_matter() -> None:
    for text, *_ in LAYOUTS.values():
        one, other = split_response(text, ("Ana", "Ben")), split_response(text, ("Ben", "Ana"))
        assert (dict(one.profiles), one.narrative) == (dict(other.profiles), other.narrative)


@pytest.mark.paper
@pytest.mark.parametrize(("model", "least"), [("qwen2v5VL3b", 1440), ("janus", 1434)])
def test_the_published_responses_can_be_split(model: str, least: int, reference_data: Path) -> None:
    files = sorted((reference_data / "genres" / "responses").glob(f"{model}_mf_*.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    found = [split_response(record["response"], record["names"]) for record in records]
    assert len(records) == 1440
    assert sum(split.problem is None for split in found) >= least
    for record, split in zip(records, found, strict=True):
        # Whatever is split is a part of the response, and no part holds another's heading.
        for part in (*split.profiles.values(), split.narrative):
            assert all(line.strip("*_# ") in record["response"] for line in part.splitlines())
            assert "Profile of" not in part and "Narrative passage:" not in part


@pytest.mark.parametrize(
    ("last", "stays"),
    [
        ("The narrative passage highlights Ana's empathy and Ben's patience.", False),
        ("*This passage shows Ana's curiosity and Ben's practical nature.*", False),
        ("Overall, the story demonstrates the traits of both.", False),
        ("The story is engaging and vivid, with dialogue that shows their personalities.", False),
        ("The narrative passage ends with Ana and Ben on the bridge.", True),
        ("The story of the bridge was told for years.", True),
        ("The passage was narrow, and Ana went first.", True),
    ],
)
def test_a_comment_on_the_text_is_no_part_of_the_story(last: str, stays: bool) -> None:
    story = "Ana met Ben.\n\nThey crossed the bridge.\n\n"
    told = f"Profile of Ana:\n{A}\n\nProfile of Ben:\n{B}\n\nNarrative passage:\n{story}"
    for text in (told + last, f"{told}{last}\n\n{last}"):
        found = split_response(text, ["Ana", "Ben"])
        assert found.narrative.startswith("Ana met Ben.") and "They crossed the bridge." in found.narrative
        assert (last.strip("*") in found.narrative) == stays
    # A narrative that consists of nothing else is kept: leaving it out would be a guess.
    alone = split_response(told.replace(story, "") + last, ["Ana", "Ben"])
    assert alone.narrative == last.strip("*")
