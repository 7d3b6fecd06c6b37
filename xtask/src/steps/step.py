"""One step of a workflow as a script of the old kind prints it: a path for shared modules, arguments, a table of steps, tags."""

import argparse
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

shared = Path(__file__).resolve().parents[0]
if str(shared) not in sys.path:
    sys.path.insert(0, str(shared))


class Role(Enum):
    REVIEWER = "quality-reviewer"
    WRITER = "technical-writer"
    DEVELOPER = "developer"


@dataclass(frozen=True)
class Review:
    iteration: int = 1
    failed: bool = False
    status: str | None = None


@dataclass(frozen=True)
class Step:
    title: str
    actions: list[str] = field(default_factory=list)
    passes_to: int | None = None
    fails_to: int | None = None


STEPS = {number: Step(f"Step {number}", ["Read what the step before has left.", ""] + [
    f"{line}. Look at it closely, write down what you see, and where." for line in range(1, 40)
], number + 1 if number < 13 else None) for number in range(1, 14)}
STEPS[6] = Step("Review", STEPS[6].actions, 7, 5)


def element(name, body, **attributes):
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>\n{body}\n</{name}>"


def call(step, total, review):
    more = f" --qr-iteration {review.iteration}" if review.iteration > 1 else ""
    return f"python3 scripts/planner.py --step {step} --total-steps {total}{more}"


def show(number, total, review):
    step = STEPS[number]
    parts = [element("step_header", step.title, script="planner", step=number, total=total)]
    parts.append(element("current_action", "\n".join(step.actions)))
    if step.fails_to:
        both = element("if_pass", call(step.passes_to, total, review)) + element("if_fail", call(step.fails_to, total, review))
        parts.append(element("invoke_after", both))
    elif step.passes_to:
        parts.append(element("invoke_after", call(step.passes_to, total, review)))
    return "\n".join(parts)


parser = argparse.ArgumentParser()
parser.add_argument("--step", type=int, required=True)
parser.add_argument("--total-steps", type=int, required=True)
parser.add_argument("--qr-iteration", type=int, default=1)
parser.add_argument("--qr-fail", action="store_true")
parser.add_argument("--qr-status", choices=["pass", "fail"])
given = parser.parse_args()
print(show(given.step, given.total_steps, Review(given.qr_iteration, given.qr_fail, given.qr_status)))
