"""The work of the forked process: the content type selects the one parser that is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holdall.backends.media.format import CONTAINERS, PLUGINS, READ
from holdall.core.media import PDF, PICTURE_FORMATS, DrawPreview, ProbeMedia, TransformImage
from holdall.errors import UnsupportedMediaError


def load_libraries(request: ProbeMedia | TransformImage | DrawPreview) -> None:
    """Import what the work needs, in the child before it forks; `ImportError` if it is not installed."""
    import PIL.Image

    kind = request.content_type
    formats = [READ.get(kind, "PNG")]
    if isinstance(request, TransformImage):
        formats.append(READ[PICTURE_FORMATS.get(request.format.lower(), "image/png")])
    for each in formats:
        if each in PLUGINS:
            plugin: Any = import_module(f"PIL.{PLUGINS[each]}")
            if each == "AVIF":
                # each thread reserves memory, and machines have many processors
                plugin.DEFAULT_MAX_THREADS = 1
    if READ.get(kind) == "HEIF":
        import pillow_heif

        pillow_heif.register_heif_opener(
            thumbnails=False, aux_images=False, depth_images=False, decode_threads=1
        )
    if kind in CONTAINERS:
        import av  # noqa: F401
    if kind == PDF:
        import pypdfium2  # noqa: F401
    PIL.Image.preinit()
    import_module("holdall.backends.media.image")
    import_module("holdall.backends.media.transformation")


def do(request: ProbeMedia | TransformImage | DrawPreview) -> Any:
    """The metadata, or the width, height and type of the picture that was written."""
    kind = request.content_type
    if isinstance(request, TransformImage):
        from holdall.backends.media.transformation import transform

        return transform(request)
    if isinstance(request, ProbeMedia) and kind in READ:
        from holdall.backends.media.image import probe_image

        return probe_image(request)
    if kind == PDF:
        from holdall.backends.media import document

        if isinstance(request, ProbeMedia):
            return document.probe_document(request)
        return document.draw_page(request)
    if kind in CONTAINERS:
        from holdall.backends.media import film

        if isinstance(request, ProbeMedia):
            return film.probe_film(request)
        if not kind.startswith("audio/"):
            return film.draw_frame(request)
    raise UnsupportedMediaError("is not supported")
