"""The recipe schema: the only place with default values, and the checks that span several keys.

A check across keys starts its message with the key it blames ("num_heads: …"); `yaml_file.py` turns that into
a place in the file. This module knows nothing of files, of torch, or of what the values do.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)


def _as_tuple(value: object) -> object:
    """One name may be written without the list around it."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str) else value


PathText = Annotated[str, Field(min_length=1), AfterValidator(os.path.expanduser)]
"""A path; `~` is the home folder, as in a shell, which does not look for it behind the `=` of an override."""
Names = Annotated[tuple[PathText, ...], BeforeValidator(_as_tuple)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
# Larger counts fit into no tensor.
_MAX_COUNT = 2**31 - 1
Count = Annotated[int, Field(ge=1, le=_MAX_COUNT)]
CountOrZero = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Metric = Literal["bleu", "chrf", "ter"]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )


class NoiseConfig(_Section):
    """Training sources in sloppy writing, drawn anew in every epoch. Targets stay as written, so that a model
    learns to translate shouted or careless text into clean text. Rates are shares of the training sources."""

    upper: Share = 0.0
    """The whole source in upper case."""
    title: Share = 0.0
    """Every word of the source capitalised."""
    typos: Share = 0.0
    """One to three letters of the source mistyped."""
    no_final_punctuation: Share = 0.0
    """The final full stop, question or exclamation mark of the source removed."""

    @model_validator(mode="after")
    def _check_case(self) -> NoiseConfig:
        if self.upper + self.title > 1.0:
            raise ValueError(
                "title: `upper` + `title` must not exceed 1, since a source has one or the other, but "
                f"{self.upper} + {self.title} > 1"
            )
        return self

    @property
    def is_on(self) -> bool:
        """Whether any source is noised."""
        return any(self.model_dump().values())


class DataConfig(_Section):
    """Which text is used. A source is a file prefix (`train` reads `train.<lang>`, also `.gz` and `.xz`),
    a `.tsv` or `.jsonl` file (also packed), or `hf:NAME[/CONFIG][@SPLIT]`; several sources are joined."""

    root: PathText | None = None
    """Folder that all data paths are relative to (default: the recipe's folder)."""
    train: Annotated[Names, Field(min_length=1)]
    """Training text: one source or a list that is joined."""
    valid: Annotated[Names, Field(min_length=1)]
    """Validation text."""
    test: Names = ()
    """Test sets, each scored by itself under the name written here."""
    src_lang: Annotated[str, Field(min_length=1)]
    """Source language: file suffix, `translation` column and evaluation tokenizer."""
    tgt_lang: Annotated[str, Field(min_length=1)]
    """Target language."""
    max_length: Annotated[int, Field(ge=2, le=_MAX_COUNT)] = 256
    """Longest side of a training pair, in tokens with eos; longer pairs are dropped and counted."""
    max_length_ratio: Annotated[float, Field(ge=1.0)] = 4.0
    """A pair whose longer side has over 8 + this many times the tokens of the other is dropped."""
    prepared_dir: PathText | None = None
    """Where prepared data go (default: prepared/<fingerprint> beside the run directory)."""
    noise: NoiseConfig = NoiseConfig()


class TokenizerConfig(_Section):
    """SentencePiece with byte fallback."""

    type: Literal["unigram", "bpe"] = "unigram"
    """Segmentation algorithm."""
    vocab_size: Annotated[int, Field(ge=8, le=_MAX_COUNT)] = 8000
    """Pieces per vocabulary, the 4 special and 256 byte pieces included."""
    shared: bool = True
    """One joint vocabulary for both languages."""
    sampling: Rate = 0.0
    """Subword sampling in training: unigram smoothing alpha, or BPE merge dropout; 0 is off."""
    from_: Annotated[PathText | None, Field(alias="from")] = None
    """A run directory or SentencePiece model file whose tokenizer is reused."""


PRESETS: dict[str, dict[str, dict[str, int]]] = {
    "transformer": {
        "tiny": {
            "d_model": 128,
            "num_heads": 4,
            "d_ff": 512,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
        },
        "small": {
            "d_model": 256,
            "num_heads": 4,
            "d_ff": 1024,
            "num_encoder_layers": 3,
            "num_decoder_layers": 3,
        },
        "base": {
            "d_model": 512,
            "num_heads": 8,
            "d_ff": 2048,
            "num_encoder_layers": 6,
            "num_decoder_layers": 6,
        },
        "big": {
            "d_model": 1024,
            "num_heads": 16,
            "d_ff": 4096,
            "num_encoder_layers": 6,
            "num_decoder_layers": 6,
        },
    },
    "lstm": {
        "tiny": {"d_model": 152, "num_encoder_layers": 2, "num_decoder_layers": 2},
        "small": {"d_model": 320, "num_encoder_layers": 3, "num_decoder_layers": 3},
        "base": {"d_model": 768, "num_encoder_layers": 4, "num_decoder_layers": 4},
        "big": {"d_model": 1536, "num_encoder_layers": 4, "num_decoder_layers": 4},
    },
}
"""Architecture -> preset -> sizes. Presets of one name have about as many parameters in both."""
OWN_KEYS: dict[str, tuple[str, ...]] = {
    "transformer": (
        "d_ff",
        "num_heads",
        "num_kv_heads",
        "norm_first",
        "norm",
        "activation",
        "positions",
        "max_positions",
        "attention_window",
        "ablation",
    ),
    "lstm": ("attention", "input_feeding"),
}
"""Architecture -> keys of `model` that mean nothing to the others."""


class AblationConfig(_Section):
    """For studies only: parts that are otherwise always on."""

    scale: bool = True
    """Divide attention scores by sqrt(head_dim)."""
    output_projection: bool = True
    """Mix the heads by an output projection after attention."""


class ModelConfig(_Section):
    """Architecture and sizes. A preset fills every size that the recipe does not name."""

    architecture: Literal["transformer", "lstm"] = "transformer"
    """Kind of model: the Transformer, or the attentional LSTM it is compared with."""
    preset: Literal["tiny", "small", "base", "big"] = "base"
    """Sizes to start from."""
    d_model: Count = 512
    """Width of the hidden states."""
    d_ff: Count = 2048
    """Inner width of the feed-forward blocks."""
    num_heads: Count = 8
    """Attention heads (256:4, 512:8 or 16, 1024:16 are known good)."""
    num_kv_heads: Count | None = None
    """Key/value heads shared by groups of query heads (default: num_heads)."""
    num_encoder_layers: Count = 6
    """Encoder layers; a deep encoder with a shallow decoder translates faster."""
    num_decoder_layers: Count = 6
    """Decoder layers."""
    norm_first: bool = True
    """Normalise before each block (pre-norm) instead of after it (post-norm)."""
    norm: Literal["layer_norm", "rms_norm"] = "layer_norm"
    """Kind of normalisation."""
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    """Feed-forward non-linearity."""
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """Position information; learned positions end at max_positions, the others never; none is for studies
    only."""
    max_positions: Count = 512
    """Longest sentence in tokens that learned positions hold."""
    attention_window: Count | None = None
    """Self-attention looks at most this many positions away (default: everywhere)."""
    tied_embeddings: Literal["three_way", "decoder", "none"] = "three_way"
    """Which of source embedding, target embedding and output projection are one matrix."""
    attention: Literal["general", "additive"] = "general"
    """lstm: attention scores, Luong's q^T W m or Bahdanau's v^T tanh(U q + W m)."""
    input_feeding: bool = False
    """lstm: the decoder also reads its last output; slower, since positions then run one by one."""
    ablation: AblationConfig = AblationConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        architecture, preset = values.get("architecture", "transformer"), values.get("preset", "base")
        if not isinstance(architecture, str) or architecture not in PRESETS:
            return values
        for other, keys in OWN_KEYS.items():
            foreign = [key for key in keys if key in values and other != architecture]
            if foreign:
                raise ValueError(
                    f"{foreign[0]}: means something to architecture {other} only; remove it from this recipe"
                )
        presets = PRESETS[architecture]
        return {**presets[preset], **values} if isinstance(preset, str) and preset in presets else values

    @model_serializer(mode="wrap")
    def _without_foreign_keys(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        foreign = {key for other, keys in OWN_KEYS.items() if other != self.architecture for key in keys}
        return {key: value for key, value in dump(self).items() if key not in foreign}

    @model_validator(mode="after")
    def _check_heads(self) -> ModelConfig:
        if self.architecture == "lstm":
            if self.d_model % 2:
                raise ValueError(
                    f"d_model: must be even: half of it reads the source backwards, but is {self.d_model}"
                )
            return self
        if self.d_model % self.num_heads:
            raise ValueError(
                f"num_heads: `num_heads` must divide `d_model`, "
                f"but {self.num_heads} does not divide {self.d_model}"
            )
        kv_heads = self.num_kv_heads or self.num_heads
        if self.num_heads % kv_heads:
            raise ValueError(
                f"num_kv_heads: `num_kv_heads` must divide `num_heads`, "
                f"but {kv_heads} does not divide {self.num_heads}"
            )
        if self.positions == "rotary" and (self.d_model // self.num_heads) % 2:
            raise ValueError(
                "positions: rotary positions need an even head size, "
                f"but d_model / num_heads is {self.d_model // self.num_heads}"
            )
        return self


class TrainingConfig(_Section):
    """How weights are learned. One step is one optimizer update of update_freq micro-batches per process."""

    max_steps: Count = 100_000
    """Updates in all."""
    max_tokens: Literal["auto"] | Count = 4096
    """Rows times padded length of the larger side, per micro-batch and process; auto tries how many fit."""
    update_freq: Count = 1
    """Micro-batches per update, normalised once by the tokens of all; an update may span two epochs."""
    optimizer: Literal["adamw", "adam"] = "adamw"
    """Update rule: Adam with decoupled weight decay, or plain."""
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    """Peak learning rate."""
    beta1: Rate = 0.9
    """Decay of the first moment."""
    beta2: Rate = 0.98
    """Decay of the second moment."""
    eps: Annotated[float, Field(gt=0.0)] = 1e-9
    """Term that keeps the division finite."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    """Weight decay of matrices; biases and norms are never decayed."""
    schedule: Literal["inverse_sqrt", "cosine", "wsd", "constant"] = "inverse_sqrt"
    """Shape of the learning rate after warm-up; wsd = warmup, stable, linear decay."""
    warmup_steps: CountOrZero = 4000
    """Updates of linear warm-up."""
    decay_steps: CountOrZero = 0
    """wsd: the last updates, over which the rate falls to min_learning_rate."""
    min_learning_rate: Annotated[float, Field(ge=0.0)] = 0.0
    """Where cosine and wsd end."""
    label_smoothing: Rate = 0.1
    """Probability mass spread over the other target tokens, never over pad."""
    clip_norm: Annotated[float, Field(ge=0.0)] = 1.0
    """Largest gradient norm, after unscaling; 0 is off."""
    dropout: Rate = 0.1
    """Dropout of embeddings and of every block's output."""
    attention_dropout: Rate = 0.0
    """Dropout of attention weights."""
    activation_dropout: Rate = 0.0
    """Dropout inside the feed-forward block."""
    precision: Precision = "auto"
    """Arithmetic of matrix products; auto takes what the machine is good at."""
    gradient_checkpointing: bool = False
    """Recompute layers in the backward pass instead of keeping their activations."""
    compile: bool = False
    """Fuse the operations of every layer with torch.compile: a slower start for faster steps, on a GPU."""
    ema: Rate = 0.0
    """Decay of the exponential moving average of weights that validation and translate use; 0 is off."""
    patience: CountOrZero = 0
    """Validations without a better metric after which training stops; 0 is off."""
    metric: Literal["bleu", "chrf", "nll", "ppl"] = "bleu"
    """Validation metric that chooses the best checkpoint and feeds patience."""
    save_every: Count = 1000
    """Updates between checkpoints."""
    validate_every: Count = 1000
    """Updates between validations."""
    log_every: Count = 50
    """Updates between log lines."""
    probe_every: CountOrZero = 0
    """Updates between probes of the attention, which studies draw; 0 is off."""
    keep_last: Count = 5
    """Newest checkpoints kept; best is always kept."""
    keep_every: CountOrZero = 0
    """Checkpoints of every multiple of this many updates are kept as well; 0 is off."""
    workers: Literal["auto"] | Annotated[int, Field(ge=0, le=256)] = "auto"
    """Processes that build batches ahead of training; never changes what is trained."""
    max_rollbacks: CountOrZero = 0
    """How often training that diverges goes back to its newest checkpoint, at half the learning rate."""
    process_timeout: Annotated[float, Field(ge=1.0, le=86_400.0)] = 600.0
    """Seconds that one of several processes (torchrun) may keep the others waiting before all end."""
    seed: CountOrZero = 1
    """Seed of initial weights, data order, noise, dropout and subword sampling."""

    @property
    def token_budget(self) -> int:
        """max_tokens, once it is a number."""
        assert self.max_tokens != "auto", "training.max_tokens must be found before it is used"
        return self.max_tokens

    @model_validator(mode="after")
    def _check_schedule(self) -> TrainingConfig:
        if self.schedule == "wsd" and self.warmup_steps + self.decay_steps > self.max_steps:
            raise ValueError(
                "decay_steps: `warmup_steps` + `decay_steps` must not exceed `max_steps`, "
                f"but {self.warmup_steps} + {self.decay_steps} > {self.max_steps}"
            )
        if self.min_learning_rate > self.learning_rate:
            raise ValueError(
                "min_learning_rate: must not exceed `learning_rate`, "
                f"but {self.min_learning_rate} > {self.learning_rate}"
            )
        return self


class DecodingConfig(_Section):
    """How translations are searched; the same words with dashes are the flags of `translate`."""

    beam_size: Count = 5
    """Hypotheses kept per sentence; 1 is greedy search."""
    nbest: Count = 1
    """Translations returned per sentence, at most beam_size unless they are drawn; fewer where no more texts
    differ."""
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    """alpha in log-probability / length^alpha, the length counting eos."""
    max_len_a: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.5
    """Output is at most max_len_a * source tokens + max_len_b tokens."""
    max_len_b: CountOrZero = 20
    """See max_len_a."""
    min_length: CountOrZero = 1
    """Fewest output tokens before eos, not counting those that leave no trace in text; a line whose longest
    length is less has that many."""
    no_repeat_ngram: CountOrZero = 0
    """No run of this many tokens comes twice in a translation; 0 is off."""
    repetition_penalty: Annotated[float, Field(ge=1.0, le=100.0)] = 1.0
    """The log-probability of a token that has come before is multiplied by this; 1 is off."""
    coverage_penalty: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    """beta: hypotheses of a beam lose what they have left untranslated, told by their attention; 0 is off."""
    temperature: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    """Above 0 nothing is searched: nbest translations are drawn, equal ones given once; at 1 from the model's
    own distribution."""
    top_k: CountOrZero = 0
    """Draw from the likeliest top_k tokens alone; 0 is off."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw from the fewest likeliest tokens that together have this probability; 1 is off."""
    seed: CountOrZero = 1
    """Seed of what is drawn."""
    split_long: bool = True
    """Translate a line beyond the trained length in parts, split where sentences end."""
    retry: bool = True
    """Search again, without repeats, for a line whose translation looks wrong."""
    batch_size: Count = 64
    """Sentences translated together; the text never depends on it in fp32."""
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = "fp32"
    """Arithmetic of matrix products; bf16 and int8 (CPUs only) are the fast lanes."""

    @model_validator(mode="after")
    def _check_nbest(self) -> DecodingConfig:
        if self.nbest > self.beam_size and not self.temperature:
            raise ValueError(
                f"nbest: `nbest` must not exceed `beam_size`, but {self.nbest} > {self.beam_size}; "
                f"raise that to {self.nbest} as well (--beam-size {self.nbest})"
            )
        return self

    @model_validator(mode="after")
    def _check_lengths(self) -> DecodingConfig:
        if not self.max_len_a and self.min_length > max(self.max_len_b, 1):
            raise ValueError(
                f"min_length: {self.min_length} tokens are more than any translation may have, which is "
                f"`max_len_b` {self.max_len_b} with `max_len_a` 0; lower it, or raise one of those"
            )
        return self

    @model_validator(mode="after")
    def _check_drawing(self) -> DecodingConfig:
        if not self.temperature and (self.top_k or self.top_p < 1.0):
            key, value = ("top_k", self.top_k) if self.top_k else ("top_p", self.top_p)
            raise ValueError(
                f"{key}: {value} narrows what is drawn, but nothing is drawn; set `temperature` above 0"
            )
        if self.coverage_penalty and (self.temperature or self.beam_size == 1):
            found = f"temperature is {self.temperature}" if self.temperature else "beam_size is 1"
            raise ValueError(
                f"coverage_penalty: {self.coverage_penalty} chooses among the hypotheses of a beam, "
                f"but {found}; set it to 0, or search with a beam"
            )
        return self


class EvaluationConfig(_Section):
    """Which scores `evaluate` prints."""

    metrics: Annotated[tuple[Metric, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = (
        "bleu",
        "chrf",
        "ter",
    )
    """bleu, chrf (chrF2++) and ter, all by sacreBLEU on raw text."""


class Recipe(_Section):
    """One system: its data, tokenizer, model, training, decoding and evaluation."""

    run_dir: PathText
    """Where everything of this run is written, relative to the current folder."""
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = Field(default_factory=lambda: ModelConfig.model_validate({}))
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _check_across_sections(self) -> Recipe:
        if self.model.tied_embeddings == "three_way" and not self.tokenizer.shared:
            raise ValueError(
                "model.tied_embeddings: three_way needs one joint vocabulary, but tokenizer.shared is false; "
                "use `decoder` or `none`, or share the vocabulary"
            )
        if self.model.architecture == "lstm" and self.training.compile:
            raise ValueError(
                "training.compile: the lstm runs in kernels that cannot be compiled; remove the key"
            )
        if self.model.architecture == "lstm" and self.training.activation_dropout:
            raise ValueError(
                "training.activation_dropout: the lstm has no feed-forward blocks; remove the key"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise ValueError(
                "model.max_positions: learned positions must hold every training sentence, but "
                f"{self.model.max_positions} < data.max_length {self.data.max_length}"
            )
        return self
