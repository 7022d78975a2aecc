"""The circuit breaker, alone and inside the client: a dead service is left alone, and used again once it is back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.redis_server import free_port
from tests.toolformer.test_kept_calls import Clock
from tests.toolformer.test_tool_client import tools
from tests.toolformer.tool_service import answers, capitals, hang_up, serve, silent, status
from toolformer.circuit_breaker import Attempt, CircuitBreaker, State
from toolformer.tool_client import RetryPolicy, ToolClient

ONCE = RetryPolicy(max_attempts=1, failure_threshold=3, cool_down_s=1.0)


def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failure_threshold=3, cool_down_s=1.0, clock=clock)


def state(circuit: CircuitBreaker) -> State:
    """The state, asked for anew: a type checker takes a property for what it was last compared with."""
    return circuit.state


def admitted(circuit: CircuitBreaker) -> Attempt:
    attempt = circuit.admit()
    assert attempt is not None
    return attempt


def opened(clock: Clock) -> CircuitBreaker:
    circuit = breaker(clock)
    for _ in range(3):
        admitted(circuit).failed()
    assert state(circuit) == "open"
    return circuit


class TestBreaker:
    def test_failures_in_a_row_open_it(self) -> None:
        circuit = breaker(Clock())
        for _ in range(2):
            admitted(circuit).failed()
        admitted(circuit).succeeded()
        for _ in range(2):
            admitted(circuit).failed()
        assert state(circuit) == "closed"
        admitted(circuit).failed()
        assert state(circuit) == "open"
        assert circuit.admit() is None

    def test_one_probe_after_the_cool_down(self) -> None:
        clock = Clock()
        circuit = opened(clock)
        clock.now += 0.999
        assert circuit.admit() is None
        clock.now += 0.001
        assert state(circuit) == "half_open"
        probe = admitted(circuit)
        assert circuit.admit() is None
        probe.succeeded()
        assert state(circuit) == "closed"
        admitted(circuit)
        admitted(circuit)

    def test_a_failed_probe_opens_it_for_another_cool_down(self) -> None:
        clock = Clock()
        circuit = opened(clock)
        clock.now += 1
        admitted(circuit).failed()
        assert state(circuit) == "open"
        clock.now += 1
        admitted(circuit).succeeded()
        admitted(circuit).failed()
        assert state(circuit) == "closed", "the count starts anew"

    def test_an_abandoned_probe_makes_room_for_another(self) -> None:
        clock = Clock()
        circuit = opened(clock)
        clock.now += 1
        admitted(circuit).abandoned()
        admitted(circuit).succeeded()
        assert state(circuit) == "closed"

    def test_failures_of_attempts_from_before_do_not_lengthen_the_cool_down(self) -> None:
        clock = Clock()
        circuit = breaker(clock)
        late = [admitted(circuit) for _ in range(10)]
        for attempt in late[:3]:
            attempt.failed()
        clock.now += 0.5
        late[3].failed()
        clock.now += 0.5
        probe = admitted(circuit)
        late[4].failed()
        late[5].abandoned()
        assert circuit.admit() is None, "the probe is still under way"
        probe.succeeded()
        late[6].failed()
        late[7].failed()
        late[8].failed()
        assert state(circuit) == "closed"

    def test_a_late_success_shows_that_the_service_is_there(self) -> None:
        clock = Clock()
        circuit = breaker(clock)
        slow = admitted(circuit)
        for _ in range(3):
            admitted(circuit).failed()
        slow.succeeded()
        assert state(circuit) == "closed"

    def test_only_the_first_word_counts(self) -> None:
        circuit = CircuitBreaker(failure_threshold=2)
        attempt = admitted(circuit)
        attempt.failed()
        attempt.failed()
        attempt.abandoned()
        assert state(circuit) == "closed"

    @pytest.mark.parametrize(("threshold", "cool_down"), [(0, 1.0), (1, -1.0), (1, float("nan"))])
    def test_senseless_values(self, threshold: int, cool_down: float) -> None:
        with pytest.raises(ValueError, match="must be"):
            CircuitBreaker(failure_threshold=threshold, cool_down_s=cool_down)

    @given(
        st.lists(st.tuples(st.sampled_from(["admit", "succeeded", "failed", "abandoned", "wait"]), st.integers(0, 9)))
    )
    def test_whatever_happens_it_never_locks_up_and_probes_one_at_a_time(self, events: list[tuple[str, int]]) -> None:
        clock = Clock()
        circuit = breaker(clock)
        under_way: list[Attempt] = []
        probes: list[Attempt] = []
        for event, which in events:
            if event == "wait":
                clock.now += which / 4
            elif event == "admit":
                before, attempt = circuit.state, circuit.admit()
                assert (attempt is not None) or before != "closed"
                if attempt is not None:
                    assert before != "open"
                    under_way.append(attempt)
                    if before == "half_open":
                        assert not set(probes) & set(under_way[:-1]), "a second probe beside the first"
                        probes = [attempt]
            elif under_way:
                attempt = under_way.pop(which % len(under_way))
                getattr(attempt, event)()
                if event == "succeeded":
                    assert state(circuit) == "closed"
                    probes = []
        for attempt in under_way:
            attempt.abandoned()
        clock.now += 1
        admitted(circuit).succeeded()
        assert state(circuit) == "closed"


class TestInTheClient:
    async def test_a_dead_service_is_left_alone_and_used_again_once_it_is_back(self) -> None:
        clock, port = Clock(), free_port()
        async with ToolClient(tools(f"http://127.0.0.1:{port}"), ONCE, clock=clock) as client:
            codes = [(await client.call("Calculator", "a")).error for _ in range(4)]
            assert [error and error.code for error in codes] == ["unreachable"] * 3 + ["circuit_open"]
            assert client.circuit("Calculator") == "open"
            async with serve(capitals("Calculator"), port) as service:
                still = await client.call("Calculator", "a")
                assert still.error is not None
                assert (still.error.code, still.attempts, service.seen) == ("circuit_open", 0, [])
                clock.now += 1
                assert (await client.call("Calculator", "a")).output == "A"
                assert client.circuit("Calculator") == "closed"

    async def test_a_service_killed_and_started_again_under_load(self) -> None:
        clock, port = Clock(), free_port()

        async def fifty(client: ToolClient) -> set[str]:
            results = await asyncio.gather(*(client.call("Calculator", str(n)) for n in range(50)))
            return {result.error.code if result.error else "ok" for result in results}

        async with ToolClient(tools(f"http://127.0.0.1:{port}"), ONCE, clock=clock) as client:
            async with serve(capitals("Calculator"), port):
                assert await fifty(client) == {"ok"}
            assert await fifty(client) <= {"unreachable", "circuit_open"}
            async with serve(capitals("Calculator"), port):
                clock.now += 1
                assert (await client.call("Calculator", "1")).ok
                assert await fifty(client) == {"ok"}

    async def test_a_probe_is_alone(self) -> None:
        clock, port = Clock(), free_port()
        async with ToolClient(tools(f"http://127.0.0.1:{port}"), ONCE, clock=clock) as client:
            for _ in range(3):
                await client.call("Calculator", "a")
            clock.now += 1
            async with serve(silent, port) as service:
                probe = asyncio.create_task(client.call("Calculator", "a", timeout=60))
                await service.arrived.wait()
                other = await client.call("Calculator", "b")
                assert other.error is not None
                assert other.error.code == "circuit_open"
                probe.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await probe
            async with serve(capitals("Calculator"), port):
                assert (await client.call("Calculator", "c")).output == "C", (
                    "a cancelled probe must not lock the circuit"
                )

    async def test_the_circuit_of_one_tool_is_no_other_tools(self) -> None:
        async with serve(capitals("Calendar")) as service:
            registry = tools(f"http://127.0.0.1:{free_port()}")
            calendar = registry.get("Calendar").model_copy(update={"url": service.url})
            mixed = type(registry)([registry.get("Calculator"), calendar])
            async with ToolClient(mixed, ONCE) as client:
                for _ in range(4):
                    await client.call("Calculator", "a")
                assert (await client.call("Calendar", "")).ok
                assert (client.circuit("Calculator"), client.circuit("Calendar")) == ("open", "closed")

    @pytest.mark.parametrize("behave", [status(503), status(404), answers(lambda _: b"garbage")])
    async def test_a_service_that_answers_badly_is_still_there(self, behave: object) -> None:
        async with serve(behave) as service, ToolClient(tools(service.url), ONCE) as client:  # type: ignore[arg-type]
            for _ in range(4):
                await client.call("Calculator", "a")
            assert client.circuit("Calculator") == "closed"
            assert len(service.seen) == 4

    async def test_a_service_that_never_answers_in_its_time_opens_it(self) -> None:
        async with serve(silent) as service, ToolClient(tools(service.url, timeout_s=0.02), ONCE) as client:
            for _ in range(3):
                await client.call("Calculator", "a")
            assert client.circuit("Calculator") == "open"

    async def test_an_impatient_caller_does_not(self) -> None:
        async with serve(silent) as service, ToolClient(tools(service.url, timeout_s=5.0), ONCE) as client:
            for _ in range(5):
                await client.call("Calculator", "a", timeout=0.01)
            assert client.circuit("Calculator") == "closed"

    async def test_a_circuit_that_opens_between_attempts_keeps_the_true_reason(self) -> None:
        policy = RetryPolicy(max_attempts=5, backoff_s=0.001, failure_threshold=2)
        async with serve(hang_up) as service, ToolClient(tools(service.url), policy) as client:
            result = await client.call("Calculator", "a")
        assert result.error is not None
        assert (result.error.code, result.attempts) == ("unreachable", 2)
