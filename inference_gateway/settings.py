"""The gateway's settings, read from the environment: ``TOOLFORMER_MODEL`` and ``TOOLFORMER_GATEWAY_<FIELD>``."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from toolformer.http_api import LogFormat
from toolformer.model_files.home import BUNDLED_MODELS

BUNDLED_MODEL: Final = BUNDLED_MODELS / "gptj-tools"
"""The small GPT-J that comes with the project."""

_PREFIX: Final = "TOOLFORMER_GATEWAY_"
_MODEL: Final = "TOOLFORMER_MODEL"


class SettingsError(Exception):
    """A setting cannot hold; each line names the environment variable and says what it must be."""


class GatewaySettings(BaseSettings):
    """Where the gateway listens, what it serves, and its limits."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, validate_by_name=True, validate_by_alias=True, frozen=True)

    model: Path = Field(
        BUNDLED_MODEL, alias=_MODEL, description="directory of a Hugging Face checkpoint; remote: of its tokenizer.json"
    )
    model_name: str | None = Field(None, min_length=1, description="its name for clients; by default the directory's")
    model_description: str | None = Field(
        None, description="what it is and knows, for people; by default what its directory's description.txt says"
    )
    chat_template: str = Field(
        "model",
        min_length=1,
        description="how messages become a prompt: model (its own template), off, plain, or a file with a template",
    )
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="cpu, cuda or cuda:<number>")
    dtype: Literal["float32", "bfloat16", "int8", "int4"] = Field(
        "float32",
        description="of the weights; int8 and int4 on a processor, from files that `toolformer quantize` makes",
    )
    compiled_step: bool = Field(
        True,
        description="steps in compiled code or, on a GPU, recorded as CUDA graphs, where model and machine allow it",
    )
    torch_threads: int | None = Field(None, ge=1, description="threads of a model step; by default torch's own choice")

    backend: Literal["local", "vllm", "openai", "tgi"] = Field("local", description="what computes tokens")
    tensor_parallel: int = Field(1, ge=1, description="vllm: ranks that the model is split over")
    backend_url: str | None = Field(None, pattern=r"^https?://[^\s@]+$", description="the model server's address")
    backend_model: str | None = Field(None, min_length=1, description="its name for the model; by default its first")
    backend_api_key: SecretStr | None = Field(None, min_length=1, description="the key it wants")
    backend_api_key_file: Path | None = Field(None, description="a file with that key")
    backend_top_tokens: int = Field(20, ge=0, le=1000, description="likely tokens to ask it for at most; 0: none")
    backend_silence_seconds: float = Field(60.0, gt=0, le=3600, description="a stream silent for so long is dead")
    backend_probe_seconds: float = Field(2.0, gt=0, le=600, description="between looks at whether it is there")

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535, description="0 takes a free port")
    grpc_port: int | None = Field(None, ge=0, le=65535, description="gRPC as well, there; 0 takes a free port")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: LogFormat = Field("text", description="text for people, json for machines")
    log_prompts: bool = Field(False, description="whether the log holds prompts and completions")
    drain_seconds: int = Field(30, ge=1, description="seconds that running requests get to end after SIGTERM")

    max_sequences: int = Field(64, ge=1, description="completions that decode at once")
    max_waiting: int = Field(256, ge=1, description="completions that may wait for memory before more are refused")
    cache_mib: int | None = Field(None, ge=1, description="MiB of the model's key-value cache, kept prefixes included")
    reuse_prefixes: bool = Field(True, description="whether what was computed serves requests that begin alike")
    prefill_tokens: int = Field(128, ge=1, description="prompt tokens computed in a step beside those that decode")
    hold_seconds: float = Field(
        30.0, ge=0, description="seconds a completion keeps its cache for itself in a tool call"
    )
    max_model_len: int = Field(2048, ge=2, description="tokens of one sequence; the model's own limit holds too")
    max_body_bytes: int = Field(1_048_576, ge=1024, description="bytes of a request's body")
    body_seconds: float = Field(30.0, gt=0, le=3600, description="seconds that a request's body may take to come")
    max_connections: int = Field(2048, ge=1, description="open connections before silent ones are closed for new ones")
    max_requests: int = Field(512, ge=1, description="completion requests in progress before more are refused")
    max_choices: int = Field(16, ge=1, description="choices of one request: prompts times n")
    completion_timeout: float = Field(120.0, gt=0, le=3600, description="seconds of one completion, waiting included")
    keep_alive_seconds: float = Field(5.0, gt=0, le=60, description="silence in a stream before a keep-alive is sent")

    api_keys: SecretStr = Field(SecretStr(""), description="keys that clients may use, a comma between them")
    api_keys_file: Path | None = Field(None, description="a file of such keys, one a line")
    metrics_need_key: bool = Field(False, description="whether /metrics needs a key as well")
    key_max_requests: int | None = Field(None, ge=1, description="choices in progress at once with one key")
    key_requests_per_minute: int | None = Field(None, ge=1, description="choices begun in a minute with one key")
    cors_origins: str = Field("", description="origins whose pages may use the API, a comma between them; * for all")

    api_top_k: int = Field(10, ge=0, le=1000, description="the request field's default (section 4.2)")
    max_calls: int = Field(1, ge=0, le=64, description="the request field's default (the paper's is 1)")
    max_cost: float | None = Field(None, ge=0, allow_inf_nan=False, description="the request field's default")
    tool_prompting: bool = Field(False, description="the request field's default")
    max_repeats: int = Field(
        0, ge=0, le=64, description="a text ends whose last few words came so often in a row; 0: it goes on"
    )
    early_dispatch: bool = Field(False, description="whether pure tools are called before the model writes ->")

    @classmethod
    def read(cls) -> Self:
        """The settings of the environment.

        Raises:
            SettingsError: if a variable's value is not what its field asks for.
        """
        try:
            return cls()
        except ValidationError as error:
            raise SettingsError("\n".join(map(_explain, error.errors()))) from error

    def describe_model(self) -> str | None:
        """What the model is and knows, in a sentence or two for people; ``None`` if nobody wrote that down.

        Raises:
            SettingsError: if the model's ``description.txt`` cannot be read.
        """
        file = self.model / "description.txt"
        if self.model_description is not None or not file.is_file():
            return self.model_description or None
        try:
            return " ".join(file.read_text(encoding="utf-8").split()) or None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def variable(field: str) -> str:
    """The environment variable of a setting."""
    return _MODEL if field == "model" else _PREFIX + field.upper()


def _explain(problem: object) -> str:
    assert isinstance(problem, dict)
    name = str(problem["loc"][0])
    field = GatewaySettings.model_fields.get(name)
    meaning = f" ({field.description})" if field and field.description else ""
    return f"{name if name == _MODEL else variable(name)}{meaning}: {problem['msg']}, not {problem['input']!r}"
