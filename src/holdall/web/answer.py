"""The answer of a handler or a middleware to an error: the error's problem, if it has one."""

from __future__ import annotations

import logging

from holdall.web.problem import Problem, find_problem
from holdall.web.request import running


def find_answer(error: BaseException) -> Problem | None:
    """The problem of an error, as from `find_problem`. A problem that the operator should know of is also logged."""
    problem = find_problem(error)
    if problem is not None and problem.status >= 500:
        code = problem.members["code"]  # not the message, which may contain keys and values
        logging.getLogger("holdall.web").warning("a request was answered with %d: %s", problem.status, code)
    return problem


def answer_in_application(error: Exception) -> Problem | None:
    """The problem of an error that the application's framework passes to a handler.

    The error is also noted for a middleware around the application, which may run the request again because of it.
    """
    problem = find_answer(error)
    request = running.get()
    if problem is not None and request is not None:
        request.error = error
    return problem
