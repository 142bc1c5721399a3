"""Identifiers, kept apart by type so that one is not taken for another."""

from __future__ import annotations

from typing import NewType

SessionId = NewType("SessionId", str)
EntryId = NewType("EntryId", str)
MessageId = NewType("MessageId", str)
RequestId = NewType("RequestId", str)
CallId = NewType("CallId", str)
AgentId = NewType("AgentId", str)
