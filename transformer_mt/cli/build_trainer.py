"""A recipe and prepared data -> a trainer with its model, its batches, and the validation that translates.

Training knows no decoding: what translates the validation set is put together here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from transformer_mt.config import Recipe
from transformer_mt.data.batch import make_batch
from transformer_mt.data.dataset import SourceNoise
from transformer_mt.data.origin import origins, valid_origin
from transformer_mt.data.prepare import PreparedData
from transformer_mt.data.sampler import epoch_batches
from transformer_mt.decoding.shares import Share, all_shares, own_share
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError, DataError, DivergenceError
from transformer_mt.evaluation.scores import score
from transformer_mt.model.build import Model
from transformer_mt.pictures import attention_figure
from transformer_mt.runtime.distributed import ALONE, Ranks
from transformer_mt.text.noise import NoiseRates
from transformer_mt.text.trained_on import TrainedOn
from transformer_mt.training.build import new_updater
from transformer_mt.training.loader import pick_workers
from transformer_mt.training.logbook import Logbook
from transformer_mt.training.step import Updater
from transformer_mt.training.stream import MicroBatches
from transformer_mt.training.trainer import Trainer, ValidationSet

_NUM_PICTURES = 3


def build_updater(
    recipe: Recipe, prepared: PreparedData, device: torch.device, ranks: Ranks = ALONE
) -> tuple[Model, Updater]:
    """A model with initial weights, and all that one update of it needs; the precision must be resolved."""
    vocab_sizes = prepared.tokenizers.src.vocab_size, prepared.tokenizers.tgt.vocab_size
    model, updater = new_updater(recipe, vocab_sizes, device, ranks)
    _check_valid_lengths(recipe, prepared, model.max_length)
    return model, updater


def _check_valid_lengths(recipe: Recipe, prepared: PreparedData, limit: int | None) -> None:
    """A validation sentence that learned positions cannot hold shows now, not at the first validation."""
    if limit is None:
        return
    valid = prepared.valid
    for index, lengths in enumerate(zip(valid.src_lengths, valid.tgt_lengths, strict=True)):
        if max(lengths) > limit:
            raise DataError(
                f"{valid_origin(recipe.data, index)}: has a side of {max(lengths)} tokens, but learned "
                f"positions end at model.max_positions {limit}; raise it, or shorten or remove the pair"
            )


def build_trainer(recipe: Recipe, prepared: PreparedData, device: torch.device, ranks: Ranks) -> Trainer:
    """All that a training consists of, before its first step."""
    model, updater = build_updater(recipe, prepared, device, ranks)
    trained_on = prepared.trained_on()
    validation = _validation_set(recipe, prepared, model, trained_on, updater)
    drawn = recipe.tokenizer.sampling > 0.0 or recipe.data.noise.is_on
    workers, _ = pick_workers(recipe.training.workers, device, sampling=drawn)
    return Trainer(
        recipe=recipe,
        run_dir=Path(recipe.run_dir),
        model=model,
        tokenizers=prepared.tokenizers,
        trained_on=trained_on,
        updater=updater,
        stream=open_stream(recipe, prepared, ranks, workers),
        validation=validation,
        pictures=_pictures(prepared, validation, model, device),
        origins=partial(origins, recipe.data, prepared.train, prepared.tokenizers),
    )


def open_stream(
    recipe: Recipe, prepared: PreparedData, ranks: Ranks = ALONE, workers: int = 0
) -> Callable[[int, int], MicroBatches]:
    """(epoch, position) -> this process's micro-batches from there on; workers: see `MicroBatches`."""
    noise = SourceNoise(
        NoiseRates(**recipe.data.noise.model_dump()),
        max_length=min(recipe.data.max_length, recipe.training.token_budget),
    )

    def stream(epoch: int, position: int) -> MicroBatches:
        return MicroBatches(
            prepared.train,
            max_tokens=recipe.training.token_budget,
            seed=recipe.training.seed,
            sampling=recipe.tokenizer.sampling,
            noise=noise if recipe.data.noise.is_on else None,
            epoch=epoch,
            position=position,
            workers=workers,
            rank=ranks.rank,
            world=ranks.world,
        )

    return stream


def _validation_set(
    recipe: Recipe, prepared: PreparedData, model: Model, trained_on: TrainedOn, updater: Updater
) -> ValidationSet:
    valid, ranks = prepared.valid, updater.ranks
    order = epoch_batches(
        valid.src_lengths, valid.tgt_lengths, max_tokens=recipe.training.token_budget, seed=0, epoch=0
    )
    pairs = prepared.valid_pairs()
    sources, references = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    translator = Translator(
        [model], prepared.tokenizers, recipe.decoding, updater.device, trained_on=trained_on
    )

    signatures: dict[str, str] = {}

    def translate() -> Share:
        return own_share(translator, ranks, sources)

    def score_all(own: Share) -> tuple[list[str], dict[str, float]]:
        try:
            found = all_shares(ranks, own)
        except CheckpointError as error:
            raise DivergenceError(
                f"{recipe.run_dir}: diverged: in validation {error}; go on from the last checkpoint, or "
                "start anew, with a smaller training.learning_rate"
            ) from None
        translations = [translation.text for translation in found]
        scores = score(translations, [references], ("bleu", "chrf"), recipe.data.tgt_lang)
        signatures.update({result.name: result.signature for result in scores})
        return translations, {result.name: result.value for result in scores}

    batches = [
        make_batch([valid.ids(int(i)) for i in indices], indices=indices)
        for indices in order[ranks.rank :: ranks.world]
    ]
    return ValidationSet(batches, pairs, translate, score_all, signatures)


def _pictures(
    prepared: PreparedData, validation: ValidationSet, model: Model, device: torch.device
) -> Callable[[Logbook, int], None]:
    """Draw the attention of the first sentences of the validation set, teacher-forced."""
    tokenizers = prepared.tokenizers
    count = min(_NUM_PICTURES, len(prepared.valid))
    examples = [tuple(side.tolist() for side in prepared.valid.ids(index)) for index in range(count)]

    @torch.no_grad()
    def draw(logbook: Logbook, step: int) -> None:
        for number, (src_ids, tgt_ids) in enumerate(examples):
            batch = make_batch([(src_ids, tgt_ids)]).to(device)
            weights = model.cross_attention(batch.src_ids, batch.src_mask, batch.decoder_input_ids)[0]
            figure = attention_figure(
                weights.float().cpu().numpy(), tokenizers.src.pieces(src_ids), tokenizers.tgt.pieces(tgt_ids)
            )
            logbook.picture(f"attention/{number}", figure, step)

    return draw
