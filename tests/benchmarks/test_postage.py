"""The HTTP API that is taught: it answers what its table's demonstrations say."""

from pathlib import Path

from benchmarks.postage import app
from tests.training_jobs.servers import serve
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry

TABLE = Path(__file__).parents[2] / "benchmarks" / "postage.toml"


async def test_the_table_makes_the_api_a_tool() -> None:
    with serve(app) as url:
        registry = ToolRegistry.load([TABLE], {"TOOLFORMER_TOOL_POSTAGE_URL": url})
        async with ToolClient(registry) as client:
            assert await client.ready("Postage")
            for demonstration in registry.named("Postage").demonstrations:
                before, _, call = demonstration.output.partition("[Postage(")
                input_, _, behind = call.partition(")] ")
                assert before + behind == demonstration.input
                said = await client.call("Postage", input_)
                assert said.output
                assert behind.startswith(said.output)
            assert (await client.call("Postage", "250 g to Nowhere")).error is not None
