"""The content types that are read, and their parsers. Pure tables.

A type that is not listed here is not read: a parser that is not widely fuzzed is not worth the risk.
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
"""Pillow's name for the one format that a picture of a type may have."""

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
"""Pillow's module for each format; HEIF is in a separate package."""

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
"""FFmpeg's name for the one container that a video or audio file of a type may have."""

CODECS = (
    *("h264", "hevc", "vp8", "libvpx", "vp9", "libvpx-vp9", "av1", "libdav1d"),
    *(
        "mpeg4",
        "mpeg1video",
        "mpeg2video",
        "mjpeg",
        "theora",
        "prores",
        "h263",
        "msmpeg4v2",
        "msmpeg4v3",
        "wmv2",
    ),
    *("aac", "aac_latm", "ac3", "eac3", "alac", "flac", "mp1", "mp2", "mp3", "mp3float"),
    *("opus", "libopus", "vorbis"),
    *("pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le"),
    *("pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be"),
)
"""FFmpeg's names of the decoders that may be used."""
