"""Questions to the endpoints that a container or an instance has beside it: small, near, and never through a proxy.

No redirect is followed. Errors repeat neither the question nor the answer, since both can hold secrets.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdall.backends.aws.address import Address

_LONGEST_ANSWER = 64 * 1024


class Unanswered(Exception):
    """No useful answer came; the text says why. ``passing`` when asking again could help."""

    def __init__(self, why: str, *, passing: bool) -> None:
        super().__init__(why)
        self.passing = passing


def answer(method: str, address: Address, headers: Mapping[str, str], timeout: float) -> bytes:
    """The body of a 200; anything else is `Unanswered`."""
    import http.client  # only those who have such an endpoint pay for it

    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout)
    try:
        connection.request(method, address.target, headers={"Accept": "application/json", **headers})
        response = connection.getresponse()
        status = response.status
        body = response.read(_LONGEST_ANSWER + 1)
        if len(body) < min(int(response.getheader("content-length", 0)), _LONGEST_ANSWER):
            raise http.client.IncompleteRead(b"")  # which a bounded read does not say by itself
    except TimeoutError:
        why = f"did not answer within {timeout:g} s"
    except OSError as error:
        why = f"cannot be reached ({error.strerror or type(error).__name__})"
    except (http.client.HTTPException, ValueError) as error:
        why = f"broke off or spoke no HTTP ({type(error).__name__})"
    else:
        if status != 200:
            raise Unanswered(f"answered {status}", passing=status == 429 or status >= 500)
        if len(body) > _LONGEST_ANSWER:
            raise Unanswered("gave an answer of over 64 KB", passing=False)
        return body
    finally:
        connection.close()
    raise Unanswered(why, passing=True)


def answer_in_tries(
    tries: int, method: str, address: Address, headers: Mapping[str, str], timeout: float
) -> bytes:
    """The same, asked again when that could help."""
    import time

    for attempt in range(1, tries):
        try:
            return answer(method, address, headers, timeout)
        except Unanswered as trouble:
            if not trouble.passing:
                raise
        time.sleep(0.1 * attempt)
    return answer(method, address, headers, timeout)
