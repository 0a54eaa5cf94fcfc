"""The caller's own file system: sources, drafts of downloads, directory walks, trees, the cache of downloads.

Every function here blocks, so none is async, and flows reach them only as ``await port.offload(function, ...)``, in
calls that each do a meaningful piece of work. Classes are plain state: making one touches nothing, and they have no
methods of their own. Imports `holdall.core` alone.
"""
