"""The job that begins the next stage of a rollout. Workers import only this module; the rest is loaded when it runs."""

from __future__ import annotations

from holdall.jobs.declaration import job

_RETRIES = 30
"""More than half a day: if a stage is due while the table cannot be reached, it begins once it can be again."""


@job("holdall.rollout", retries=_RETRIES)
async def next_stage(name: str, alias: str, id: str, turn: int) -> None:
    """Make the next move of a rollout whose stage is over, if it is still at that turn."""
    from holdall.artifacts.rollout.move import continue_rollout
    from holdall.jobs.attempt import current_job

    await continue_rollout(current_job().context, name, alias, id, turn)
