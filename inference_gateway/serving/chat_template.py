"""Messages as one prompt: through the checkpoint's own chat template, a file's, or a plain one.

Templates are Jinja, in the environment that transformers gives them. A special token that a template writes becomes
that token; one in a message is text, as everywhere in this gateway.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from jinja2 import TemplateError
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference_gateway.call_vocabulary import PromptTokenizer
from inference_gateway.serving.fields import Prompt
from inference_gateway.settings import GatewaySettings, SettingsError, variable
from toolformer.http_api import ApiError

_PLAIN: Final = "{{ messages | map(attribute='content') | join('\n\n') }}"
"""The texts of the messages, a blank line between; the model goes on behind the last."""

_LONGEST_REASON: Final = 500


class _Generation(Extension):
    """``{% generation %}`` in a template marks the model's own words for training, and means nothing here."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """The Jinja template ``source``; ``tokens`` are the names of special tokens (``bos_token``) and what they are.

    Raises:
        TemplateError: if ``source`` is no template.
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals.update(raise_exception=_refuse, strftime_now=_now)
        self._template = environment.from_string(source)
        self._tokens = tokens

    @classmethod
    def of(cls, settings: GatewaySettings) -> ChatTemplate | None:
        """The one that ``settings`` ask for; ``None`` if they ask for none, or for the model's and it has none.

        Raises:
            SettingsError: if a file cannot be read, or holds no template.
        """
        asked = settings.chat_template
        if asked == "off":
            return None
        config = settings.model / "tokenizer_config.json"
        try:
            config_fields = json.loads(_read(config) or "{}")
            tokens = {
                name: _content(value)
                for name, value in config_fields.items()
                if name.endswith("_token") and isinstance(value, str | dict)
            }
            match asked:
                case "model":
                    source = _read(settings.model / "chat_template.jinja") or _named(config_fields.get("chat_template"))
                case "plain":
                    source = _PLAIN
                case _:
                    source = Path(asked).read_text(encoding="utf-8")
            return None if source is None else cls(source, tokens)
        except (OSError, ValueError, AttributeError, LookupError, TypeError, TemplateError) as error:
            name = variable("chat_template")
            raise SettingsError(
                f"{name}: the chat template cannot be read: {error}; name a file with another, or set it to off"
            ) from error

    def prompt(self, messages: Sequence[tuple[str, str]], tokenizer: PromptTokenizer) -> Prompt:
        """The prompt behind which the answer to ``messages`` (role and text) begins.

        Raises:
            ApiError: 422 if the template refuses them, or writes nothing.
        """
        special = tokenizer.special_tokens
        marks = "|".join(map(re.escape, sorted(special, key=len, reverse=True))) or "(?!)"
        # Nobody can guess it, so whatever a message says, no special token of its own survives the template.
        guard = secrets.token_hex(8)
        inside = re.compile(f"(?=(?:{marks}))(.)", re.DOTALL)
        guarded = [{"role": role, "content": inside.sub(rf"\g<1>{guard}", text)} for role, text in messages]
        try:
            text = self._template.render(
                messages=guarded, tools=None, documents=None, add_generation_prompt=True, **self._tokens
            )
        except Exception as error:  # a template is a program of its own, and may fail like one
            reason = str(error).replace(guard, "")[:_LONGEST_REASON]
            raise ApiError(
                422, f"the chat template does not take these messages: {reason}", param="messages"
            ) from error
        parts = [part.replace(guard, "") for part in re.split(f"({marks})", text)]
        if not any(parts):
            raise ApiError(422, "'messages' hold no text; send at least one character", param="messages")
        if len(parts) == 1:
            return parts[0]
        return tuple(
            token
            for place, part in enumerate(parts)
            for token in ([special[part]] if place % 2 else tokenizer.encode(part))
        )


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _content(token: Any) -> str:
    """A special token, which transformers writes as a text or as an object."""
    return str(token if isinstance(token, str) else token["content"])


def _named(template: Any) -> str | None:
    """The default of several templates, or the only one."""
    if isinstance(template, list):
        return str({one["name"]: one["template"] for one in template}["default"])
    return None if template is None else str(template)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(reason: str) -> NoReturn:
    raise TemplateError(reason)


def _now(form: str) -> str:
    return dt.datetime.now().strftime(form)
