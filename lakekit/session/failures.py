"""What Spark says when a job fails, in a line."""

from __future__ import annotations

import re

from lakekit.errors import ConstraintError, LakeError, QueryError

_USER_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.*?)\s*(?:SQLSTATE|\n|$)", re.DOTALL)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")


def spark_failure(error: BaseException, doing: str) -> LakeError:
    """Returns the error for a failed Spark job: its condition or first line, never a stack.

    Args:
        error: what Spark raised.
        doing: what was going on, as a subject ("Writing to table shop.orders").
    """
    if isinstance(error, LakeError):
        return error
    text = str(error)
    raised = _USER_RAISED.search(text)
    if raised:
        return ConstraintError(raised[1], "Nothing was written.")
    condition = _CONDITION.search(text)
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")
    ]
    reason = condition[0] if condition else (lines[0] if lines else type(error).__name__)
    return QueryError(f"{doing} failed: {reason[:600]}", "The table is as it was before.")
