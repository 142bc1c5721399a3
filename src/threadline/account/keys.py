"""What charges can be grouped by. The table is the documentation: each key, and what it takes of a charge."""

from __future__ import annotations

from collections.abc import Callable

from threadline.account.calendar import Calendar
from threadline.model.charge import Charge
from threadline.model.kept import home_name, machine_name

Key = Callable[[Charge], str]
MAIN = "main"
NONE = "(none)"
NO_CALL = "(no call)"

TIMES = ("day", "week", "month", "hour")
"""Keys that are in the order of time; rows by all others are in the order of what they cost."""

WHAT_KEYS_MEAN = {
    "day": "the day it was spent, in the reader's time zone",
    "week": "the week, by the day of its Monday",
    "month": "the month",
    "hour": "the hour of the day",
    "session": "the session; agents are counted to theirs",
    "project": "the directory that the session was started in",
    "model": "the model, as the transcript writes it",
    "agent": "the agent, by its id; `main` is the main one",
    "agent-type": "what kind of agent; `main` is the main one",
    "tool": "the tools that the message calls, each call an equal share; `(no call)` where it calls none",
    "skill": "the skill that Claude Code names as the cause (2.1.123 on); `(none)` elsewhere",
    "branch": "the git branch",
    "version": "the version of Claude Code",
    "home": "the home that the transcript lies in",
    "machine": "the machine that the transcript was written on: this one, or another that kept it",
    "part": "main, agents, and what the program spent for itself (side agents)",
}
WHAT_READ_KEYS_MEAN = {
    "thread": "the main thread, branches of it that were left, agents, and side agents",
}
"""Keys that charges alone do not tell: whoever asks for them reads sessions, and gives `Ledger.by` the answer."""


def key(name: str, calendar: Calendar) -> Key:
    """The function that gives a charge's value for a key; `tool` is not among them, for it shares charges out.

    Raises:
        KeyError: there is no such key.
    """
    times: dict[str, Callable[[str], str]] = {
        "day": calendar.day,
        "week": calendar.week,
        "month": calendar.month,
        "hour": calendar.hour,
    }
    if name in times:
        when = times[name]
        return lambda charge: when(charge.owner.time)
    return _KEYS[name]


def shares(charge: Charge) -> tuple[str, ...]:
    """The tools that share a charge, one share a call."""
    return charge.calls or (NO_CALL,)


def _part(charge: Charge) -> str:
    origin = charge.origin
    return "side agents" if origin.side else "agents" if origin.agent else MAIN


_KEYS: dict[str, Key] = {
    "session": lambda charge: charge.origin.session or NONE,
    "project": lambda charge: charge.origin.project or NONE,
    "model": lambda charge: charge.counted.model or NONE,
    "agent": lambda charge: charge.origin.agent or MAIN,
    "agent-type": lambda charge: charge.origin.agent_type or (charge.origin.agent and NONE) or MAIN,
    "skill": lambda charge: charge.origin.skill or NONE,
    "branch": lambda charge: charge.origin.git_branch or NONE,
    "version": lambda charge: charge.origin.version or NONE,
    "home": lambda charge: home_name(charge.origin.home) or NONE,
    "machine": lambda charge: machine_name(charge.origin.home),
    "part": _part,
}
