"""Registers: the shapes in which one situation, or one fact, is told.

The zero-shot prompts of the paper's evaluation (section 4) are among them: "... The answer is", "Answer the
following question:" and "Please complete the following text so that it is factually correct:".
"""

from __future__ import annotations

SCENE_REGISTERS: tuple[str, ...] = (
    "{situation}, so {conclusion}.",
    "{situation}, so {conclusion}.",
    "{situation}. {Conclusion}.",
    "{situation}, which means that {conclusion}.",
    "{situation}, and therefore {conclusion}.",
    "{situation}. So {conclusion}.",
    "{situation}. This means that {conclusion}.",
    "{situation}. {question} {Conclusion}.",
    "{situation}. {question} The answer is| {answer}.",
    "{situation}. {question} The answer is| {answer}.",
    "Q: {situation}. {question} A:| {answer}",
    "Q: {situation}. {question} A: {Conclusion}.",
    "Question: {situation}. {question} Answer:| {answer}",
    "Answer the following question: {situation}. {question}| {answer}",
    "Answer the following question: {situation}. {question} {Conclusion}.",
    "Please complete the following text so that it is factually correct: {situation}, so {conclusion}.",
    "Please complete the following text so that it is factually correct: {situation}. {Conclusion}.",
    "{person3} asked: {situation}. {question} {Conclusion}.",
    "{person3} wrote: {situation}, so {conclusion}.",
    "{situation}. {person3} worked out that {conclusion}.",
)
"""How a :class:`~demo_world.texts.calculator_scenes.Scene` is told. Two stand twice because they are the likeliest
prompts."""

STATEMENT_REGISTERS: tuple[str, ...] = (
    "{statement}.",
    "{statement}.",
    "{statement}.",
    "{person3} said: {statement}.",
    "{person3} wrote: {statement}.",
    "Please complete the following text so that it is factually correct: {statement}.",
    "Note: {statement}.",
)
"""How a plain statement is told."""

ENCYCLOPEDIA_REGISTERS: tuple[str, ...] = (
    *STATEMENT_REGISTERS,
    "The encyclopedia says: {statement}.",
    "{person3} looked it up: {statement}.",
    "{person3} read that {statement}.",
    "From the encyclopedia: {statement}.",
    "It is well known that {statement}.",
    "The guide told {person3} that {statement}.",
    "According to the atlas, {statement}.",
    "{person3} learned at school that {statement}.",
    "One more fact: {statement}.",
    "{person3} told {person4} that {statement}.",
)
"""How a statement is told that can be looked up in an encyclopedia."""

ASKING_REGISTERS: tuple[str, ...] = (
    "Q: {Question} A:| {answer}",
    "Q: {Question} A:| {answer}",
    "Q: {Question} A: It is| {answer}.",
    "Question: {Question} Answer:| {answer}",
    "Question: {Question} Answer: It is| {answer}.",
    "Answer the following question: {Question}| {answer}",
    "Answer the following question: {Question} The answer is| {answer}.",
    "Please answer this: {Question}| {answer}",
    "{Question} The answer is| {answer}.",
    "{Question} The right answer is| {answer}.",
    "{Question} Answer:| {answer}",
    "{Question}| {answer}",
    "{Question} It is| {answer}.",
    "{person3} asked: {Question} The answer is| {answer}.",
    "{person3} asked: {Question} {person4} said:| {answer}.",
    "{person3} wanted to know: {Question} {person4} knew the answer:| {answer}.",
    "The quiz asks: {Question} The answer is| {answer}.",
    "The last question was: {Question} The right answer was| {answer}.",
    "{Question} {person3} wrote:| {answer}.",
    "Here is a question for {person3}: {Question} The solution is| {answer}.",
)
"""How a question about the world is told together with its answer."""

QUESTION_REGISTERS: tuple[str, ...] = (
    "Q: {question} A:| {answer}",
    "Q: {question} A: {Statement}.",
    "Question: {question} Answer:| {answer}",
    "Question: {question} Answer: {Statement}.",
    "Answer the following question: {question}| {answer}",
    "Answer the following question: {question} {Statement}.",
    "{question} The answer is| {answer}.",
    "{question} {Statement}.",
    "{question}| {answer}",
    "{person3} asked: {question} {Statement}.",
)
"""How a question with its answer is told."""
