"""Messages and their content blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import field

from threadline.model.places import CallId, MessageId
from threadline.model.text import extract_text
from threadline.model.usage import Usage
from threadline.shape import OTHER_TAG, Shape


class Block(Shape, frozen=True, rename=None):
    """Base class of blocks. `type` is the name in the transcript."""

    @property
    def type(self) -> str:
        """The block's type in the transcript."""
        return str(type(self).__struct_config__.tag)


class TextBlock(Block, frozen=True, tag="text"):
    """Text that is shown."""

    text: str = ""
    citations: Any = None
    cache_control: Any = None


class ThinkingBlock(Block, frozen=True, tag="thinking"):
    """The model's thinking. From 2.1.71 on the text is often empty and only the signature is kept."""

    thinking: str = ""
    signature: str | None = None


class RedactedThinkingBlock(Block, frozen=True, tag="redacted_thinking"):
    """Encrypted thinking."""

    data: str | None = None


class ToolUseBlock(Block, frozen=True, tag="tool_use"):
    """The model calls a tool. `input` is an object, except in damaged rows."""

    id: CallId | None = None
    name: str = ""
    input: Any = None
    caller: dict[str, Any] | None = None
    cache_control: Any = None


class ToolReferenceBlock(Block, frozen=True, tag="tool_reference"):
    """Inside a tool's result: a tool that has become available."""

    tool_name: str = ""


class ImageBlock(Block, frozen=True, tag="image"):
    """An image: base64 data, a URL or a file id, in `source`."""

    source: Any = None
    cache_control: Any = None


class DocumentBlock(Block, frozen=True, tag="document"):
    """A document: a PDF in base64, or text."""

    source: Any = None
    title: str | None = None
    context: str | None = None
    citations: Any = None
    cache_control: Any = None


class ResourceBlock(Block, frozen=True, tag="resource"):
    """A resource that an MCP server returned."""

    resource: Any = None


class ResourceLinkBlock(Block, frozen=True, tag="resource_link"):
    """A pointer to a resource of an MCP server."""

    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = field(default=None, name="mimeType")


class AudioBlock(Block, frozen=True, tag="audio"):
    """Audio that an MCP server returned, in base64."""

    data: str | None = None
    mime_type: str | None = field(default=None, name="mimeType")


class SearchResultBlock(Block, frozen=True, tag="search_result"):
    """A search result given to the model with its source."""

    source: Any = None
    title: str | None = None
    content: Any = None
    citations: Any = None


class ServerToolUseBlock(Block, frozen=True, tag="server_tool_use"):
    """The API runs a tool of its own: web search, code execution, the advisor."""

    id: CallId | None = None
    name: str = ""
    input: Any = None
    caller: dict[str, Any] | None = None


class ServerResultBlock(Block, frozen=True):
    """The result of a tool the API ran itself."""

    tool_use_id: CallId | None = None
    content: Any = None
    caller: dict[str, Any] | None = None


class AdvisorResultBlock(ServerResultBlock, frozen=True, tag="advisor_tool_result"):
    """The advisor model's answer."""


class WebSearchResultBlock(ServerResultBlock, frozen=True, tag="web_search_tool_result"):
    """The result of the API's web search."""


class WebFetchResultBlock(ServerResultBlock, frozen=True, tag="web_fetch_tool_result"):
    """The result of the API's web fetch."""


class CodeExecutionResultBlock(ServerResultBlock, frozen=True, tag="code_execution_tool_result"):
    """The output of code that the API ran."""


class BashCodeExecutionResultBlock(ServerResultBlock, frozen=True, tag="bash_code_execution_tool_result"):
    """The output of a shell command that the API ran."""


class TextEditorResultBlock(ServerResultBlock, frozen=True, tag="text_editor_code_execution_tool_result"):
    """The result of the API's text editor."""


class ToolSearchResultBlock(ServerResultBlock, frozen=True, tag="tool_search_tool_result"):
    """The result of the API's tool search."""


class McpToolUseBlock(Block, frozen=True, tag="mcp_tool_use"):
    """The API calls an MCP server itself."""

    id: CallId | None = None
    name: str = ""
    server_name: str | None = None
    input: Any = None


class McpToolResultBlock(Block, frozen=True, tag="mcp_tool_result"):
    """The MCP server's answer."""

    tool_use_id: CallId | None = None
    content: Any = None
    is_error: bool | None = None


class FallbackBlock(Block, frozen=True, tag="fallback"):
    """From here on another model answered."""

    from_: Any = field(default=None, name="from")
    to: Any = None


class ContainerUploadBlock(Block, frozen=True, tag="container_upload"):
    """A file uploaded to the API's container."""

    file_id: str | None = None


class OtherBlock(Block, frozen=True, tag=OTHER_TAG):
    """A block of an unknown type: its tag, and the complete object in `data`."""

    tag: str = ""
    data: Any = None

    @property
    def type(self) -> str:
        """The block's type in the transcript."""
        return self.tag


ResultItem = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ToolReferenceBlock
    | ResourceBlock
    | ResourceLinkBlock
    | AudioBlock
    | SearchResultBlock
    | OtherBlock
)
"""An item of the list inside a tool's result."""


class ToolResultBlock(Block, frozen=True, tag="tool_result"):
    """A tool's result as the model saw it. `is_error` is absent more often than it is false."""

    tool_use_id: CallId | None = None
    content: str | list[ResultItem | str] | None = None
    is_error: bool | None = None
    cache_control: Any = None


ContentBlock = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | RedactedThinkingBlock
    | ImageBlock
    | DocumentBlock
    | ToolReferenceBlock
    | ResourceBlock
    | ResourceLinkBlock
    | AudioBlock
    | SearchResultBlock
    | ServerToolUseBlock
    | AdvisorResultBlock
    | WebSearchResultBlock
    | WebFetchResultBlock
    | CodeExecutionResultBlock
    | BashCodeExecutionResultBlock
    | TextEditorResultBlock
    | ToolSearchResultBlock
    | McpToolUseBlock
    | McpToolResultBlock
    | FallbackBlock
    | ContainerUploadBlock
    | OtherBlock
)
"""A block of a message's content."""

Content = str | list[ContentBlock | str] | None
"""A message's content: a string, a list of blocks (occasionally mixed with strings), or nothing."""


class Message(Shape, frozen=True, rename=None):
    """One API message, or the part of it in one entry: usually a single block."""

    model: str | None = None
    id: MessageId | None = None
    type: str | None = None
    role: str | None = None
    content: Content = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: Usage | None = None
    container: Any = None
    context_management: Any = None
    diagnostics: Any = None

    @property
    def blocks(self) -> Iterator[ContentBlock]:
        """The blocks of the content; a bare string counts as a text block."""
        if isinstance(self.content, str):
            yield TextBlock(self.content)
        else:
            for item in self.content or ():
                yield TextBlock(item) if isinstance(item, str) else item

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines."""
        return extract_text(self.content)
