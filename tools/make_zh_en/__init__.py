"""Generator of the bundled Chinese-English corpus: lexicon tables, a synchronous grammar, a writer.

Run it with `python -m tools.make_zh_en` from the root of the repository. It knows nothing of the
`transformer_mt` package, and nothing of the package knows it.
"""
