"""Where pairs of prepared data stand in the text."""

from pathlib import Path

from transformer_mt.config import DataConfig
from transformer_mt.data.origin import valid_origin


def test_a_validation_pair_is_named_by_file_and_line(tmp_path: Path) -> None:
    """Pins a number among all sources together, which no editor can jump to."""
    (tmp_path / "a.de").write_text("eins\nzwei\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("drei\tthree\nvier\tfour\n", encoding="utf-8")
    data = DataConfig(root=str(tmp_path), train=("x",), valid=("a", "b.tsv"), src_lang="de", tgt_lang="en")
    found = [valid_origin(data, index) for index in range(4)]
    assert found == [f"{tmp_path}/{place}" for place in ("a.de:1", "a.de:2", "b.tsv:1", "b.tsv:2")]
    (tmp_path / "b.tsv").unlink()
    assert valid_origin(data, 3) == "validation pair 4"
