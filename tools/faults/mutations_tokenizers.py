"""Mutations for the faults of tokenizers, of training draws, and of text that no tokenizer should get."""

from __future__ import annotations

from tools.faults.mutation import Mutation

_COMMANDS = "end_to_end/test_faults_of_tokenizers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "B026",
        "a typed </s> is the end of a sentence",
        "text/tokenizer.py",
        "        return ids\n\n    def encode_batch(",
        '        return [EOS_ID] if text == "</s>" else ids\n\n    def encode_batch(',
        (
            f"{_COMMANDS}::test_control_words_are_text",
            "unit/text/test_tokenizer.py::test_typed_control_words_are_plain_text",
        ),
    ),
    Mutation(
        "B028",
        "U+2581 is lost without a word",
        "text/corpus_check.py",
        'lambda text: "\\u2581" in text',
        'lambda text: "\\u2582" in text',
        (
            f"{_COMMANDS}::test_prepare_reports_what_looks_wrong_in_the_text",
            "unit/text/test_corpus_check.py::test_notes",
        ),
    ),
    Mutation(
        "B029",
        "each side is encoded by the other's tokenizer",
        "data/build.py",
        "zip(texts.columns, tokenizers, strict=True)",
        "zip(texts.columns, tokenizers[::-1], strict=True)",
        (f"{_COMMANDS}::test_each_side_is_read_and_shown_by_its_own_tokenizer",),
    ),
    Mutation(
        "B031",
        "language tags are symbols that users can type",
        "text/vocabulary.py",
        '"minloglevel": 2,',
        '"minloglevel": 2,\n        "user_defined_symbols": ["<2de>", "<2fr>"],',
        (f"{_COMMANDS}::test_control_words_are_text",),
    ),
    Mutation(
        "B032",
        "text is normalised",
        "text/vocabulary.py",
        '"normalization_rule_name": "identity"',
        '"normalization_rule_name": "nmt_nfkc"',
        (
            f"{_COMMANDS}::test_nothing_is_rewritten_or_unknown",
            "properties/test_tokenizer.py::test_text_comes_back",
        ),
    ),
    Mutation(
        "B033",
        "rare characters are unknown",
        "text/vocabulary.py",
        '"byte_fallback": True',
        '"byte_fallback": False',
        (
            f"{_COMMANDS}::test_nothing_is_rewritten_or_unknown",
            "unit/text/test_tokenizer.py::test_rare_characters_are_spelled_in_bytes",
        ),
    ),
    Mutation(
        "B035",
        "a drawn segmentation has one unknown token for characters without a piece",
        "text/subword_sampling.py",
        "ids.extend(self._byte_ids[byte] for byte in piece.encode())",
        "ids.append(1)",
        (f"{_COMMANDS}::test_nothing_is_rewritten_or_unknown",),
    ),
    Mutation(
        "B036",
        "a source is searched for up to its first emoji",
        "decoding/parts.py",
        "else [Part(line, 0, line, Sentence([*ids, EOS_ID], number, prefix))]",
        "else [Part(line, 0, line, Sentence([*ids[: [*ids, 244].index(244)], EOS_ID], number, prefix))]",
        (f"{_COMMANDS}::test_what_stands_behind_an_emoji_is_translated",),
    ),
    Mutation(
        "B038",
        "soft hyphens are dropped",
        "text/tokenizer.py",
        'return text.encode("utf-8", "replace")',
        'return text.replace("\\u00ad", "").encode("utf-8", "replace")',
        (f"{_COMMANDS}::test_invisible_characters_are_text",),
    ),
    Mutation(
        "B039",
        "weights of another vocabulary are not looked at",
        "checkpoint.py",
        "if parameter.shape != weights[name].shape:",
        "if parameter.dim() != weights[name].dim():",
        (f"{_COMMANDS}::test_a_tokenizer_larger_than_the_model_is_refused",),
    ),
    Mutation(
        "B040",
        "an unknown token is shown",
        "text/tokenizer.py",
        "for token in ids if token >= NUM_SPECIAL])",
        "for token in ids if token >= UNK_ID])",
        (
            f"{_COMMANDS}::test_an_unknown_token_leaves_no_mark",
            "unit/text/test_tokenizer.py::test_decoding_passes_over_special_tokens",
        ),
    ),
    Mutation(
        "B042",
        "tokens are decoded one by one",
        "text/tokenizer.py",
        "self._processor.decode([int(token) for token in ids if token >= NUM_SPECIAL])",
        '"".join(self._processor.decode([int(token)]) for token in ids if token >= NUM_SPECIAL)',
        (f"{_COMMANDS}::test_pieces_of_a_text_put_together_are_the_text",),
    ),
    Mutation(
        "B044",
        "the largest size named is the one asked for",
        "text/vocabulary.py",
        "_largest(sample, type, int(largest[1]))",
        "vocab_size",
        (
            f"{_COMMANDS}::test_a_size_the_text_does_not_allow_leaves_nothing",
            "unit/text/test_tokenizer.py::test_too_large_a_vocabulary_names_the_largest",
        ),
    ),
    Mutation(
        "B045",
        "the smallest size named is too small",
        "text/vocabulary.py",
        "bound, given = int(smallest[1])",
        "bound, given = int(smallest[1]) - 1",
        (
            f"{_COMMANDS}::test_a_size_the_text_does_not_allow_leaves_nothing",
            "unit/text/test_tokenizer.py::test_too_small_a_vocabulary_names_the_smallest",
        ),
    ),
    Mutation(
        "B046",
        "long lines are handed on whole, and SentencePiece skips them",
        "text/vocabulary.py",
        "if len(line) * 4 <= _MAX_LINE_BYTES or",
        "if line or",
        ("unit/text/test_tokenizer.py::test_long_lines_are_learned_from",),
    ),
    Mutation(
        "B048",
        "a path ends at its first space",
        "text/tokenizer.py",
        "Path(path).write_bytes(self._model)",
        'Path(str(path).split(" ")[0]).write_bytes(self._model)',
        (
            f"{_COMMANDS}::test_a_path_with_spaces_and_other_letters",
            "unit/text/test_tokenizer.py::test_save_and_load",
        ),
    ),
    Mutation(
        "B050",
        "a vocabulary is learned from the head of the text",
        "text/vocabulary.py",
        "elif (place := generator.randrange(count)) < limit:",
        "elif (place := generator.randrange(count)) < 0:",
        (
            f"{_COMMANDS}::test_a_script_that_comes_late_is_learned",
            "unit/text/test_tokenizer.py::test_training_lines_are_drawn_from_the_whole_text",
        ),
    ),
    Mutation(
        "B145",
        "a hash decides which lines a vocabulary is learned from",
        "data/build.py",
        "draws = noise_draws(0, 0,",
        'draws = noise_draws(hash("noise") % 97, 0,',
        (f"{_COMMANDS}::test_the_order_of_hashes_decides_nothing",),
    ),
    Mutation(
        "B147",
        "workers draw from copies of one generator",
        "data/dataset.py",
        "np.random.SeedSequence((seed, epoch, index)).generate_state(2)",
        "np.random.randint(1 << 31, size=2)",
        (f"{_COMMANDS}::test_workers_draw_apart_and_again_the_same",),
    ),
    Mutation(
        "B157",
        "numbered entities are not noticed",
        "text/corpus_check.py",
        "[a-zA-Z]{2,8}|#[0-9]{1,6}|",
        "[a-zA-Z]{2,8}|",
        (
            f"{_COMMANDS}::test_prepare_reports_what_looks_wrong_in_the_text",
            "unit/text/test_corpus_check.py::test_notes",
        ),
    ),
    Mutation(
        "B161",
        "text cut into pieces passes for plain text",
        "text/presplit.py",
        "_SHARE = 0.1",
        "_SHARE = 1.0",
        (
            f"{_COMMANDS}::test_prepare_reports_what_looks_wrong_in_the_text",
            f"{_COMMANDS}::test_translate_warns_of_text_cut_into_pieces",
        ),
    ),
)
