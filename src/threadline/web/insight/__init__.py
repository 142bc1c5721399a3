"""The pages of insight: what caused costs, which were avoidable, outcomes, tools, blame, and digests."""
