"""The caller's own file system: sources, drafts of downloads, directory walks, trees, the cache of downloads.

Every function here blocks. None is async, and flows call them only as ``await port.offload(function, ...)``, with a
sizeable piece of work in each call. Classes are plain state: creating one touches no file, and they have no methods.
Imports only `holdall.core`.
"""
