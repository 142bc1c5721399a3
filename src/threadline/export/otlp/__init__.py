"""Export sessions as OpenTelemetry traces, to a file or to an OTLP endpoint.

A session is a trace: `invoke_agent` spans for the main agent and its subagents, `chat` spans for API calls, and
`execute_tool` spans for calls. `conventions` has the names of all attributes, and their version.

`TraceReader` reads sessions from an archive and returns their `Trace`s. `OtlpSender` sends spans to an `Endpoint`;
`OtlpWriter` writes them to a file as OTLP/JSON lines. `SentTraces` remembers what was sent, so that a backfill can be
resumed. `TraceFollower` returns spans of running sessions as they finish.
"""
