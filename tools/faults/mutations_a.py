"""Mutations for the faults B001 to B087."""

from __future__ import annotations

from tools.faults.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "B001",
        "U+2028 ends a line",
        "text/lines.py",
        'lines = text.split("\\n")',
        'lines = text.replace("\\u2028", "\\n").split("\\n")',
        ("end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",),
    ),
    Mutation(
        "B002",
        "lines end where str.splitlines() ends them",
        "text/lines.py",
        'lines = text.split("\\n")',
        'lines = [*text.splitlines(), ""]',
        (
            "end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",
            "unit/text/test_lines.py::test_other_line_separators_stay_in_the_line",
        ),
    ),
    Mutation(
        "B004",
        "a lone carriage return ends a line",
        "text/lines.py",
        'lines = text.split("\\n")',
        'lines = text.replace("\\r\\n", "\\n").replace("\\r", "\\n").split("\\n")',
        ("end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",),
    ),
    Mutation(
        "B007",
        "a final newline starts another line",
        "text/lines.py",
        "if not lines[-1]:\n        lines.pop()",
        "if not lines[-1] and number < 0:\n        lines.pop()",
        (
            "end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",
            "end_to_end/test_faults_of_lines.py::test_standard_input_gives_the_same_lines",
        ),
    ),
    Mutation(
        "B008",
        "a last line without a newline is lost",
        "text/lines.py",
        "if not lines[-1]:\n        lines.pop()",
        "if lines:\n        lines.pop()",
        ("end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",),
    ),
    Mutation(
        "B011",
        "translations stay in the order of the batches",
        "decoding/searcher.py",
        "results[place] = best",
        "results[sum(map(bool, results))] = best",
        (
            "end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",
            "end_to_end/test_faults_of_lines.py::test_lists_of_translations_are_in_the_order_of_the_lines",
        ),
    ),
    Mutation(
        "B013",
        "blank lines are collapsed",
        "text/lines.py",
        'if "\\r" in text else lines',
        'if "\\r" in text else [line for line in lines if line]',
        (
            "end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",
            "end_to_end/test_faults_of_lines.py::test_standard_input_gives_the_same_lines",
        ),
    ),
    Mutation(
        "B014",
        "an empty line is not blank",
        "text/lines.py",
        "return not text or (",
        "return bool(text) and (",
        ("end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",),
    ),
    Mutation(
        "B019",
        "a pair is dropped only if both sides are empty",
        "text/corpus_check.py",
        "codes[~(_each(bool, src, np.bool_) & _each(bool, tgt, np.bool_))] = EMPTY",
        "codes[~(_each(bool, src, np.bool_) | _each(bool, tgt, np.bool_))] = EMPTY",
        ("end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",),
    ),
    Mutation(
        "B020",
        "bad bytes become replacement characters",
        "text/lines.py",
        'text = block.decode("utf-8")',
        'text = block.decode("utf-8", "replace")',
        (
            "end_to_end/test_faults_of_lines.py::test_a_corpus_that_cannot_be_read_leaves_nothing",
            "end_to_end/test_faults_of_lines.py::test_a_bad_byte_is_found_before_anything_is_translated",
        ),
    ),
    Mutation(
        "B022",
        "a line ends for the reader at its first NUL",
        "text/lines.py",
        'lines = text.split("\\n")',
        'lines = [line.split("\\0")[0] for line in text.split("\\n")]',
        ("end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",),
    ),
    Mutation(
        "B023",
        "the text ends at DOS's end of file",
        "text/lines.py",
        'text = block.decode("utf-8")',
        'text = block.decode("utf-8").split("\\x1a")[0]',
        (
            "end_to_end/test_faults_of_lines.py::test_pairs_stay_pairs",
            "end_to_end/test_faults_of_lines.py::test_evaluate_counts_the_lines_that_wc_counts",
        ),
    ),
    Mutation(
        "B024",
        "a byte-order mark is text",
        "text/lines.py",
        "block = block.removeprefix(_UTF8_BOM)",
        "block = block[:]",
        (
            "end_to_end/test_faults_of_lines.py::test_every_line_comes_out_where_it_went_in",
            "end_to_end/test_faults_of_lines.py::test_a_byte_order_mark_is_no_text",
            "end_to_end/test_faults_of_lines.py::test_evaluate_counts_the_lines_that_wc_counts",
        ),
    ),
)
