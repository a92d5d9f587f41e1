"""Passes, cost functions, models and policies of one's own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import foretrain
import pytest
from foretrain import plugins
from foretrain.plugins import Exchange

ON = {"on": "dgx-a100", "gpus": 16}


@plugins.rewrite_pass(stage="fuse", parameters={"part": 0.5})
def freeze(draft, part):
    """Leaves out the gradients of the front layers."""
    whole = sum(one.bytes for one in draft.exchanges)
    kept, bytes_ = [], 0
    for one in draft.exchanges:
        bytes_ += one.bytes
        if bytes_ <= whole * (1 - part) + 0.5:
            kept.append(one)
    draft.note(f"{part:.0%} of the gradient bytes are frozen")
    draft.exchanges = kept


def predicted(job, **options) -> int:
    return foretrain.predict(job, **ON, **options).sizes[0].step_time.value_ns


def test_a_pass_joins_the_others(job) -> None:
    listed = foretrain.strategies()
    assert "freeze" in str(listed)
    answer = foretrain.predict(job, **ON, strategy="freeze(0.75) | fuse(25MiB)")
    assert "75% of the gradient bytes are frozen" in str(answer)
    assert predicted(job, strategy="freeze(1)") < predicted(job, strategy="ddp")
    # None frozen is what the pass does not change.
    assert predicted(job, strategy="freeze(0) | fuse(25MiB)") == predicted(
        job, strategy="fuse(25MiB)"
    )


def test_a_pass_that_changes_nothing_changes_nothing(job) -> None:
    seen = set()

    @plugins.rewrite_pass(stage="topology")
    def look(draft):
        seen.add((draft.replicas, draft.replicas_per_node, draft.micro_steps))
        assert sum(size for size, _ in draft.gradients) > 0

    assert predicted(job, strategy="fuse(25MiB) | look") == predicted(job, strategy="fuse(25MiB)")
    # One replica and the recorded two are what scaling is told against.
    assert seen == {(1, 1, 1), (2, 2, 1), (16, 8, 1)}


def test_merging_and_splitting(job) -> None:
    @plugins.rewrite_pass(name="one-bucket", stage="shard")
    def one_bucket(draft):
        draft.exchanges = [Exchange.merged(draft.exchanges)]

    @plugins.rewrite_pass(name="cut", stage="partition", parameters={"size": "4MiB"})
    def cut(draft, size):
        draft.exchanges = [part for one in draft.exchanges for part in one.split(size)]

    # Foretrain's own passes do the same.
    assert predicted(job, strategy="one-bucket") == predicted(job, strategy="fuse(1TiB)")
    ours = predicted(job, strategy="fuse(25MiB) | cut(4MiB)")
    assert ours == predicted(job, strategy="fuse(25MiB) | partition(4MiB)")


def test_a_pass_asks_for_costs(job) -> None:
    asked = []

    @plugins.rewrite_pass(stage="schedule", parameters={"times": 2, "least": "1us", "on": True})
    def ask(draft, times, least, on):
        assert (times, least, on) == (3, 5_000, True)
        asked[:] = [draft, [draft.cost_ns("all-reduce", 1 << at) for at in range(10, 30, 5)]]

    predicted(job, strategy="fuse(25MiB) | ask(3, least=5us)")
    draft, costs = asked
    assert costs == sorted(costs) and costs[0] > 0
    with pytest.raises(RuntimeError, match="only while the function runs"):
        draft.cost_ns("all-reduce", 1024)


def test_what_a_pass_does_wrong_is_said(job) -> None:
    @plugins.rewrite_pass(stage="schedule")
    def fails(draft):
        raise LookupError("no such layer")

    with pytest.raises(LookupError, match="no such layer"):
        predicted(job, strategy="fails")

    @plugins.rewrite_pass(stage="schedule")
    def odd_way(draft):
        draft.exchanges[0].way = "by pigeon"

    with pytest.raises(foretrain.ForetrainError, match='pass "odd-way": no way "by pigeon"'):
        predicted(job, strategy="odd-way")

    @plugins.rewrite_pass(stage="schedule")
    def no_exchange(draft):
        draft.exchanges = [1, 2]

    with pytest.raises(TypeError):
        predicted(job, strategy="no-exchange")

    @plugins.rewrite_pass(stage="schedule")
    def twice(draft):
        draft.exchanges = list(draft.exchanges) * 2

    with pytest.raises(ValueError, match="is there twice"):
        predicted(job, strategy="twice")

    @plugins.rewrite_pass(stage="schedule")
    def merged_twice(draft):
        Exchange.merged([draft.exchanges[0], draft.exchanges[0]])

    with pytest.raises(ValueError, match="twice"):
        predicted(job, strategy="merged-twice")

    @plugins.rewrite_pass(stage="schedule")
    def late(draft):
        draft.exchanges[0].delay_ns = 2**62

    with pytest.raises(foretrain.ForetrainError, match='pass "late": a delay of'):
        predicted(job, strategy="late")

    @plugins.rewrite_pass(stage="schedule")
    def again(draft):
        predicted(job, strategy="again")

    with pytest.raises(RecursionError, match="a verb within a function"):
        predicted(job, strategy="again")
    with pytest.raises(TypeError, match="expected a function, not int"):
        plugins.rewrite_pass(name="number")(5)
    with pytest.raises(foretrain.ForetrainError, match="already"):
        plugins.rewrite_pass(name="fuse")(lambda draft: None)
    with pytest.raises(foretrain.ForetrainError, match="no stage"):
        plugins.rewrite_pass(name="x", stage="later")(lambda draft: None)


def test_cost_functions(job) -> None:
    seen = []

    def collective(kind, bytes, ranks, nodes, modelled_ns):
        seen.append((kind, bytes, ranks, nodes))
        return 0 if ranks > 1 else None

    def node(name, kind, modelled_ns, **_):
        return modelled_ns * 2 if kind == "kernel" else None

    plugins.cost_function("free-network", collective=collective)
    plugins.cost_function("slow-kernels", node=node)
    usual = predicted(job)
    assert predicted(job, costs="free-network") < usual
    assert ("all-reduce", 16, 2) in {(kind, ranks, nodes) for kind, _, ranks, nodes in seen}
    slow = foretrain.predict(job, **ON, costs="slow-kernels")
    assert slow.sizes[0].step_time.value_ns > 1.5 * usual
    assert "slow-kernels gives" in str(slow)
    assert foretrain.whatif(job, costs="slow-kernels").holds
    plugins.cost_function("nothing")
    assert predicted(job, costs="nothing") == usual


def test_what_a_cost_function_does_wrong_is_said(job) -> None:
    plugins.cost_function("fails", collective=lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        predicted(job, costs="fails")
    plugins.cost_function("negative", node=lambda **_: -1.0)
    with pytest.raises(ValueError, match="returned -1"):
        predicted(job, costs="negative")
    # Nothing takes as long, and sums would not fit.
    for time in (1e16, float("inf"), float("nan")):
        plugins.cost_function("endless", node=lambda time=time, **_: time)
        with pytest.raises(ValueError, match="expected ns, 0 to"):
            predicted(job, costs="endless")
    with pytest.raises(foretrain.UsageError, match="no cost function is called so"):
        predicted(job, costs="unknown")
    with pytest.raises(foretrain.UsageError, match="unexpected keyword argument 'costs'"):
        foretrain.inspect(job, costs="fails")


def test_exceptions_belong_to_the_call_that_asked(job, examples) -> None:
    both = threading.Barrier(2, timeout=60)
    met = set()

    def meet(who):
        # Each call is in its function while the other one fails, or does not.
        if who not in met:
            met.add(who)
            both.wait()

    def fails(**_):
        meet("costs")
        raise KeyError("of one call")

    @plugins.policy()
    def waits(board):
        meet("policy")
        for job in board.waiting:
            place = board.place(job)
            if place is not None:
                board.start(job, place)

    plugins.cost_function("meets", node=fails)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(predicted, job, costs="meets")
        other = pool.submit(scheduled, examples, "waits")
        with pytest.raises(KeyError, match="of one call"):
            one.result()
        assert other.result().holds

    # Scenarios are worked out side by side, on threads that belong to the call as well.
    plugins.cost_function("late", node=lambda name, **_: 1 / 0 if name else None)
    with pytest.raises(ZeroDivisionError):
        foretrain.whatif(job, sweep=["bandwidth x1,x2,x4"], costs="late")


def test_models_of_interference(job) -> None:
    @plugins.interference()
    def twice(running, device):
        assert {one["activity"] for one in running} <= {"kernel", "transfer"}
        assert device["memory_bandwidth"] > 0
        return [2.0 if len(running) > 1 else 1.0 for _ in running]

    @plugins.interference(name="none-at-all")
    def none_at_all(running, device):
        return [1.0] * len(running)

    assert predicted(job, interference="none-at-all") == predicted(job, interference="none")
    assert predicted(job, interference="twice") != predicted(job, interference="none")

    @plugins.interference()
    def wrong(running, device):
        return [1.0]

    with pytest.raises(ValueError, match="slow-downs for"):
        predicted(job, interference="wrong")
    for factor in (float("nan"), float("inf"), 0.5, -1.0):

        @plugins.interference(name="odd")
        def odd(running, device, factor=factor):
            return [factor] * len(running)

        with pytest.raises(ValueError, match="expected how many times longer"):
            predicted(job, interference="odd")


def scheduled(examples, *policies):
    return foretrain.fleet.schedule(
        examples / "fleet" / "training.csv", on="dgx-1-v100", nodes=2, policy=list(policies)
    )


def test_policies(examples) -> None:
    @plugins.policy()
    def in_order(board):
        """First come, first served."""
        for job in board.waiting:
            place = board.place(job)
            if place is None:
                return
            board.start(job, place)

    answer = scheduled(examples, "fifo", "in-order")
    fifo, ours = answer.to_dict()["policies"]
    assert ours["name"] == "in-order" and ours["about"] == "First come, first served."
    assert ours["table"] == fifo["table"]


def test_policies_see_and_stop(examples) -> None:
    @plugins.policy(interval=600.0)
    def restless(board):
        """Stops everything, and starts the longest first."""
        assert board.gpus == 16 and board.now >= 0
        for job in board.running:
            assert board.job(job)["at"]
            board.stop(job)
        waiting = sorted(board.waiting, key=lambda one: -board.job(one)["expected_left"])
        for job in waiting:
            place = board.place(job)
            if place is not None:
                board.start(job, place)
        assert sum(len(idle) for idle in board.idle) <= board.gpus

    assert scheduled(examples, "restless").holds


def test_what_a_policy_does_wrong_is_said(examples) -> None:
    @plugins.policy()
    def greedy(board):
        for job in board.waiting:
            board.start(job, [0])
            board.start(job, [1])

    with pytest.raises(ValueError, match="cannot start there: it is not waiting|another number"):
        scheduled(examples, "greedy")
    with pytest.raises(foretrain.ForetrainError, match="already"):
        plugins.policy(name="fifo")(lambda board: None)


@pytest.mark.parametrize("name", ["bad name(", "", "-dash", "a|b", 5])
def test_names_can_be_written_in_options(name) -> None:
    for register in (plugins.rewrite_pass, plugins.interference, plugins.policy):
        with pytest.raises(ValueError, match="is no name to register a function by"):
            register(name)(lambda *_: None)
    with pytest.raises(ValueError, match="is no name to register"):
        plugins.cost_function(name)
    # Nothing is called as a lambda is.
    with pytest.raises(ValueError, match="'<lambda>' is no name"):
        plugins.rewrite_pass()(lambda draft: None)
