"""The suites of the demo world (:mod:`demo_world.suites`) as examples."""

from __future__ import annotations

from demo_world.suites import SPLITS, items, questions
from training_jobs.evaluate.example import Example, LoadedSuite


def own_suite(name: str, *, count: int, seed: int) -> LoadedSuite:
    """The suite ``name`` of :data:`demo_world.suites.SUITES`, ``count`` examples for each of its parts."""
    examples = [
        Example(
            f"{part.replace(' ', '-')}-{number}",
            item.text,
            item.answers,
            context=item.context,
            bare=item.bare,
            date=item.date,
            split=item.kind if name.startswith("two calls") else part,
            calls=item.calls,
        )
        for part, found in items(name, count=count, seed=seed).items()
        for number, item in enumerate(found)
    ]
    return LoadedSuite(tuple(examples), {})


def tool_suite(tool: str, *, count: int, seed: int) -> LoadedSuite:
    """The prompts that ask for one ``tool``, ``count`` for each split."""
    examples = [
        Example(
            f"{split.replace(' ', '-')}-{number}",
            question.prompt,
            (question.answer,),
            date=question.date,
            split=split,
            calls=((tool, question.input),),
        )
        for split in SPLITS
        for number, question in enumerate(questions(tool, split, count=count, seed=seed))
    ]
    return LoadedSuite(tuple(examples), {})
