"""Which content is read at all, and by which parser. Pure tables.

A type that is not here has no reader: a parser that nobody fuzzes is not worth its pictures.
"""

from __future__ import annotations

READ = {
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/jpeg": "JPEG",
    "image/tiff": "TIFF",
    "image/bmp": "BMP",
    "image/vnd.adobe.photoshop": "PSD",
    "image/vnd.microsoft.icon": "ICO",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/heic": "HEIF",
    "image/heif": "HEIF",
}
"""Pillow's name of the one format that a picture of a type may have."""

PLUGINS = {
    "PNG": "PngImagePlugin",
    "GIF": "GifImagePlugin",
    "JPEG": "JpegImagePlugin",
    "TIFF": "TiffImagePlugin",
    "BMP": "BmpImagePlugin",
    "PSD": "PsdImagePlugin",
    "ICO": "IcoImagePlugin",
    "WEBP": "WebPImagePlugin",
    "AVIF": "AvifImagePlugin",
}
"""Where Pillow has a format; HEIF is a package of its own."""

CONTAINERS = {
    **dict.fromkeys(("video/mp4", "video/x-m4v", "video/quicktime", "audio/mp4"), "mov"),
    **dict.fromkeys(("video/webm", "video/x-matroska", "audio/webm"), "matroska"),
    **dict.fromkeys(("video/ogg", "audio/ogg"), "ogg"),
    "video/x-msvideo": "avi",
    "video/mpeg": "mpeg",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/aac": "aac",
}
"""FFmpeg's name of the one container that a film or sound of a type may have."""

CODECS = (
    *(
        "h264",
        "hevc",
        "vp8",
        "libvpx",
        "vp9",
        "libvpx-vp9",
        "av1",
        "libdav1d",
        "mpeg4",
        "mpeg1video",
        "mpeg2video",
    ),
    *("mjpeg", "theora", "prores", "h263", "msmpeg4v2", "msmpeg4v3", "wmv2"),
    *(
        "aac",
        "aac_latm",
        "ac3",
        "eac3",
        "alac",
        "flac",
        "mp1",
        "mp2",
        "mp3",
        "mp3float",
        "opus",
        "libopus",
        "vorbis",
    ),
    *("pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le"),
    *("pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be"),
)
"""FFmpeg's names of the decoders that may be used."""
