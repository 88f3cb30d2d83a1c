"""`translate --protect --tags` through the command, with a model of random weights: all survives."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from random_run import MODELS, made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator

PATTERNS = [r"\{\w+\}", r"https?://[^\s<>]+\w", r"\d+(?:[.,]\d+)*"]
STRINGS = ["{name}", "{n}", "https://a.b/c?d=5", "5", "1.000", "1,000"]
TAG = re.compile(r"</?[bip]>|<br/>|<a href=\">\">|</a>")
FLAGS = ["--tags", *(word for pattern in PATTERNS for word in ("--protect", pattern)), "--device", "cpu"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Made-up lines with strings and tags between their words, and lines that a model never sees."""
    draw = random.Random(7)
    planted = []
    for line in made_up_lines(60, seed=5):
        words = line.split()
        for _ in range(draw.randint(0, 3)):
            words.insert(draw.randint(0, len(words)), draw.choice(STRINGS))
        start = draw.randrange(len(words))
        words[start] = draw.choice(["<b>", '<a href=">">', "<p> "]) + words[start]
        name = words[start][1]
        words[draw.randrange(start, len(words))] += f"</{name}>" + draw.choice(["", "<br/>", ", <i>x</i>"])
        planted.append(" ".join(words))
    return [*planted, "", "<br/>", " {n}, <b>5</b>!", "\u3000", "猫は{n}と<b>犬</b>5匹。", "a < b <3 &lt;"]


def counts(pattern: str | re.Pattern[str], text: str) -> Counter[str]:
    return Counter(re.findall(pattern, text))


def assert_survived(source: str, translation: str) -> None:
    """Every string as often as in the source or more, every tag as often, and pairs nested as before."""
    for pattern in PATTERNS:
        for text, number in counts(pattern, TAG.sub("\0", source)).items():
            assert translation.count(text) >= number, (source, translation)
    assert counts(TAG, source) == counts(TAG, translation), (source, translation)
    names: list[str] = []
    for tag in TAG.findall(translation):
        if tag.startswith("</"):
            assert names.pop() == tag[2], (source, translation)
        elif tag != "<br/>":
            names.append(tag[1])
    assert not names


def test_everything_survives(
    run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], lines: list[str]
) -> None:
    """B157: whatever the model says; lines of nothing else come back as they are, blank ones stay blank."""
    path = tmp_path / "in.txt"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert main(["translate", str(run), str(path), *FLAGS]) == 0
    output = capfdbinary.readouterr().out.decode().split("\n")
    assert output.pop() == ""
    assert len(output) == len(lines)
    for line, translation in zip(lines, output, strict=True):
        assert_survived(line, translation)
    assert output[60:64] == ["", "<br/>", " {n}, <b>5</b>!", ""]
    translator = Translator.load(run, device="cpu", protect=PATTERNS, tags=True)
    assert [translator.translate([line])[0].text for line in lines[::9]] == output[::9]


def test_every_candidate_and_every_part_of_a_long_line(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A pair may open in one part and close in another; tokens and scores stay those of the model."""
    model = {**MODELS["transformer"], "positions": "learned", "max_positions": 256}
    run = random_run(tmp_path / "run", model=model)
    line = "<p>abd {n} eik. " + "Mot <b>stu 5. " * 60 + "Rin</b> " * 60 + "</p>"
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"src": line, "id": 1}) + "\n", encoding="utf-8")
    flags = ["--nbest", "3", "--token-scores", "--alignment", "mean", *FLAGS]
    assert main(["translate", str(run), str(path), *flags]) == 0
    record = json.loads(capfdbinary.readouterr().out)
    assert record["id"] == 1
    assert record["parts"] > 1
    assert len(record["nbest"]) == 3
    for candidate in record["nbest"]:
        assert_survived(line, candidate["translation"])


def test_without_the_flags_all_is_text(
    run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The model sees tags and placeholders as they are."""
    path = tmp_path / "in.txt"
    path.write_text("<br/>\nabd {n}\n", encoding="utf-8")
    assert main(["translate", str(run), str(path), "--device", "cpu"]) == 0
    plain = Translator.load(run, device="cpu").translate(["<br/>", "abd {n}"])
    assert capfdbinary.readouterr().out.decode() == "".join(one.text + "\n" for one in plain)
    assert plain[0].num_src_tokens > 0


def test_a_bad_pattern_costs_no_time(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line, before a model is loaded or a line read."""
    assert main(["translate", str(run), "nowhere.txt", "--protect", "fine", "--protect", "(x"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--protect '(x': is no regular expression (missing )" in error
