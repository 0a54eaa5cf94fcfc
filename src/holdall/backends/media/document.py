"""PDF documents: the number of pages, and a picture of the first."""

from __future__ import annotations

from typing import Any

import pypdfium2

from holdall.core.media import DrawPreview, ProbeMedia
from holdall.errors import MalformedMediaError

DOTS_PER_POINT = 150 / 72
LONGEST_SIDE = 2000
"""The most pixels along one side of a drawn page: a single number in a file can make a page a million times larger."""


def probe_document(request: ProbeMedia) -> dict[str, Any]:
    """The number of pages."""
    return {"pages": len(pypdfium2.PdfDocument(request.path))}


def draw_page(request: DrawPreview) -> tuple[int, int, str]:
    """Write a picture of the first page."""
    document = pypdfium2.PdfDocument(request.path)
    if not len(document):
        raise MalformedMediaError("has no pages")
    page = document[0]
    longest = max(page.get_size())
    if not 0 < longest < float("inf"):
        raise MalformedMediaError("has a page without a size")
    scale = min(DOTS_PER_POINT, LONGEST_SIDE / longest)
    image = page.render(scale=scale, may_draw_forms=False).to_pil()
    image.save(request.target, "PNG")
    return (*image.size, "image/png")
