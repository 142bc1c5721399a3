"""Reports over whole homes: usage, receipts, doctor, failures, secrets, history."""
