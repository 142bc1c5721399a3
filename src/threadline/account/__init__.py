"""Count usage once and price it.

`parse` yields sightings: the usage of a message in one transcript. `ledger_from_sightings` groups the sightings of all
transcripts into API calls (`dedupe`: which copies are one call, who owns it), applies the rate of the day, and returns
the `Ledger`: charges, and their sums by any `KEY_DESCRIPTIONS`. The index computes the same ledger from stored rows,
with the same functions.

`load_rates` returns the price table, the shipped one by default. `shipped_digest` identifies the shipped prices without
loading them. All amounts are exact decimals.

`read_budgets` returns the user's budgets, and `measure_budgets` what a ledger says was spent of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.account.budgets import (
        budget_start,
        measure_budgets,
        read_budgets,
        remove_budgets,
        save_budget,
    )
    from threadline.account.charges import charge_groups, charge_single, ledger_from_sightings
    from threadline.account.dedupe import (
        CopyEvidence,
        earliest,
        group_by_call,
        most_complete,
        transcripts_of,
        with_origin,
    )
    from threadline.account.ledger import AgentTypeReader, ChargeFilter, ChargeList, Ledger, last_day_with_usage
    from threadline.account.missing_agents import AgentResults, merge_missing_agents
    from threadline.account.prices import FastMode, encode_price_file
    from threadline.account.rates import PriceSource, RateRow, Rates, load_rates, read_price_source, shipped_rates
    from threadline.account.shipped_prices import SHIPPED, shipped_digest
    from threadline.account.totals import (
        COUNTS,
        KEY_DESCRIPTIONS,
        SESSION_KEY_DESCRIPTIONS,
        TIME_KEYS,
        Calendar,
        group_function,
        rows_from_counts,
    )
    from threadline.account.turn_costs import TurnTable, cost_by_turn
    from threadline.account.windows import (
        active_window,
        append_window,
        split_into_windows,
        sum_of,
        window_limit,
    )

export_lazily(
    __name__,
    {
        "budgets": ["budget_start", "measure_budgets", "read_budgets", "remove_budgets", "save_budget"],
        "charges": ["charge_groups", "charge_single", "ledger_from_sightings"],
        "dedupe": ["CopyEvidence", "earliest", "group_by_call", "most_complete", "transcripts_of", "with_origin"],
        "ledger": ["AgentTypeReader", "ChargeFilter", "ChargeList", "Ledger", "last_day_with_usage"],
        "missing_agents": ["AgentResults", "merge_missing_agents"],
        "prices": ["FastMode", "encode_price_file"],
        "rates": ["PriceSource", "RateRow", "Rates", "load_rates", "read_price_source", "shipped_rates"],
        "shipped_prices": ["SHIPPED", "shipped_digest"],
        "totals": [
            "COUNTS",
            "Calendar",
            "KEY_DESCRIPTIONS",
            "SESSION_KEY_DESCRIPTIONS",
            "TIME_KEYS",
            "group_function",
            "rows_from_counts",
        ],
        "turn_costs": ["TurnTable", "cost_by_turn"],
        "windows": ["active_window", "append_window", "split_into_windows", "sum_of", "window_limit"],
    },
)
