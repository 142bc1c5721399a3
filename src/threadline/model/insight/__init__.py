"""What `threadline.insight` finds: causes of costs, waste, outcomes, the writers of lines, and digests."""
