"""Count usage once and price it.

`parse` yields sightings: a message's usage as one transcript has it. `compute_charges` groups the sightings of all
transcripts into API calls (`dedupe`: which copies are one call, who owns it) and applies the rate of the day.
`Ledger` holds the charges and sums them by any `KEY_DESCRIPTIONS`; `usage_windows` groups them into five-hour windows.

`load_rates` returns the price table, the shipped one by default. `explain_total` compares Claude Code's own totals with
charges, and `why_counted` and `charge_notes` explain single lines. `shipped_digest` identifies
the shipped prices without loading them. All amounts are exact decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.account.charges import charge_call, charge_single, compute_charges
    from threadline.account.dedupe import (
        CopyEvidence,
        earliest,
        group_by_call,
        most_complete,
        resolve_owner,
        timestamp_from_mtime,
        transcripts_of,
        with_origin,
    )
    from threadline.account.ledger import (
        ChargeFilter,
        ChargeList,
        Ledger,
        has_sighting_in,
        is_within,
    )
    from threadline.account.prices import FastMode, encode_price_file
    from threadline.account.rates import PriceSource, RateRow, Rates, load_rates, read_price_source, shipped_rates
    from threadline.account.receipts import (
        TRANSCRIPT_CHANGED,
        charge_notes,
        is_still_as_counted,
        why_counted,
        why_not_counted,
    )
    from threadline.account.reconcile import (
        AncestorSession,
        explain_row_amounts,
        explain_total,
        first_offset,
        model_namer,
        reported_tokens,
        split_into_runs,
        token_surplus,
        tokens_by_model,
        total_amount,
    )
    from threadline.account.shipped_prices import SHIPPED, shipped_digest
    from threadline.account.totals import (
        COUNTS,
        KEY_DESCRIPTIONS,
        MAIN,
        NO_CALL,
        NO_TIME,
        NONE,
        SESSION_KEY_DESCRIPTIONS,
        TIME_KEYS,
        Calendar,
        GroupKey,
        Key,
        RatedGroup,
        key_function,
        rows_from_counts,
        tool_shares,
        utc_offset,
    )
    from threadline.account.windows import (
        WINDOW_HOURS,
        active_window,
        append_window,
        split_into_windows,
        sum_of,
        usage_windows,
        window_limit,
    )

__getattr__ = lazy_exports(
    __name__,
    {
        "charges": ["charge_call", "charge_single", "compute_charges"],
        "dedupe": [
            "CopyEvidence",
            "earliest",
            "group_by_call",
            "most_complete",
            "resolve_owner",
            "timestamp_from_mtime",
            "transcripts_of",
            "with_origin",
        ],
        "ledger": ["ChargeFilter", "ChargeList", "Ledger", "has_sighting_in", "is_within"],
        "prices": ["FastMode", "encode_price_file"],
        "rates": ["PriceSource", "RateRow", "Rates", "load_rates", "read_price_source", "shipped_rates"],
        "receipts": ["TRANSCRIPT_CHANGED", "charge_notes", "is_still_as_counted", "why_counted", "why_not_counted"],
        "reconcile": [
            "AncestorSession",
            "explain_row_amounts",
            "explain_total",
            "first_offset",
            "model_namer",
            "reported_tokens",
            "split_into_runs",
            "token_surplus",
            "tokens_by_model",
            "total_amount",
        ],
        "shipped_prices": ["SHIPPED", "shipped_digest"],
        "totals": [
            "COUNTS",
            "Calendar",
            "GroupKey",
            "KEY_DESCRIPTIONS",
            "Key",
            "MAIN",
            "NONE",
            "NO_CALL",
            "NO_TIME",
            "RatedGroup",
            "SESSION_KEY_DESCRIPTIONS",
            "TIME_KEYS",
            "key_function",
            "rows_from_counts",
            "tool_shares",
            "utc_offset",
        ],
        "windows": [
            "WINDOW_HOURS",
            "active_window",
            "append_window",
            "split_into_windows",
            "sum_of",
            "usage_windows",
            "window_limit",
        ],
    },
)
