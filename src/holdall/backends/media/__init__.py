"""Work on untrusted pictures, videos, audio files and documents: probe, transform, preview.

- `delivery`, in the calling process: passes a request to a warm child process and reads its answer;
- `sandbox`, in that child: forks a process with limits for this one request, and waits for its end;
- `work` and what it calls, in the forked process, the only one that parses content.

The libraries are those of the extra ``media``; the calling process never loads them.
"""
