"""What the gateway serves, and how it is: models, tools, health, readiness."""

from __future__ import annotations

from typing import Final, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from inference_gateway.serving.gateway import Gateway
from toolformer.http_api import ApiError, documented_errors

TOOL_CHECK_SECONDS: Final = 1.0
"""How long the list of tools waits for their services."""

PROBE_CHECK_SECONDS: Final = 0.5
"""The same for readiness: a probe commonly waits one second itself, and a tool must not make it fail."""


class Model(BaseModel):
    """A served model."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When it was loaded, in Unix seconds.")
    owned_by: Literal["toolformer"] = "toolformer"
    max_model_len: int = Field(description="Tokens of one sequence: prompt, completion and tools' results.")
    description: str | None = Field(description="What it is and knows, for people.")


class ModelList(BaseModel):
    """The served models."""

    object: Literal["list"] = "list"
    data: list[Model]


class ToolLimits(BaseModel):
    """What a call to a tool may take."""

    max_input_tokens: int
    max_result_tokens: int
    timeout_s: float = Field(description="Seconds for a call, unless the request says otherwise.")


class ToolInfo(BaseModel):
    """A tool that completions may call."""

    name: str = Field(description="Its name in text and in `tools`.")
    object: Literal["tool"] = "tool"
    description: str
    quoted: bool = Field(description="Whether its input is in double quotes in text.")
    takes_input: bool
    takes_date: bool = Field(description="Whether `tool_context.date` reaches it.")
    limits: ToolLimits
    ready: bool = Field(description="Whether its service says that it can answer.")
    reason: str | None = Field(description="Why it cannot.")


class ToolList(BaseModel):
    """The tools, in the order in which they are configured."""

    object: Literal["list"] = "list"
    data: list[ToolInfo]


class ToolReadiness(BaseModel):
    """Whether a tool's service can answer."""

    ready: bool
    reason: str | None


class Health(BaseModel):
    """The process is up and its event loop turns."""

    status: Literal["ok"] = "ok"


class GatewayReadiness(BaseModel):
    """The gateway takes completions. A tool that is down does not change that: calls to it fail, completions go on."""

    status: Literal["ready"] = "ready"
    model: str
    notices: list[str] = Field(description="How the backend differs from what requests may ask for.")
    tools: dict[str, ToolReadiness]


def operation_routes(gateway: Gateway) -> APIRouter:
    """The routes about ``gateway`` itself.

    Raises:
        SettingsError: if the model's description cannot be read.
    """
    router = APIRouter()
    description = gateway.settings.describe_model()

    def served() -> Model:
        backend = gateway.ready_backend()
        return Model(
            id=backend.model_name,
            created=gateway.loaded_at,
            max_model_len=backend.max_model_len,
            description=description,
        )

    @router.get("/v1/models", summary="List models", tags=["models"], responses=documented_errors(503))
    async def models() -> ModelList:
        return ModelList(data=[served()])

    @router.get("/v1/models/{id:path}", summary="One model", tags=["models"], responses=documented_errors(404, 503))
    async def model(id: str) -> Model:
        found = served()
        if id != found.id:
            message = f"there is no model {id[:100]!r}; this gateway serves {found.id!r}"
            raise ApiError(404, message, param="model", code="model_not_found")
        return found

    @router.get("/v1/tools", summary="List tools", tags=["tools"])
    async def tools() -> ToolList:
        return ToolList(
            data=[
                ToolInfo(
                    name=tool.name,
                    description=tool.description,
                    quoted=tool.quoted,
                    takes_input=tool.takes_input,
                    takes_date=tool.takes_date,
                    limits=ToolLimits(
                        max_input_tokens=tool.max_input_tokens,
                        max_result_tokens=tool.max_result_tokens,
                        timeout_s=tool.timeout_s,
                    ),
                    ready=readiness.ok,
                    reason=readiness.reason or None,
                )
                for tool, readiness in await gateway.tool_readiness(seconds=TOOL_CHECK_SECONDS)
            ]
        )

    @router.get("/health", summary="Whether the process is up", tags=["operation"])
    async def health() -> Health:
        return Health()

    @router.get("/ready", summary="Whether completions are taken", tags=["operation"], responses=documented_errors(503))
    async def ready() -> GatewayReadiness:
        backend = gateway.ready_backend()
        answers = await gateway.tool_readiness(seconds=PROBE_CHECK_SECONDS)
        return GatewayReadiness(
            model=backend.model_name,
            notices=list(backend.notices),
            tools={tool.name: ToolReadiness(ready=answer.ok, reason=answer.reason or None) for tool, answer in answers},
        )

    return router
