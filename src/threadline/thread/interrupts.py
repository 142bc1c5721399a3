"""The sentences that tell of an interrupt."""

INTERRUPTS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
